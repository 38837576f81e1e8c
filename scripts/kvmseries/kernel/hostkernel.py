"""Kernels for a machine of the user's own: installable packages from that machine's configuration.

The release ends in the kernel's label (5.10.262-base, 5.10.262-series), so that `bench --here` knows on which
kernel it runs.  The configuration is taken as it is but for CHANGES.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import debian, paths, proc, stamp
from ..base.errors import Fail
from ..base.progress import Note, say
from ..source import trees
from . import kconfig, toolchain

# Symbols that differ from the machine's own configuration, and why.
CHANGES = {
    # The name of the release is the label's alone.
    "CONFIG_LOCALVERSION": '""',
    "CONFIG_LOCALVERSION_AUTO": "n",
    # Files that only the distribution has.
    "CONFIG_SYSTEM_TRUSTED_KEYS": '""',
    "CONFIG_SYSTEM_REVOCATION_KEYS": '""',
    "CONFIG_MODULE_SIG_KEY": '"certs/signing_key.pem"',
    # Gigabytes of packages, and a program more to build them.
    "CONFIG_DEBUG_INFO": "n",
    "CONFIG_DEBUG_INFO_NONE": "y",
    "CONFIG_DEBUG_INFO_BTF": "n",
    "CONFIG_DEBUG_INFO_DWARF4": "n",
    "CONFIG_DEBUG_INFO_DWARF5": "n",
    "CONFIG_DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT": "n",
    # Warnings of newer compilers do not stop the build of an old kernel.
    "CONFIG_WERROR": "n",
}
# What the tests of bench.yaml need of a kernel.
NEEDED = {
    "CONFIG_IDLE_PAGE_TRACKING": "y",
    "CONFIG_USERFAULTFD": "y",
    "CONFIG_KSM": "y",
    "CONFIG_TRANSPARENT_HUGEPAGE": "y",
}
# Programs of old kernels that include <openssl/engine.h>, and what needs them: Fedora since 41 and OpenSSL 4 lack that file.
_SIGNERS = ("scripts/sign-file.c", "scripts/extract-cert.c", "certs/extract-cert.c")
_NEED_SIGNERS = ("CONFIG_MODULE_SIG_FORMAT", "CONFIG_SYSTEM_TRUSTED_KEYRING", "CONFIG_SYSTEM_REVOCATION_LIST")
UNSIGNED = {
    **dict.fromkeys(_NEED_SIGNERS, "n"),
    "CONFIG_MODULE_SIG": "n",
    # They select it, or the keyring.
    "CONFIG_SECURITY_LOCKDOWN_LSM": "n",
    "CONFIG_IMA_APPRAISE_MODSIG": "n",
    "CONFIG_KEXEC_BZIMAGE_VERIFY_SIG": "n",
    "CONFIG_FS_VERITY_BUILTIN_SIGNATURES": "n",
    "CONFIG_UBIFS_FS_AUTHENTICATION": "n",
    "CONFIG_DM_VERITY_VERIFY_ROOTHASH_SIG": "n",
    # So does the last of these, which cannot be turned off without the others.
    "CONFIG_EXPERT": "y",
    "CONFIG_CFG80211_CERTIFICATION_ONUS": "y",
    "CONFIG_CFG80211_REQUIRE_SIGNED_REGDB": "n",
}
FORMATS = {"deb": "bindeb-pkg", "tar": "tar-pkg"}
_ARCH = {"arm64": "CONFIG_ARM64", "x86_64": "CONFIG_X86_64"}
# What bindeb-pkg leaves in the directory above the one that it builds in.
_LEFT = ("linux-*.deb", "linux-*.buildinfo", "linux-*.changes", "linux-upstream*")


@dataclass(frozen=True)
class HostKernel:
    """The package of one kernel."""

    release: str  # uname -r, once it is booted
    package: Path  # .deb or .tar


def read_config(path: str | Path, arch: str) -> str:
    """The text of the kernel configuration at `path` (also gzipped, as /proc/config.gz).

    Raises Fail unless it is one for `arch` that builds KVM.
    """
    try:
        data = Path(path).read_bytes()
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8", "replace")
    except (OSError, EOFError) as error:
        raise Fail(f"{path}: {getattr(error, 'strerror', None) or 'not a whole gzip file'}") from None
    found = _symbols(text)
    if not found:
        raise Fail(f"{path} is not a kernel configuration: it has no line CONFIG_...=")
    for other, symbol in _ARCH.items():
        if other != arch and found.get(symbol) == "y":
            raise Fail(f"{path} is not a configuration for {arch}, but for {other}: add --arch {other}")
    if found.get(_ARCH[arch]) != "y":
        raise Fail(f"{path} is not a configuration for {arch}")
    if found.get("CONFIG_KVM") not in ("y", "m"):
        raise Fail(f"{path} builds no KVM (CONFIG_KVM is not set): there is nothing to measure; set CONFIG_KVM in it")
    if arch == "x86_64" and not {found.get("CONFIG_KVM_INTEL"), found.get("CONFIG_KVM_AMD")} & {"y", "m"}:
        raise Fail(f"{path} builds KVM for no CPU: set CONFIG_KVM_INTEL or CONFIG_KVM_AMD in it")
    return text


def _symbols(text: str) -> dict[str, str]:
    return dict(re.findall(r"^(CONFIG_\w+)=(.*)$", text, re.M))


def changed(text: str, changes: Mapping[str, str]) -> str:
    """The configuration `text` with the symbols of `changes` (symbol to value, "n": off) in it once each."""
    names = "|".join(map(re.escape, changes))
    kept = re.sub(rf"^(?:# )?(?:{names})(?:=.*| is not set)\n", "", f"{text}\n", flags=re.M)
    return kept + "".join(
        f"# {symbol} is not set\n" if value == "n" else f"{symbol}={value}\n" for symbol, value in changes.items()
    )


def build(
    tree: trees.Tree, arch: str, text: str, form: str = "deb", overlays: Sequence[str] = (), note: Note | None = None
) -> HostKernel:
    """Build (or find built) the package of the trees.Tree `tree` with the configuration `text`.

    form: a key of FORMATS.  overlays: names of overlays of kconfig, such as "lockstat", which the release
    names, too.  note: called with a line of progress.  Returns the HostKernel.
    """
    toolchain.install(arch)
    debian.install("hostkernel")
    if form == "deb":
        # What the package is made with is missed after the whole build only; DPKG_FLAGS=-d leaves out dpkg's own check.
        debhelper = ["dh_listpackages"] if (tree.path / "scripts/package/debian/rules").exists() else []
        for program in ("dpkg-buildpackage", "fakeroot", *debhelper):
            proc.need(program)
    changes = {**CHANGES, **NEEDED}
    if lacks_engine(tree.path):
        say(f"openssl has no engine.h, which linux {tree.version} signs with: its modules are not signed")
        changes.update(UNSIGNED)
    wish = changed(text, {**changes, **_overlaid(arch, overlays, tree.version)})
    key = hashlib.sha256(f"{form}\n{wish}".encode()).hexdigest()[:12]
    suffix = "-".join(["", *overlays, tree.point])
    target = paths.out("hostkernel", f"{tree.path.parent.name}-{arch}-{key}", suffix[1:])
    wanted = {"commit": trees.head(tree.path), "compiler": toolchain.version(arch), "config": key, "form": form}
    with paths.locked(f"hostkernel-{tree.path.parent.name}-{tree.point}-{key}", say):
        made = stamp.current(target / "made.json", wanted)
        if not made:
            made = _package(tree, arch, wish, form, suffix, target, wanted, note)
    return HostKernel(made["release"], target / made["package"])


def lacks_engine(tree: Path) -> bool:
    """Whether one of _SIGNERS does not compile for lack of <openssl/engine.h>."""
    for name in _SIGNERS:
        if (tree / name).exists():
            words = ["gcc", "-fsyntax-only", f"-I{tree}/tools/include/uapi", f"-I{tree}/scripts", str(tree / name)]
            status, text = proc.attempt(words, "gcc")
            if status and "openssl/engine.h" in text:
                return True
    return False


def _overlaid(arch: str, overlays: Sequence[str], version: str) -> dict[str, str]:
    """{symbol: value} of the overlays' own fragments."""
    base = kconfig.load(arch, (), version).wanted
    wanted = kconfig.load(arch, overlays, version).wanted
    return {symbol: value for symbol, value in wanted.items() if base.get(symbol) != value}


