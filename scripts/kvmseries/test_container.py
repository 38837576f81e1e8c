"""scripts/container: what podman or docker is told, and the line where there is neither."""

import subprocess
from types import SimpleNamespace

import pytest

from kvmseries.base import paths

SCRIPT = paths.ROOT / "scripts/container"
# `build` fails if $BROKEN; each call is a line of $CALLS.
ENGINE = """\
printf '%s|' "$@" >> "$CALLS"; echo >> "$CALLS"
[ "$1" != build ] || [ -z "$BROKEN" ] || { echo 'Error: short-name "debian" did not resolve'; exit 125; }
"""


@pytest.fixture
def run(tmp_path, only_tools, program, monkeypatch):
    """run(WORD...): the script's status, its error and the calls of the engine; `podman` is one."""
    for name in ("dirname", "readlink", "mkdir", "grep", "tail", "id"):
        (tmp_path / "bin" / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("SERIES_CACHE", str(tmp_path / "cache"))
    top = tmp_path / "clone"
    (top / "scripts").mkdir(parents=True)
    copy = top / "scripts/container"
    copy.write_bytes(SCRIPT.read_bytes())

    def call(*words):
        done = subprocess.run(["sh", str(copy), *words], capture_output=True, text=True, check=False)
        said = (tmp_path / "calls").read_text(encoding="utf-8") if (tmp_path / "calls").exists() else ""
        lines = [line.rstrip("|").split("|") for line in said.splitlines()]
        return SimpleNamespace(status=done.returncode, err=done.stderr.splitlines(), calls=lines, top=top)

    return call


def test_the_command_runs_with_the_repository_and_the_cache(run, program, tmp_path):
    program("podman", ENGINE)
    found = run("make", "run", "VCPUS=1,2")
    build, start = found.calls
    assert found.status == 0 and build[0] == "build" and build[-1] == str(found.top)
    assert start[0] == "run" and start[-4:] == ["kvm-series", "make", "run", "VCPUS=1,2"]
    assert f"{found.top}:/work" in start and f"{tmp_path}/cache:/cache" in start and "--user" not in start


def test_what_the_environment_says(run, program, monkeypatch, tmp_path):
    """The user's own tree is read only there; docker leaves no files of root's; another base."""
    program("docker", ENGINE)
    (tmp_path / "linux").mkdir()
    monkeypatch.setenv("TREE", str(tmp_path / "linux"))
    monkeypatch.setenv("BASE", "localhost/debian")
    build, start = run("make", "run").calls
    assert f"{tmp_path}/linux:/tree:ro" in start and "TREE=/tree" in start and "--user" in start
    assert "BASE=localhost/debian" in build


BROKEN = 'podman cannot build the container: Error: short-name "debian" did'


@pytest.mark.parametrize(
    "setting, words, line, calls",
    [
        ({}, "make", "CONTAINER=1 needs podman or docker: install one of them", 0),
        ({"ENGINE": "nerdctl"}, "make", "nerdctl is missing: install it, or unset ENGINE", 0),
        ({}, "", "scripts/container needs a command, such as: make run", 0),
        ({"BROKEN": "1"}, "make", BROKEN, 1),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_runs(run, program, monkeypatch, setting, words, line, calls):
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    if calls:
        program("podman", ENGINE)
    found = run(*words.split())
    assert found.status == 1 and len(found.calls) == calls and (found.top / "out").exists() == bool(calls)
    assert found.err[-1].startswith(f"series: error: {line}") and len(found.err) == 1 + calls
