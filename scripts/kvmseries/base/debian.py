"""Packages of Debian: installing what is lacking, and fetching what is not for this machine.

Fetching uses an apt state of its own in the cache directory, with the mirror that the machine's apt is
configured for, so that other suites and architectures can be had without touching the system.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Literal

from . import distro, paths, proc
from .errors import Fail
from .progress import say

# What each kind of work needs: Debian packages on top of git and make.
GROUPS = {
    "fetch": "xz-utils",
    "build": "gcc libc6-dev make flex bison bc ccache cpio rsync perl libelf-dev libssl-dev kmod",
    "build-arm64": "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
    "build-x86_64": "gcc-x86-64-linux-gnu libc6-dev-amd64-cross",
    "boot-arm64": "qemu-system-arm",
    "boot-x86_64": "qemu-system-x86 seabios",
    "check": "perl",
    # Besides compilers: what `make check` runs.
    "checks": "groff-base",
    # Packages of kernels for other machines.
    "hostkernel": "dpkg-dev debhelper fakeroot rsync kmod cpio",
    "static": "sparse",
    # The model checker.  Debian 12's own rustc is too old for its crates; rustc-web is a newer one.
    "model": "cargo rustc",
    "model-debian12": "cargo-web rustc-web",
    "vtime": "gcc libc6-dev",
    # QEMU, with the few features that a migration needs.
    "qemu": "gcc libc6-dev make perl ccache ninja-build pkg-config binutils libglib2.0-dev libfdt-dev zlib1g-dev",
    # Firmware for its tests on x86, which Debian's tarball lacks.
    "qemu-test": "seabios ipxe-qemu qemu-system-data",
}
_UPDATE = ["apt-get", "-q", "-o", "APT::Update::Error-Mode=any", "update"]
_SITE = re.compile(r"^https?://\S+$|^file:\S+$")


def install(*groups: str) -> None:
    """Install the packages of `groups` that are lacking; says which.  Asks nothing.

    Where there is no dpkg this does nothing: a missing program is named when it is needed.
    """
    if not shutil.which("dpkg-query"):
        return
    wanted = [name for group in groups for name in GROUPS[group].split()]
    lacking = [name for name in dict.fromkeys(wanted) if not _installed(name)]
    if not lacking:
        return
    say(f"installing {' '.join(lacking)}")
    # Where nobody sits at a terminal sudo must not wait for a password.
    sudo = [] if os.geteuid() == 0 else ["sudo"] if sys.stdin and sys.stdin.isatty() else ["sudo", "-n"]
    if sudo and not shutil.which("sudo"):
        raise Fail(f"not root and no sudo: install these packages first: {' '.join(lacking)}")
    # As an argument: sudo drops the environment.
    sudo += ["env", "DEBIAN_FRONTEND=noninteractive"]
    log = paths.out("logs", "apt-install.log")
    apt = ["apt-get", "-o", "DPkg::Lock::Timeout=300", "-q"]
    for command in (
        # What an interrupted dpkg of before left; apt-get would refuse.
        ["dpkg", "--configure", "-a"],
        [*apt, "update"],
        [*apt, "install", "-y", "--no-install-recommends", *lacking],
    ):
        # Only the last must not fail.
        status, text = proc.attempt([*sudo, *command], command[0], log=log, whole=True)
    if status:
        names = " ".join(lacking)
        what = f"as root, run `apt-get install {names}` and repeat"
        raise Fail(f"cannot install {names}: {proc.reason(text)} (see {log}); {what}")


def _installed(name: str) -> bool:
    status, text = proc.attempt(["dpkg-query", "-W", "-f", "${db:Status-Status}", name], "dpkg-query")
    return status == 0 and text.strip() == "installed"


def _sites() -> tuple[str | None, str | None]:
    """The machine's Debian mirrors: (archive, security), either may be None."""
    if not shutil.which("apt-get"):
        raise Fail(distro.no_sources("has no apt to fetch sources with"))
    text = proc.run(
        ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(ORIGIN)", "Identifier: Packages"],
        "apt-get indextargets",
    )
    archive = security = None
    for line in text.splitlines():
        site, release, origin = (line.split(" ") + ["", ""])[:3]
        if not _SITE.match(site):
            continue
        # Before the first `apt-get update` there is no ORIGIN to tell Debian's from others.
        if origin not in ("Debian", "$(ORIGIN)") or "debian" not in site:
            continue
        if "security" in release or site.rstrip("/").endswith("-security"):
            security = security or site
        else:
            archive = archive or site
    return archive, security


def has_mirror() -> bool:
    """Whether packages of Debian can be fetched here: apt's sources name a Debian mirror."""
    return bool(shutil.which("apt-get")) and any(_sites())


def _state(name: str, lines: list[str], arch: str) -> dict[str, str]:
    """Make the private apt state `name` with sources `lines`; returns its environment."""
    state = paths.cache("apt", name)
    config = f"""\
Dir::Etc::sourcelist "{state}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "{state}/lists";
Dir::State::status "{state}/status";
Dir::Cache "{state}";
APT::Architecture "{arch}";
APT::Architectures "{arch}";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
"""
    try:
        for part in ("lists/partial", "archives/partial"):
            (state / part).mkdir(parents=True, exist_ok=True)
        (state / "status").touch()
        (state / "sources.list").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        (state / "apt.conf").write_text(config, encoding="utf-8")
    except OSError as error:
        raise paths.os_fail(error, state) from None
    return {"APT_CONFIG": str(state / "apt.conf")}