def _package(
    tree: trees.Tree,
    arch: str,
    wish: str,
    form: str,
    suffix: str,
    target: Path,
    wanted: dict[str, str],
    note: Note | None,
) -> dict[str, Any]:
    """Build the package into the directory `target`; returns what made.json there says."""
    folder = tree.path / f"build-{arch}-host-{wanted['config']}"
    title = f"build {tree.point} for {arch}, {form} package"
    log = paths.out("logs", f"hostkernel-{tree.path.parent.name}-{tree.point}-{wanted['config']}.log")
    make = toolchain.make(tree.path, folder, arch, suffix)
    make += ["KDEB_PKGVERSION=1", "DPKG_FLAGS=-d", "KDEB_COMPRESS=gzip"]
    env = {**toolchain.environment(), "LOCALVERSION": suffix}
    if note:
        note(title)
    try:
        folder.mkdir(exist_ok=True)
        _configure(make, folder, wish, log, env)
        with paths.whole(target) as part:
            _sweep(tree.path)
            try:
                proc.run([*make, FORMATS[form]], title, log=log, env=env)
                release = (folder / "include/config/kernel.release").read_text(encoding="utf-8").strip()
                package = _take(tree.path if form == "deb" else folder, release, form, part)
            finally:
                _sweep(tree.path)
            made = stamp.write(part / "made.json", wanted, release=release, package=package)
    except OSError as error:
        raise paths.os_fail(error, folder) from None
    return made


