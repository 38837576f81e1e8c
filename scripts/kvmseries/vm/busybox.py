"""The guest's busybox: a static program of the guest's architecture.

Built from source if SERIES_BUSYBOX is a directory with busybox's; from Debian where the machine has a Debian
mirror; otherwise the machine's own if it is static and of that architecture.  A copy is kept in the cache
directory, where the user may put one, too.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import struct
from pathlib import Path

from ..base import debian, distro, files, paths, proc
from ..base.errors import Fail
from ..base.progress import say
from ..kernel import toolchain

# e_machine of ELF's header.
_ELF = {"arm64": 183, "x86_64": 62}
_PT_INTERP = 3


def path(arch: str) -> Path:
    """Path of a static busybox for `arch`."""
    source = os.environ.get("SERIES_BUSYBOX")
    name = f"busybox-{arch}" + (f"-{_version(Path(source))}" if source else "")
    target = paths.cache(name)
    with paths.locked(name, say, shared=True):
        if not target.exists():
            if source:
                _build(Path(source), arch, target)
            elif debian.has_mirror():
                _from_debian(arch, target)
            else:
                _own(arch, target)
    return target


def static_for(program: str | Path, arch: str) -> bool:
    """Whether the file `program` is a static program for `arch`."""
    try:
        data = Path(program).read_bytes()
        if data[:6] != b"\x7fELF\x02\x01":
            return False
        (machine,) = struct.unpack_from("<H", data, 18)
        (offset,) = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        kinds = [struct.unpack_from("<I", data, offset + size * number)[0] for number in range(count)]
    except (OSError, struct.error):
        return False
    return machine == _ELF[arch] and _PT_INTERP not in kinds


def _version(source: Path) -> str:
    """ "1.37.0", from the Makefile of busybox's source."""
    try:
        text = (source / "Makefile").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = [re.search(rf"^{name} *= *(\d+)$", text, re.M) for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL")]
    if not all(found) or not (source / "applets/applets.c").exists():
        raise Fail(f"SERIES_BUSYBOX: {source} is no source of busybox: give the directory that its archive unpacks to")
    return ".".join(match[1] for match in found if match)


def _build(source: Path, arch: str, target: Path) -> None:
    """Build `source`, which stays as it is, to `target`."""
    toolchain.install(arch)
    folder = target.with_name(f"{target.name}.d")
    with paths.whole(folder) as part:
        # A tree that was built in takes no other directory.
        tree, log = part / "source", paths.out("logs", f"{target.name}.log")
        shutil.copytree(source, tree, symlinks=True)
        make = ["make", "-C", str(tree), f"CROSS_COMPILE={toolchain.prefix(arch)}"]
        say(f"building {target.name} from {source}")
        proc.run([*make, "mrproper", "defconfig"], "configuring busybox", log=log)
        config = (tree / ".config").read_text(encoding="utf-8")
        # tc does not compile with the headers of linux 6.8 and later.
        for old, new in (("# CONFIG_STATIC is not set", "CONFIG_STATIC=y"), ("CONFIG_TC=y", "# CONFIG_TC is not set")):
            config = config.replace(f"{old}\n", f"{new}\n")
        files.write(tree / ".config", config)
        proc.run([*make, f"-j{len(os.sched_getaffinity(0))}", "busybox"], f"building busybox for {arch}", log=log)
        if not static_for(tree / "busybox", arch):
            raise Fail(f"{source} built no static program for {arch}: see {log}")
        (tree / "busybox").rename(target)
    paths.remove(folder)


def _from_debian(arch: str, target: Path) -> None:
    deb = debian.fetch_native("busybox-static", toolchain.debian_arch(arch))
    folder = target.with_name(f"{target.name}.d")
    with paths.whole(folder) as part:
        proc.run(["dpkg-deb", "-x", str(deb), str(part)], "dpkg-deb")
        # /bin before Debian's /usr merge.
        found = next(
            (part / place / "busybox" for place in ("usr/bin", "bin") if (part / place / "busybox").is_file()), None
        )
        if not found:
            raise Fail(f"{deb} has no busybox in it")
        found.rename(target)
    paths.remove(folder)


def _own(arch: str, target: Path) -> None:
    """Copy the machine's own busybox to `target`."""
    native = platform.machine() == toolchain.machine(arch)
    found = shutil.which("busybox")
    if native and not (found and static_for(found, arch)) and distro.family() == "ubuntu":
        debian.install("busybox")
        found = shutil.which("busybox")
    if not (found and static_for(found, arch)):
        what = f"the guest needs a static busybox for {toolchain.machine(arch)}"
        source = "set SERIES_BUSYBOX to a directory with its source"
        if native:
            raise Fail(f"{what}: {distro.how('busybox')}, {source}, or put one at {target}")
        raise Fail(
            f"{what}, and {distro.title()} has none for another architecture: {source}, put one at {target}, or "
            f"{distro.CONTAINER}"
        )
    with files.whole(target) as part:
        shutil.copyfile(found, part)
        part.chmod(0o755)
