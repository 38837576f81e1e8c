"""What QEMU links with, for another architecture than the machine's, and what a program needs to run
where none of it is installed."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from kvmseries.base import debian, paths, proc
from kvmseries.base.errors import Fail
from kvmseries.base.progress import say
from kvmseries.kernel import toolchain

# Debian's packages; of several names the first that the suite has.  No libc and no linux headers:
# those of the cross compiler must not be hidden by others.
_PACKAGES = (
    ("libglib2.0-0t64", "libglib2.0-0"),
    *((name,) for name in "libglib2.0-dev libpcre2-8-0 libpcre2-dev libfdt1 libfdt-dev zlib1g zlib1g-dev".split()),
)
_PKG_CONFIG = """\
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")
export PKG_CONFIG_LIBDIR=$root/usr/lib/{triplet}/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
exec pkg-config "$@"
"""


def cross(arch: str) -> Path:
    """The directory with libraries and headers for `arch` and a program `pkg-config` that knows them;
    fetched and unpacked if it is not there.  Raises Fail if the packages cannot be had."""
    folder = paths.cache(f"sysroot-{debian.own_suite()}-{toolchain.debian_arch(arch)}")
    with paths.locked(folder.name, say, shared=True):
        if not folder.exists():
            say(f"fetching the libraries of QEMU for {arch}")
            proc.need("dpkg-deb")
            with paths.whole(folder) as part:
                for names in _PACKAGES:
                    deb = _fetch(names, toolchain.debian_arch(arch))
                    proc.run(["dpkg-deb", "-x", str(deb), str(part)], "dpkg-deb")
                relink(part)
                script = part / "pkg-config"
                script.write_text(_PKG_CONFIG.format(triplet=f"{toolchain.machine(arch)}-linux-gnu"), encoding="utf-8")
                script.chmod(0o755)
    return folder


def _fetch(names: Sequence[str], arch: str) -> Path:
    for name in names[:-1]:
        try:
            return debian.fetch_native(name, arch)
        except Fail:
            # Not in this suite; if it was for another reason, the last one says so.
            continue
    return debian.fetch_native(names[-1], arch)


def relink(root: Path) -> None:
    """Have absolute symbolic links below `root` point into it."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            if path.is_symlink() and os.path.isabs(os.readlink(path)):
                target = f"{root}{os.readlink(path)}"
                path.unlink()
                path.symlink_to(os.path.relpath(target, folder))


def flags(folder: Path, arch: str) -> tuple[str, str]:
    """(compiler's, linker's) flags for a cross build with the libraries in `folder`."""
    words = (f"{flag}{place}" for flag in ("-L", "-Wl,-rpath-link,") for place in library_folders(folder, arch))
    return f"-I{folder}/usr/include", " ".join(words)


def library_folders(folder: Path, arch: str) -> list[Path]:
    """Where in `folder` libraries are: (with and without a merged /usr)."""
    return [folder / place / f"{toolchain.machine(arch)}-linux-gnu" for place in ("usr/lib", "lib")]


def needed(text: str) -> tuple[str | None, list[str]]:
    """(loader or None, names of libraries) that `readelf -lW -d` prints of a program or library."""
    loader = re.search(r"program interpreter: ([^\]\s]+)\]", text)
    return (loader[1] if loader else None, re.findall(r"\(NEEDED\).*Shared library: \[([^\]]+)\]", text))


def libraries(program: str | Path, arch: str, folder: Path | None = None) -> list[Path]:
    """Paths of the shared libraries that `program` needs, and of its loader, which is the last.

    Each path's last part is the name that the program knows the library by (it may be a link).
    folder: the sysroot it was linked with, None for the machine's own libraries.  An empty list for a
    static program.  Raises Fail if one is not found.
    """
    found, todo, loader = {}, [Path(program)], None
    while todo:
        text = proc.run(["readelf", "-lW", "-d", str(todo.pop())], "readelf")
        interpreter, names = needed(text)
        loader = loader or interpreter
        for name in names:
            if name not in found and not (loader and name == Path(loader).name):
                found[name] = _library(name, arch, folder)
                todo.append(found[name])
    if loader:
        found[loader] = _library(Path(loader).name, arch, folder)
    return list(found.values())


def _library(name: str, arch: str, folder: Path | None) -> Path:
    for place in library_folders(folder, arch) if folder else ():
        if (place / name).exists():
            return place / name
    compiler = f"{toolchain.prefix(arch)}gcc"
    path = Path(proc.run([compiler, f"-print-file-name={name}"], compiler).strip())
    # A name that the compiler does not know comes back as it is.
    if not path.is_absolute() or not path.exists():
        raise Fail(
            f"{name}, which QEMU for {arch} is linked with, is not found: remove {folder or 'the build'} and repeat"
        )
    return path
