"""All schemas are valid, and what has no other reader is as its schema says."""

import json

import jsonschema
import pytest
import yaml

from kvmseries.base import paths
from kvmseries.conftest import committed
from kvmseries.data import schema as forms

SCHEMAS = sorted(paths.ROOT.glob("*/*.schema.yaml"))


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_every_schema_is_one(path):
    jsonschema.Draft202012Validator.check_schema(yaml.safe_load(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", committed("soak-qemu-*.json"), ids=lambda path: path.name)
def test_every_committed_soak_of_qemu_has_its_form(path):
    data = json.loads(path.read_text(encoding="utf-8"))
    form = paths.ROOT / "Documentation/soak-qemu.schema.yaml"
    assert not forms.wrong(data, form)
    # What does not belong there is seen.
    assert "host" in forms.wrong({**data, "host": []}, form)
