import errno
import os
import time

import pytest

from kvmseries.base import debian, paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import below, started, write
from kvmseries.kernel import toolchain


@pytest.mark.parametrize("left", [None, "new/dir/old", "new/.dir.part/half"])
def test_whole_is_there_whole(tmp_path, left):
    """Whatever was there, a killed run's leftovers, too."""
    if left:
        write(tmp_path / left, "1")
    with paths.whole(tmp_path / "new/dir") as part:
        assert below(part) == [] and (tmp_path / "new/dir").exists() == (left == "new/dir/old")
        write(part / "a", "1")
    assert below(tmp_path / "new") == ["dir", "dir/a"]


@pytest.mark.parametrize("error", [Fail("no"), KeyboardInterrupt(), ValueError()])
@pytest.mark.parametrize("old", [True, False])
def test_whole_leaves_what_was_there_when_it_fails(tmp_path, error, old):
    if old:
        write(tmp_path / "new/dir/old", "1")
    before = below(tmp_path)
    with pytest.raises(type(error)):
        with paths.whole(tmp_path / "new/dir") as part:
            write(part / "a", "1")
            raise error
    assert below(tmp_path) == before
    with pytest.raises(Fail, match="no directory can be made in /proc: name another"), paths.whole("/proc/tree"):
        pass


def test_whole_turns_a_full_disk_into_one_line(small_disk):
    with pytest.raises(Fail, match="^disk full: .*SERIES_OUT"):
        with paths.whole(small_disk / "dir") as part:
            (part / "a").write_bytes(b"x" * (2 << 20))
    assert below(small_disk) == []


@pytest.mark.parametrize(
    "number, line",
    [
        (errno.ENOSPC, "disk full: /x/y"),
        (errno.EDQUOT, "disk full: /x/y"),
        (errno.EACCES, "no permission to write /x/y"),
        (errno.EROFS, "no permission to write /x/y"),
        (errno.ENOTDIR, "/x/y: "),
    ],
)
def test_errors_of_the_system_become_one_line(number, line):
    assert str(paths.os_fail(OSError(number, os.strerror(number), "/x/y"))).startswith(line)
    assert str(paths.os_fail(OSError(number, os.strerror(number)), "/x/y")).startswith(line)


@pytest.mark.parametrize(
    "name, reason",
    [
        *((name, None) for name in ("new", "new/deep/er", "empty")),
        ("file", "is a file: name a directory"),
        ("file/below", "is a file$"),
        ("full", "is not empty: name a directory"),
        ("link", "is a file: "),
        ("dangling", "is a file: "),
    ],
)
def test_what_is_a_destination(tmp_path, name, reason):
    (tmp_path / "empty").mkdir()
    write(tmp_path / "file", "1")
    write(tmp_path / "full/.hidden", "1")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    before = below(tmp_path)
    if reason:
        with pytest.raises(Fail, match=f"destination {tmp_path / name}.*{reason}"):
            paths.check_destination(tmp_path / name)
    else:
        paths.check_destination(tmp_path / name)
    assert below(tmp_path) == before


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
    write(tmp_path / "file", "1")
    monkeypatch.setenv("SERIES_OUT", str(tmp_path / "file/out"))
    with pytest.raises(Fail, match=f"{tmp_path}/file"):
        paths.out("a")
    monkeypatch.delenv("SERIES_OUT")
    assert paths.out("x") == paths.ROOT / "out/x"


def _hold(log, seconds):
    with paths.locked("a/b", lambda text: _note(log, text)):
        _note(log, "in")
        time.sleep(seconds)
        _note(log, "out")


def _note(log, text):
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def test_a_lock_is_held_by_one_process_at_a_time(tmp_path):
    for run in started(_hold, *[(tmp_path / "log", 0.2)] * 3):
        run.join(20)
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line in ("in", "out")] == ["in", "out"] * 3
    assert "waiting for another run that is making a/b" in lines


def test_a_lock_is_free_again_when_its_holder_is_killed_or_fails(tmp_path):
    (run,) = started(_hold, (tmp_path / "log", 60))
    while not (tmp_path / "log").exists():
        time.sleep(0.01)
    run.kill()
    run.join(20)
    said = []
    with pytest.raises(Fail), paths.locked("a/b", said.append):
        raise Fail("no")
    with paths.locked("a/b", said.append):
        assert not said


def test_the_cache_is_the_users_and_the_environment_moves_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SERIES_CACHE", str(tmp_path / "moved"))
    assert paths.cache("x") == tmp_path / "moved/x"
    monkeypatch.delenv("SERIES_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    # A relative XDG_CACHE_HOME is to be ignored, says the specification.
    for user, root in (("", "home/.cache"), ("relative", "home/.cache"), (str(tmp_path / "xdg"), "xdg")):
        monkeypatch.setenv("XDG_CACHE_HOME", user)
        assert paths.cache("deb", "x") == tmp_path / root / "kvm-series/deb/x"
        assert (tmp_path / root / "kvm-series/deb").is_dir()

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(paths.Path, "home", no_home)
    with pytest.raises(Fail, match="no home directory for the cache: set SERIES_CACHE"):
        paths.cache("x")


def _fill_whole():
    with paths.locked("x", shared=True), paths.whole(paths.cache("x")) as part:
        (part / "a").write_bytes(b"x" * (2 << 20))


# The ways in which the cache directory is filled.
FILLS = (_fill_whole, toolchain.environment, lambda: debian.fetch_native("herd", "amd64"))


@pytest.mark.parametrize("fill", FILLS)
def test_a_cache_that_cannot_be_written_is_one_line(tmp_path, read_only, monkeypatch, fill):
    file = write(tmp_path / "file", "1")
    for folder in (read_only / "cache", read_only, file):
        monkeypatch.setenv("SERIES_CACHE", str(folder))
        begin = f"{file}" if folder == file else f"no permission to write {read_only}"
        with pytest.raises(Fail, match=f"^{begin}.*set SERIES_CACHE to a directory of yours$"):
            fill()


@pytest.mark.parametrize("fill", FILLS)
def test_a_cache_that_is_full_is_one_line_and_nothing_half_written(small_disk, monkeypatch, fill):
    monkeypatch.setenv("SERIES_CACHE", str(small_disk))
    # Room for the locks, and for nothing else.
    for name in "x", "apt":
        write(small_disk / "locks" / name, "")
    with pytest.raises(OSError), open(small_disk / "rest", "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    before = below(small_disk)
    with pytest.raises(Fail, match="^disk full: .*set SERIES_CACHE to a bigger disk"):
        fill()
    new = [name for name in below(small_disk) if name not in before and "/" in name]
    assert not [name for name in new if not name.startswith("apt/")]


def _share(log, clone, seconds):
    """What a clone does: fill the cache with what is not there."""
    os.environ["SERIES_OUT"] = clone
    target = paths.cache("thing")
    with paths.locked("thing", shared=True):
        if not target.exists():
            with paths.whole(target) as part:
                time.sleep(seconds)
                (part / "a").write_text("1", encoding="utf-8")
            _note(log, "made")


def test_two_clones_fill_the_cache_once(tmp_path):
    for run in started(_share, *((tmp_path / "log", str(tmp_path / name), 0.2) for name in "ab")):
        run.join(20)
    assert (tmp_path / "log").read_text(encoding="utf-8") == "made\n"
    assert below(paths.cache("thing")) == ["a"]
