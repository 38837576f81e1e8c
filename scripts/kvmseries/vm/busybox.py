"""The guest's busybox: a static program of the guest's architecture.

From Debian where the machine has a Debian mirror; otherwise the machine's own if it is static and of that
architecture.  A copy is kept in the cache directory, where the user may put one, too.
"""

from __future__ import annotations

import platform
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
    target = paths.cache(f"busybox-{arch}")
    with paths.locked(target.name, say, shared=True):
        if not target.exists():
            (_from_debian if debian.has_mirror() else _own)(arch, target)
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
        if native:
            raise Fail(f"{what}: {distro.how('busybox')}, or put one at {target}")
        raise Fail(
            f"{what}, and {distro.title()} has none for another architecture: put one at {target}, or {distro.CONTAINER}"
        )
    with files.whole(target) as part:
        shutil.copyfile(found, part)
        part.chmod(0o755)
