"""Which QEMU a guest runs on.  Fetching a newer one is tested with virtual time, in test_vtime.py."""

import pytest

from kvmseries.vm import emulator

STRESS = "/tests/stage2_fault_stress_test"


@pytest.fixture(name="newest")
def _newest(monkeypatch, tmp_path):
    """A list of what was asked for; what is had is /newer."""
    asked = []

    def newer(arch, oldest, *_):
        asked.append((arch, oldest))
        return emulator.Qemu("/newer", tmp_path)

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


def test_the_words_of_a_command_line(tmp_path):
    assert emulator.Qemu("qemu").words() == ["qemu"]
    (tmp_path / "usr/lib/some-triplet/qemu").mkdir(parents=True)
    words = emulator.Qemu(tmp_path / "usr/bin/qemu", tmp_path).words()
    assert words[:3] == ["env", f"QEMU_MODULE_DIR={tmp_path}/usr/lib/some-triplet/qemu", f"{tmp_path}/usr/bin/qemu"]
    assert words[3:5] == ["-L", f"{tmp_path}/usr/share/qemu"]