def _source(kind: Literal["deb", "deb-src"], suite: str, options: str) -> str:
    """The line of sources.list for `suite` on the machine's mirrors."""
    archive, security = _sites()
    site = archive
    if suite.endswith("-security"):
        # Debian's own layout, which mirrors keep.
        site = security or (archive and re.sub(r"/debian/?$", "/debian-security", archive))
    if not site:
        raise Fail(distro.no_sources("has apt sources that name no Debian mirror"))
    return f"{kind} {options} {site} {suite} main"


def fetch_pinned(package: str, version: str, suite: str, sha256: str, file: str = "") -> Path:
    """The path of a .deb, or of the tarball `file` of a source package, fetched if it is not in the cache.

    suite: any of Debian's, or several: a security update moves to the release it is for.  sha256 is the pin; it says
    more than the signature of the suite, whose key the machine may not have.  Raises Fail when it cannot be had: no
    network, or gone from the mirrors.
    """
    kept = paths.cache("deb", file or f"{package}_{version}.deb")
    with paths.locked("apt", say, shared=True):
        if not kept.exists() or _sha256(kept) != sha256:
            paths.remove(kept)
            _fetch_to(kept, package, version, sha256, suite.split(), source=bool(file))
    return kept


def _fetch_to(kept: Path, package: str, version: str, sha256: str, suites: list[str], source: bool) -> None:
    """Fetch what fetch_pinned() wants to the file `kept`."""
    name = f"{package} {version}"
    instead = "give your own tree with --tree (or TREE=/path)"
    gone = f"{name} has left the mirrors ({', '.join(suites)}): {instead}"
    lines = [_source("deb-src" if source else "deb", suite, "[trusted=yes]") for suite in suites]
    env = _state("-".join([*(["src"] if source else []), *suites]), lines, "amd64")
    status, text = proc.attempt(_UPDATE, "apt-get update", env=env)
    if status and re.search(r"404 +Not Found|does not have a Release file", text):
        raise Fail(gone)
    if status:
        _check_space(text)
        why = f"no answer from the mirror ({proc.reason(text)}), and it is not in the cache"
        raise Fail(f"cannot fetch {name}: {why}: connect to the network, or {instead}")
    _, known = proc.attempt(["apt-cache", "madison", package], "apt-cache", env=env)
    if version not in known.replace("|", " ").split():
        raise Fail(gone)
    command = ["source", "--download-only", "--tar-only"] if source else ["download"]
    with paths.whole(kept.with_name(f"{kept.name}.d")) as folder:
        line = ["apt-get", "-q", *command, f"{package}={version}"]
        status, text = proc.attempt(line, f"apt-get {command[0]}", cwd=folder, env=env)
        # `download` writes the epoch of a version as %3a.
        files = [path for path in folder.iterdir() if path.suffix == kept.suffix]
        if status or not files:
            _check_space(text)
            raise Fail(f"cannot fetch {name}: {proc.reason(text)}; repeat, or {instead}")
        if _sha256(files[0]) != sha256:
            other = "another checksum than the one pinned here"
            raise Fail(f"{name} from the mirror has {other}: do not use it; {instead}")
        files[0].rename(kept)
    paths.remove(kept.with_name(f"{kept.name}.d"))


def _check_space(text: str) -> None:
    """Raise Fail if apt-get's output `text` says that the disk of the cache directory is full."""
    if "No space left on device" in text:
        raise paths.os_fail(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(paths.cache_root())))


def fetch_native(package: str, arch: str) -> Path:
    """The path of the .deb of `package` for Debian architecture `arch`, from the suites that the
    machine itself uses, fetched if it is not in the cache."""
    return _fetch_latest(package, arch, own_suite(), f"{package}_{arch}")


def fetch_backport(package: str) -> Path:
    """The path of the .deb of `package` from the backports to the machine's own suite, fetched if it
    is not in the cache."""
    arch, suite = proc.run(["dpkg", "--print-architecture"], "dpkg").strip(), f"{own_suite()}-backports"
    return _fetch_latest(package, arch, suite, f"{package}_{suite}_{arch}")


def _fetch_latest(package: str, arch: str, suite: str, kept: str) -> Path:
    """The path of the .deb in the version that `suite` has today, or that the folder `kept` of the cache has."""
    folder = paths.cache("deb", kept)
    with paths.locked("apt", say, shared=True):
        if not folder.is_dir():
            keys = sorted(Path("/usr/share/keyrings").glob("debian-archive-keyring.*"))
            line = _source("deb", suite, f"[signed-by={keys[0]}]" if keys else "")
            env = _state(f"{suite}-{arch}", [line], arch)
            what = f"fetching {package} ({suite}, {arch})"
            try:
                proc.run(_UPDATE, "apt-get update", env=env)
                with paths.whole(folder) as part:
                    proc.run(["apt-get", "-q", "download", package], what, cwd=part, env=env)
            except Fail as error:
                _check_space(str(error))
                raise
    return next(folder.glob("*.deb"))


def own_suite() -> str:
    """The code name of the machine's Debian release, "stable" if it does not say."""
    return distro.release().get("VERSION_CODENAME", "stable")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
