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
    assert found.status == 0
    build, start = found.calls
    assert build[:3] == ["build", "-t", "kvm-series"] and build[-1] == str(found.top)
    assert start[:3] == ["run", "--rm", "--security-opt"] and start[-4:] == ["kvm-series", "make", "run", "VCPUS=1,2"]
    assert f"{found.top}:/work" in start and f"{tmp_path}/cache:/cache" in start and "--user" not in start


def test_what_the_environment_says(run, program, monkeypatch, tmp_path):
    """The user's own tree is read only there; docker leaves no files of root's; another base."""
    program("docker", ENGINE)
    (tmp_path / "linux").mkdir()
    monkeypatch.setenv("TREE", str(tmp_path / "linux"))
    monkeypatch.setenv("BASE", "localhost/debian")
    build, start = run("make", "run").calls
    assert f"{tmp_path}/linux:/tree:ro" in start and "TREE=/tree" in start and "--user" in start
    assert build[1:3] == ["--build-arg", "BASE=localhost/debian"]


@pytest.mark.parametrize(
    "setting, words, line",
    [
        ({}, ("make",), "series: error: CONTAINER=1 needs podman or docker: install one of them"),
        ({"ENGINE": "nerdctl"}, ("make",), "series: error: nerdctl is missing: install it, or unset ENGINE"),
        ({}, (), "series: error: scripts/container needs a command, such as: make run"),
    ],
)
def test_what_is_missing_is_one_line(run, monkeypatch, setting, words, line):
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    found = run(*words)
    assert (found.status, found.err) == (1, [line]) and not (found.top / "out").exists()


def test_a_container_that_cannot_be_built_is_not_run(run, program, monkeypatch):
    program("podman", ENGINE)
    monkeypatch.setenv("BROKEN", "1")
    found = run("make", "run")
    assert found.status == 1 and len(found.calls) == 1
    assert found.err[-1].startswith('series: error: podman cannot build the container: Error: short-name "debian" did')
