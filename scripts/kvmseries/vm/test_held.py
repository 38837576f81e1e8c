import shutil

from kvmseries.conftest import wanted
from kvmseries.vm import busybox, held


def test_the_program_is_static_for_arm64_and_built_once(tmp_path, monkeypatch):
    wanted("aarch64-linux-gnu-gcc")
    monkeypatch.setenv("SERIES_OUT", str(tmp_path))
    made = held.program()
    assert busybox.static_for(made, "arm64") and made.stat().st_mode & 0o111
    written = made.stat().st_mtime_ns
    assert held.program() == made and made.stat().st_mtime_ns == written


def test_another_source_is_another_program(tmp_path, monkeypatch):
    wanted("aarch64-linux-gnu-gcc")
    monkeypatch.setenv("SERIES_OUT", str(tmp_path))
    source = shutil.copy2(held.SOURCE, tmp_path / "hold_vm.c")
    first = held.program()
    source.write_text(source.read_text(encoding="utf-8") + "/* another */\n", encoding="utf-8")
    monkeypatch.setattr(held, "SOURCE", source)
    assert held.program() != first
