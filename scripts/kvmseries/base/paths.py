"""Where things are, and how to make a directory that is there whole or not at all.

Everything that the tool makes is under out/ (git-ignored; SERIES_OUT moves it):
  trees/      git trees, one directory for each base, with worktrees base, series, upto-N
  selftests/  test programs and guest images
  results/    results JSON;  report/  the page;  logs/  the output of long commands
Downloads and the compiler cache are in the user's cache directory, kvm-series/ (SERIES_CACHE is
another): all clones of a user share them, and there is nothing that cannot be fetched again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from .errors import Fail

ROOT = Path(__file__).resolve().parents[3]
PATCHES = ROOT / "patches"
TESTS = ROOT / "tools-testing-selftests-kvm"


def out(*parts: str) -> Path:
    """The path of `parts` under out/; the directory that holds it is made."""
    return _below(Path(os.environ.get("SERIES_OUT") or ROOT / "out").absolute(), parts)


def cache(*parts: str) -> Path:
    """The path of `parts` under the user's cache directory; the directory that holds it is made."""
    return _below(cache_root(), parts)


def cache_root() -> Path:
    """The cache directory: SERIES_CACHE, or kvm-series in XDG_CACHE_HOME or ~/.cache.  Raises Fail if the
    environment names none."""
    if os.environ.get("SERIES_CACHE"):
        return Path(os.environ["SERIES_CACHE"]).absolute()
    user = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(user):
        return Path(user) / "kvm-series"
    try:
        return Path.home() / ".cache/kvm-series"
    except RuntimeError:
        raise Fail("this user has no home directory for the cache: set SERIES_CACHE to a directory") from None


def own_tree() -> str | None:
    """The user's own tree that the environment names: $TREE; None if there is none."""
    return os.environ.get("TREE") or None


def check_writable(folder: Path) -> None:
    """Make the directory `folder` if it is not there; raise Fail unless files can be made in it.  For
    programs that do not say so in one line."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"x" * 4096)
            probe.flush()
    except OSError as error:
        raise os_fail(error, folder) from None


def _below(root: Path, parts: tuple[str, ...]) -> Path:
    path = root.joinpath(*parts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise os_fail(error, path.parent) from None
    return path


def _in_cache(path: str | Path) -> bool:
    """Whether `path` is in the cache directory."""
    try:
        return Path(path).is_relative_to(cache_root())
    except Fail:
        return False


def os_fail(error: OSError, path: str | Path | None = None) -> Fail:
    """The Fail for an OSError: a full disk, no permission, a file in the way."""
    where = error.filename or path or "the disk"
    cached = _in_cache(where)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        name, need = "SERIES_OUT", "a base tree takes 1.7 GB, a build 0.4 GB"
        if cached:
            name, need = "SERIES_CACHE", "downloads and compiled objects take up to 6 GB"
        return Fail(f"disk full: {where}; free some space, or set {name} to a bigger disk ({need})")
    hint = "; set SERIES_CACHE to a directory of yours" if cached else ""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Fail(f"no permission to write {where}: {error.strerror}{hint}")
    if path and error.errno in (errno.EEXIST, errno.ENOTDIR) and str(where) != str(path):
        return Fail(f"cannot write {path}: {where} is not a directory{hint}")
    return Fail(f"{where}: {error.strerror}{hint}")


def remove(path: str | Path) -> None:
    """Remove a file or a tree, whichever it is, if it is there."""
    path = Path(path)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Make the directory `path` whole or not at all.

    Yields an empty directory beside it, which becomes `path` when the block ends and is removed
    when the block fails.  A leftover of a run that was killed is removed first: the caller holds
    the lock that covers `path`.
    """
    path = Path(path)
    part = path.with_name(f".{path.name}.part")
    parents = []
    try:
        parents = [parent for parent in path.parents if not parent.exists()]
        remove(part)
        try:
            part.mkdir(parents=True)
        except FileNotFoundError:
            # Not for want of parents: /proc and the like let nobody make anything.
            raise Fail(f"no directory can be made in {path.parent}: name another") from None
        yield part
        remove(path)
        part.rename(path)
    except OSError as error:
        raise os_fail(error, path) from None
    finally:
        remove(part)
        for parent in parents if not path.exists() else ():
            with contextlib.suppress(OSError):
                parent.rmdir()


@contextlib.contextmanager
def locked(name: str, say: Callable[[str], object] | None = None, shared: bool = False) -> Iterator[None]:
    """Hold the lock `name` (one for each thing that two runs must not make at once).

    shared: of a thing in the cache directory, which the runs of other clones must not make either."""
    path = (cache if shared else out)("locks", name.replace("/", "_"))
    try:
        file = open(path, "w", encoding="utf-8")  # pylint: disable=consider-using-with
    except OSError as error:
        raise os_fail(error, path) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if say:
                say(f"waiting for another run that is making {name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def check_destination(path: str | Path) -> None:
    """Raise Fail unless `path` can be made: it is not there or is an empty directory."""
    path = Path(path)
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise Fail(f"destination {path} is a file: name a directory that is new or empty")
    if path.is_dir() and any(path.iterdir()):
        raise Fail(f"destination {path} is not empty: name a directory that is new or empty")
    parent = path.absolute()
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise Fail(f"destination {path}: {parent} is a file")
    check_folder(parent, "choose another destination")


def check_folder(folder: Path, instead: str) -> None:
    """Raise Fail, with what to do `instead`, unless files can be made in the directory `folder`."""
    # As root, and where nothing can be made whatever the permissions say, such as /proc, only trying tells.
    try:
        with tempfile.TemporaryDirectory(prefix=".probe.", dir=folder):
            pass
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise Fail(f"no permission to write {folder}: {instead}") from None
        raise Fail(f"nothing can be made in {folder} ({error.strerror}): {instead}") from None
