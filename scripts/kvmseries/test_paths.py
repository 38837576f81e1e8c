import errno
import multiprocessing
import os
import time

import pytest

from kvmseries import paths
from kvmseries.conftest import below, write
from kvmseries.errors import Fail


def test_whole_is_there_whole(tmp_path):
    with paths.whole(tmp_path / "new/dir") as part:
        write(part / "a", "1")
        assert not (tmp_path / "new/dir").exists()
    assert below(tmp_path / "new") == ["dir", "dir/a"]


@pytest.mark.parametrize("error", [Fail("no"), KeyboardInterrupt(), ValueError()])
def test_whole_is_not_there_at_all_when_it_fails(tmp_path, error):
    before = below(tmp_path)
    with pytest.raises(type(error)):
        with paths.whole(tmp_path / "new/dir") as part:
            write(part / "a", "1")
            raise error
    assert below(tmp_path) == before


def test_whole_keeps_what_was_there_when_it_fails(tmp_path):
    write(tmp_path / "new/dir/old", "1")
    with pytest.raises(Fail):
        with paths.whole(tmp_path / "new/dir"):
            raise Fail("no")
    assert below(tmp_path / "new") == ["dir", "dir/old"]


def test_whole_takes_the_place_of_what_was_there(tmp_path):
    write(tmp_path / "new/dir/old", "1")
    with paths.whole(tmp_path / "new/dir") as part:
        write(part / "a", "1")
    assert below(tmp_path / "new") == ["dir", "dir/a"]


def test_whole_clears_the_leftovers_of_a_killed_run(tmp_path):
    write(tmp_path / "new/.dir.part/half", "1")
    with paths.whole(tmp_path / "new/dir") as part:
        assert below(part) == []
    assert below(tmp_path / "new") == ["dir"]


def test_whole_turns_a_full_disk_into_one_line(small_disk):
    with pytest.raises(Fail, match="^disk full: .*SERIES_OUT"):
        with paths.whole(small_disk / "dir") as part:
            (part / "a").write_bytes(b"x" * (2 << 20))
    assert below(small_disk) == []


@pytest.mark.parametrize("number, line", [
    (errno.ENOSPC, "disk full: /x/y"), (errno.EDQUOT, "disk full: /x/y"),
    (errno.EACCES, "no permission to write /x/y"), (errno.EROFS, "no permission to write /x/y"),
    (errno.ENOTDIR, "/x/y: ")])
def test_errors_of_the_system_become_one_line(number, line):
    assert str(paths.os_fail(OSError(number, os.strerror(number), "/x/y"))).startswith(line)
    assert str(paths.os_fail(OSError(number, os.strerror(number)), "/x/y")).startswith(line)


@pytest.mark.parametrize("name", ["new", "new/deep/er", "empty"])
def test_a_new_or_empty_directory_is_a_destination(tmp_path, name):
    (tmp_path / "empty").mkdir()
    paths.check_destination(tmp_path / name)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name, reason", [
    ("file", "is a file: name a directory"), ("file/below", "is a file$"),
    ("full", "is not empty: name a directory"), ("link", "is a file: "), ("dangling", "is a file: ")])
def test_what_is_no_destination(tmp_path, name, reason):
    write(tmp_path / "file", "1")
    write(tmp_path / "full/.hidden", "1")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    before = below(tmp_path)
    with pytest.raises(Fail, match=f"destination {tmp_path / name}.*{reason}"):
        paths.check_destination(tmp_path / name)
    assert below(tmp_path) == before


def test_a_destination_without_permission(read_only):
    with pytest.raises(Fail, match=f"no permission to write {read_only}: choose another"):
        paths.check_destination(read_only / "new")


def test_remove_takes_files_links_trees_and_nothing(tmp_path):
    write(tmp_path / "x/kept/a", "1")
    write(tmp_path / "x/tree/a", "1")
    write(tmp_path / "x/file", "1")
    (tmp_path / "x/link").symlink_to(tmp_path / "x/kept")
    for name in ("tree", "file", "link", "nothing"):
        paths.remove(tmp_path / "x" / name)
    assert below(tmp_path / "x") == ["kept", "kept/a"]


def test_out_is_where_the_environment_says(tmp_path, monkeypatch):
    assert paths.out("a", "b") == tmp_path / "out/a/b"
    assert (tmp_path / "out/a").is_dir()
    monkeypatch.delenv("SERIES_OUT")
    assert paths.out("x") == paths.ROOT / "out/x"


def test_out_that_cannot_be_made_is_one_line(tmp_path, monkeypatch):
    write(tmp_path / "file", "1")
    monkeypatch.setenv("SERIES_OUT", str(tmp_path / "file/out"))
    with pytest.raises(Fail, match="file"):
        paths.out("a")


def _hold(log, seconds):
    with paths.locked("thing", lambda text: _note(log, text)):
        _note(log, "in")
        time.sleep(seconds)
        _note(log, "out")


def _note(log, text):
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def test_a_lock_is_held_by_one_process_at_a_time(tmp_path):
    fork = multiprocessing.get_context("fork")
    runs = [fork.Process(target=_hold, args=(tmp_path / "log", 0.2)) for _ in range(3)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(20)
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line in ("in", "out")] == ["in", "out"] * 3
    assert "waiting for another run that is making thing" in lines


def test_a_lock_is_free_again_when_its_holder_is_killed(tmp_path):
    run = multiprocessing.get_context("fork").Process(target=_hold, args=(tmp_path / "log", 60))
    run.start()
    while not (tmp_path / "log").exists():
        time.sleep(0.01)
    run.kill()
    run.join(20)
    said = []
    with paths.locked("thing", said.append):
        assert not said


def test_a_lock_is_free_again_after_a_failure():
    with pytest.raises(Fail):
        with paths.locked("a/b"):
            raise Fail("no")
    said = []
    with paths.locked("a/b", said.append):
        assert not said


def test_a_place_where_nothing_can_be_made_is_named():
    with pytest.raises(Fail, match="no directory can be made in /proc: name another"):
        with paths.whole("/proc/tree"):
            pass
