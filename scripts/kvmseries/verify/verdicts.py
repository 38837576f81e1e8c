"""What the functional selftests say of base, kept in tools-testing-selftests-kvm/base-verdicts.json, so that not
every run of the checks has to boot base: it does not change.

{"schema": 1, "machines": {"v5.10 arm64 max": {"key": {...}, "results": {test: verdict}, "splats": [line]}}}
The key is what made them.  Where it is not what would make them now, they say nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TypedDict

from ..base import files, paths, proc
from ..base.errors import Fail
from ..data import schema
from ..guest import emulator, image, machine as machines
from ..kernel import kconfig, selftests
from ..source import catalog, trees
from ..source.git import git
from . import functional

FORMAT = paths.TESTS / "base-verdicts.schema.json"
# Of the series' tree: what the test programs are compiled from.
_FOLDERS = (
    selftests.SUBDIR,
    "tools/testing/selftests/lib.mk",
    "tools/include",
    "tools/arch",
    "include/uapi",
    "arch/arm64/include/uapi",
    "arch/x86/include/uapi",
)


class Entry(TypedDict):
    """What base did on one machine."""

    key: dict[str, str]
    results: dict[str, str]
    splats: list[str]


def file() -> Path:
    """The path of the committed file."""
    return paths.TESTS / "base-verdicts.json"


def machine_name(series: catalog.Series, arch: str, cpu: str) -> str:
    """The name of a machine in the file."""
    return f"{series.name} {arch} {cpu}"


def key(series: catalog.Series, arch: str) -> dict[str, str]:
    """What base's verdicts follow from on the normal configuration, in hashes and versions: dict of text."""
    # Installs the QEMU whose version is asked for below.
    machines.check(machines.Machine(arch))
    tree = trees.worktree(series, len(series.patches)).path
    config = kconfig.load(arch, (), series.kernel)
    sources = "\n".join(git(tree, "rev-parse", f"HEAD:{name}").strip() for name in _FOLDERS)
    guest = "".join((image.GUEST / name).read_text(encoding="utf-8") for name in ("init", "job.sh"))
    listed = functional.listed(series, arch)
    commands, _, _ = functional.plan(series, arch, list(listed[1]))
    return {
        "base": f"{series.kernel} {series.versions[0].sha256}",
        "config": _digest(config.text.encode()),
        "selftests": _digest("\n".join([sources, guest, json.dumps(listed)]).encode()),
        "qemu": proc.run([emulator.for_commands(arch, commands).program, "--version"], "qemu").partition("\n")[0],
    }


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def read() -> dict[str, Entry]:
    """The machines of the file: {} if it is not there.  Raises Fail if it is not such a file."""
    try:
        data = json.loads(file().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        raise Fail(f"{file()} is damaged: {_RENEW}") from None
    if isinstance(data, dict) and data.get("schema", 1) != 1:
        raise Fail(f"{file()}: unknown schema {data['schema']}: {_RENEW}")
    wrong = schema.wrong(data, FORMAT)
    if wrong:
        raise Fail(f"{file()}: {wrong}: {_RENEW}")
    return data["machines"]


_RENEW = "take the one that `make test-all` leaves in out/"


def known(name: str, wanted: Mapping[str, str]) -> tuple[Entry | None, str]:
    """(entry of the machine `name`, ""), or (None, why there is none for the key `wanted`)."""
    entry = read().get(name)
    if not entry:
        return None, "it has no such machine"
    differs = [part for part in wanted if entry["key"].get(part) != wanted[part]]
    return (None, f"another {', '.join(differs)}") if differs else (entry, "")


def complaints(
    entry: Entry, results: Mapping[str, str], splats: Iterable[str], unsettled: Collection[str]
) -> list[str]:
    """What differs between the entry of the file and what base did: lines.

    unsettled: names of tests that may pass or fail on base, see `mended` in tests.yaml."""
    old, new = entry["results"], results
    lines = [
        f"{name}: {new.get(name, 'not run')} on base, {old.get(name, 'not there')} in the file"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name) and name not in unsettled
    ]
    return lines + [
        f"base reports what the file does not have: {line}" for line in splats if line not in entry["splats"]
    ]


def write(path: Path, name: str, wanted: dict[str, str], results: Mapping[str, str], splats: list[str]) -> None:
    """Put what base did on the machine `name` into `path`, beside what the committed file has."""
    data = {
        "schema": 1,
        "machines": {
            **read(),
            **_machines(path),
            name: {"key": wanted, "results": dict(sorted(results.items())), "splats": splats},
        },
    }
    files.write_json(path, data, sort_keys=True)


def _machines(path: Path) -> dict[str, Entry]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))["machines"]
    except (OSError, ValueError, KeyError):
        return {}
