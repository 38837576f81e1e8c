"""scripts/emulated-server: what QEMU is told, and the line where something is missing."""

import subprocess
from types import SimpleNamespace

import pytest

from kvmseries.base import paths
from kvmseries.conftest import write

SCRIPT = paths.ROOT / "scripts/emulated-server"


@pytest.fixture
def run(tmp_path, only_tools, program, monkeypatch):
    """run(WORD...): the script's status, output, error, and the words that QEMU got."""
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    for name in ("MACHINE", "PORT", "SUITE"):
        monkeypatch.delenv(name, raising=False)
    program("qemu-system-aarch64", 'printf "%s\\n" "$@" > "$CALLS"\n')
    program("id", "echo 0\n")

    def call(*words, script=SCRIPT):
        done = subprocess.run(["sh", str(script), *words], capture_output=True, text=True, check=False)
        calls = tmp_path / "calls"
        words = calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []
        return SimpleNamespace(status=done.returncode, out=done.stdout, err=done.stderr.splitlines(), words=words)

    return call


def test_the_server_is_on_the_loopback_and_has_kvm_of_its_own(run, tmp_path):
    write(tmp_path / "s/disk.img", "")
    words = run("boot", str(tmp_path / "s"), "-snapshot").words
    assert "virt,virtualization=on,gic-version=3" in words and words[-1] == "-snapshot"
    assert f"file={tmp_path}/s/disk.img,format=raw,if=virtio" in words
    assert "user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:2222-:22" in words
    # This machine's KVM is not touched.
    assert "tcg,thread=multi" in words and not [word for word in words if "kvm" in word]


def test_another_port_and_a_server_without_kvm(run, tmp_path, monkeypatch):
    write(tmp_path / "s/disk.img", "")
    monkeypatch.setenv("PORT", "2300")
    monkeypatch.setenv("MACHINE", "virt,gic-version=3")
    words = run("boot", str(tmp_path / "s")).words
    assert words[1] == "virt,gic-version=3" and "user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:2300-:22" in words


def test_help(run):
    found = run("-h")
    assert found.status == 0 and found.out.startswith("usage: scripts/emulated-server make DIR\n")


def test_a_disk_that_is_there_is_kept(run, tmp_path, program):
    program("apt-get", "exit 1\n")
    write(tmp_path / "s/disk.img", "mine")
    assert run("make", str(tmp_path / "s")).err == [
        f"series: error: {tmp_path}/s/disk.img is there: boot it, or remove it"
    ]
    assert (tmp_path / "s/disk.img").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("there, calls", [(False, ["mount", "update-binfmts"]), (True, [])])
def test_the_server_is_made_also_where_nothing_mounts_binfmt_misc_and_waits_for_slow_devices(
    run, tmp_path, program, monkeypatch, there, calls
):
    monkeypatch.setenv("DONE", str(tmp_path / "done"))
    binfmt = tmp_path / "binfmt"
    if there:
        write(binfmt / "status", "enabled\n")
        write(binfmt / "qemu-aarch64", "enabled\n")
    for name in ("mount", "update-binfmts"):
        program(name, f'echo {name} "$@" >> "$DONE"\n')
    program("uname", "echo x86_64\n")
    for name in ("apt-get", "ssh-keygen"):
        program(name, "")
    for name in ("mkdir", "rm"):
        program(name, f'exec /bin/{name} "$@"\n')
    program("mmdebstrap", f'printf "%s\\n" "$@" > "$DONE.words"; cp {tmp_path}/s/patient.conf "$DONE.conf"; exit 1\n')
    own = write(tmp_path / "own", SCRIPT.read_text(encoding="utf-8").replace("/proc/sys/fs/binfmt_misc", str(binfmt)))
    found = run("make", str(tmp_path / "s"), script=own)
    assert found.err[-1] == f"series: error: cannot install Debian: see {tmp_path}/s/make.log"
    done = tmp_path / "done"
    lines = done.read_text(encoding="utf-8").splitlines() if done.exists() else []
    assert [line.split()[0] for line in lines] == calls
    assert "DefaultDeviceTimeoutSec=1h" in (tmp_path / "done.conf").read_text(encoding="utf-8").splitlines()
    words = (tmp_path / "done.words").read_text(encoding="utf-8")
    assert "patient.conf" in words and "LABEL=root / ext4 defaults,x-systemd.device-timeout=0 0 1" in words


@pytest.mark.parametrize(
    "uid, words, line",
    [
        (0, (), "emulated-server: make DIR or boot DIR, see -h"),
        (0, ("stop", "s"), "emulated-server: make DIR or boot DIR, see -h"),
        (0, ("boot",), "emulated-server boot needs a directory: see -h"),
        (0, ("boot", "s"), "there is no {}/s/disk.img: scripts/emulated-server make {}/s"),
        (0, ("make", "s"), "emulated-server make needs Debian: there is no apt-get here"),
        (1000, ("make", "s"), "emulated-server make needs root: files of the server are root's"),
    ],
)
def test_what_is_missing_is_one_line(run, tmp_path, program, monkeypatch, uid, words, line):
    monkeypatch.chdir(tmp_path)
    program("id", f"echo {uid}\n")
    found = run(*words)
    assert (found.status, found.err) == (1, ["series: error: " + line.replace("{}", str(tmp_path))])
    assert not (tmp_path / "s").exists() and not found.words
