"""Which QEMU a guest runs on.  Fetching a newer one is tested with virtual time, in test_vtime.py."""

import pytest

from kvmseries.base import debian
from kvmseries.base.errors import Fail
from kvmseries.vm import emulator

STRESS = "/tests/stage2_fault_stress_test"


@pytest.fixture(name="newest")
def _newest(monkeypatch, tmp_path):
    """A list of what was asked for; what is had is /newer."""
    asked = []

    def newer(arch, oldest, *_):
        asked.append((arch, oldest))
        return emulator.Qemu("/newer", tmp_path)

    emulator._that_zeroes.cache_clear()  # pylint: disable=protected-access
    monkeypatch.setattr(emulator, "newer", newer)
    return asked


NESTED, LOG = "kvm-arm.mode=nested", ["/tests/dirty_log_test"]


@pytest.mark.parametrize(
    "version, arch, words, accel, params, asked",
    [
        ("7.2.22", "arm64", [STRESS], "tcg", (), (8, 2)),
        ("7.2.22", "arm64", ["sh", "-c", "$0 $@", f"{STRESS} -t 24"], "tcg", (), (8, 2)),
        ("8.1.5", "arm64", [STRESS], "tcg", (), (8, 2)),
        ("8.2.0", "arm64", [STRESS], "tcg", (), None),
        ("10.0.2", "arm64", [STRESS], "tcg", (), None),
        ("7.2.22", "arm64", LOG, "tcg", (), None),
        ("7.2.22", "arm64", [STRESS], "kvm", (), None),
        ("7.2.22", "x86_64", [STRESS], "tcg", (), None),
        # Nested guests get one whose CPU has them.
        ("7.2.22", "arm64", LOG, "tcg", ("a=1", NESTED), (9, 0)),
        ("8.2.0", "arm64", LOG, "tcg", (NESTED,), (9, 0)),
        ("9.0.0", "arm64", LOG, "tcg", (NESTED,), None),
        ("7.2.22", "arm64", LOG, "kvm", (NESTED,), None),
        ("7.2.22", "arm64", LOG, "tcg", ("kvm-arm.mode=protected",), None),
    ],
)
def test_only_what_needs_it_gets_a_newer_qemu(program, newest, version, arch, words, accel, params, asked):
    program(emulator.binary(arch), f"echo 'QEMU emulator version {version} (Debian)'\n")
    found = emulator.for_commands(arch, [("x", 1, words)], accel, params).program
    assert found == ("/newer" if asked else emulator.binary(arch))
    assert newest == ([("arm64", asked)] if asked else [])


def test_where_there_is_no_newer_one_its_own_is_taken_and_a_line_says_so_once(program, monkeypatch, capsys):
    program("qemu-system-aarch64", "echo 'QEMU emulator version 7.2.22 (Debian)'\n")

    def fetch(package):
        raise Fail(f"no {package} here")

    emulator._that_zeroes.cache_clear()  # pylint: disable=protected-access
    monkeypatch.setattr(debian, "fetch_backport", fetch)
    for _ in range(2):
        assert emulator.for_commands("arm64", [("x", 1, [STRESS])]).program == "qemu-system-aarch64"
    emulator._that_zeroes.cache_clear()  # pylint: disable=protected-access
    lines = [line for line in capsys.readouterr().err.splitlines() if "Going on" in line]
    assert len(lines) == 1
    assert "needs QEMU 8.2 or newer, and none can be had: no qemu-system-arm here" in lines[0]
    assert "QEMU emulator version 7.2.22 (Debian), on which stage2_fault_stress_test may fail" in lines[0]


def test_the_words_of_a_command_line(tmp_path):
    assert emulator.Qemu("qemu").words() == ["qemu"]
    (tmp_path / "usr/lib/some-triplet/qemu").mkdir(parents=True)
    words = emulator.Qemu(tmp_path / "usr/bin/qemu", tmp_path).words()
    assert words[:3] == ["env", f"QEMU_MODULE_DIR={tmp_path}/usr/lib/some-triplet/qemu", f"{tmp_path}/usr/bin/qemu"]
    assert words[3:5] == ["-L", f"{tmp_path}/usr/share/qemu"]
