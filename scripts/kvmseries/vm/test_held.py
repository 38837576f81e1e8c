import subprocess

from kvmseries.conftest import wanted, write
from kvmseries.vm import held


def test_the_program_is_static_for_arm64_and_built_once(tmp_path, monkeypatch):
    wanted("aarch64-linux-gnu-gcc")
    monkeypatch.setenv("SERIES_OUT", str(tmp_path))
    made = held.program()
    headers = subprocess.run(["readelf", "-h", "-l", made], check=True, capture_output=True, text=True).stdout
    assert "AArch64" in headers and "INTERP" not in headers and made.stat().st_mode & 0o111
    written = made.stat().st_mtime_ns
    assert held.program() == made and made.stat().st_mtime_ns == written
    # Another source is another program.
    text = held.SOURCE.read_text(encoding="utf-8")
    monkeypatch.setattr(held, "SOURCE", write(tmp_path / "hold_vm.c", f"{text}/* another */\n"))
    assert held.program() != made
