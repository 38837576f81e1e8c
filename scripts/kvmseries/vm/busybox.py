"""The guest's busybox: Debian's static one, of the guest's architecture.

A copy is kept in the cache directory, where the user may put one where there is no mirror of Debian.
"""

from pathlib import Path

from ..base import debian, distro, paths, proc
from ..base.errors import Fail
from ..base.progress import say
from ..kernel import toolchain


def path(arch: str) -> Path:
    """Path of a static busybox for `arch`."""
    target = paths.cache(f"busybox-{arch}")
    with paths.locked(target.name, say, shared=True):
        if not target.exists():
            _fetch(arch, target)
    return target


def _fetch(arch: str, target: Path) -> None:
    if not debian.has_mirror():
        raise Fail(
            f"{distro.title()} has no mirror of Debian, which the guest's busybox is from: put a static one for "
            f"{toolchain.machine(arch)} at {target}, or {distro.CONTAINER}"
        )
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
