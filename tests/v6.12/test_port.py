"""patches/v6.12 against patches/v7.3: port.yaml says of each patch that differs how."""

import pytest

from kvmseries.base.errors import Fail
from kvmseries.source import catalog
from kvmseries.verify import port


def test_each_difference_has_a_sentence():
    series = catalog.load("v6.12")
    assert len(series.patches) > 30 and series.port == "v7.3"
    port.check(series)


def test_negative_control_what_is_not_said_is_noticed(monkeypatch):
    theirs = {"a": ["+x"], "b": ["+y"]}
    assert not list(port.complaints({"a": ["+x"], "b": ["+z"], "c": []}, theirs, {"b": "z.", "c": "new: c."}))
    assert len(list(port.complaints({"a": ["+x"], "b": ["+z"], "c": []}, theirs, {"a": "x.", "d": "d."}))) == 4
    monkeypatch.setattr(catalog, "mapping", lambda file: {})
    with pytest.raises(Fail, match="port.yaml: .* complaints, the first: KVM: .* is new$"):
        port.check(catalog.load("v6.12"))