def _configure(make: Sequence[str], folder: Path, wish: str, log: Path, env: Mapping[str, str]) -> None:
    """Have .config in `folder`, made from `wish`."""
    asked = folder / "host.config"
    if asked.exists() and asked.read_text(encoding="utf-8") == wish and (folder / ".config").exists():
        return
    paths.remove(asked)
    (folder / ".config").write_text(wish, encoding="utf-8")
    proc.run([*make, "olddefconfig"], "make olddefconfig", log=log, env=env)
    found = _symbols((folder / ".config").read_text(encoding="utf-8"))
    if found.get("CONFIG_KVM") not in ("y", "m"):
        raise Fail(
            "this kernel turns KVM off with that configuration: one of the symbols that CONFIG_KVM depends on "
            f"is not set in it (see {folder}/.config)"
        )
    left = [name for name in _NEED_SIGNERS if found.get(name) == "y" and f"# {name} is not set\n" in wish]
    if left:
        raise Fail(f"openssl has no engine.h, and something in that configuration selects {left[0]}, which needs it")
    lacking = [symbol for symbol, value in NEEDED.items() if found.get(symbol) != value]
    if lacking:
        say(f"the kernel does not take {', '.join(lacking)}: tests that need it will fail")
    asked.write_text(wish, encoding="utf-8")


def _take(place: Path, release: str, form: str, part: Path) -> str:
    """Move the package of `release` from `place` to the directory `part`; returns its name."""
    pattern = f"linux-image-{release}_*.deb" if form == "deb" else f"linux-{release}-*.tar*"
    found = sorted(place.glob(pattern))
    if len(found) != 1:
        raise Fail(f"the build made no {pattern} in {place}")
    found[0].rename(part / found[0].name)
    return found[0].name


def _sweep(tree: Path) -> None:
    """Remove what bindeb-pkg has left in `tree`: git must find the tree as it was."""
    for pattern in _LEFT:
        for path in tree.glob(pattern):
            paths.remove(path)
