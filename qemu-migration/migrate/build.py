"""Building QEMU, in a directory build-<arch> inside its tree: from its base on every machine, cross-compiled
where the machine is of another architecture.

As with kernels the compiler cache sees the same commands for the same file in every tree, so that a series'
build compiles only what its patches change once its base is built.
"""

from __future__ import annotations

import bz2
import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvmseries.base import debian, paths, proc, stamp
from kvmseries.base.errors import Fail
from kvmseries.base.progress import Note, say, single
from kvmseries.kernel import toolchain
from kvmseries.kernel.build import warnings
from kvmseries.source import catalog, trees

from . import sysroot

# Nothing of the desktop, networks and disks that a migration under test does not need.
_OPTIONS = tuple(
    """
    --disable-download --without-default-features --enable-system --enable-tcg --enable-fdt=system
    --disable-install-blobs --disable-docs --disable-debug-info --disable-werror --enable-trace-backends=log
    --with-pkgversion=series
""".split()
)
# Where Debian has what the tarball lacks: SeaBIOS, option ROMs.
FIRMWARE = ("/usr/share/qemu", "/usr/share/seabios", "/usr/lib/ipxe/qemu")
# Seconds on 2 cores when nothing is known: (from cold, with the base's objects in the cache).
_SECONDS = {"program": (330, 60), "tests": (600, 100)}


@dataclass(frozen=True)
class Program:
    """A qemu-system-* that is built."""

    path: Path
    libraries: list[Path]  # paths of the shared libraries that it needs, the dynamic loader last
    tree: trees.Tree
    arch: str  # that it runs on, and that it emulates
    version: str  # "10.0.13"


@dataclass(frozen=True)
class Kind:
    """One way to build: what is configured, and what is compiled."""

    name: str  # "program", or "tests-tcg", "tests-kvm"
    arch: str  # that it runs on
    targets: tuple[str, ...]  # arches that it emulates
    kvm: bool = True
    tests: bool = False
    only: tuple[str, ...] = ()  # names of what ninja makes instead of the programs

    @property
    def folder(self) -> str:
        """Name of the build directory."""
        return f"build-{self.arch}" if self.name == "program" else "-".join(["build", self.name, *self.targets])

    @property
    def names(self) -> list[str]:
        """What is there when it is built, apart from its tests."""
        return list(self.only) or [binary(arch) for arch in self.targets]


def binary(arch: str) -> str:
    """File name of the program that emulates `arch`."""
    return f"qemu-system-{toolchain.machine(arch)}"


def program(
    series: catalog.Series, count: int, arch: str, tree: str | None = None, note: Note | None = None
) -> Program:
    """Build (or find built) the Program of the first `count` patches of `series`, for KVM on `arch`.

    tree: the user's own tree or tarball as the base.  note: called with a line of progress.  Raises Fail
    with the compiler's first error.
    """
    return in_tree(trees.worktree(series, count, tree), arch, note)


def in_tree(tree: trees.Tree, arch: str, note: Note | None = None, tests: bool = False) -> Program:
    """Build the Program of a tree that is at hand; with `tests` the tests, too, which are not run."""
    folder = compiled(tree, Kind("program", arch, (arch,), tests=tests), note)
    path = folder / binary(arch)
    root = sysroot.cross(arch) if toolchain.prefix(arch) else None
    return Program(path, sysroot.libraries(path, arch, root), tree, arch, tree.version)


def compiled(tree: trees.Tree, kind: Kind, note: Note | None = None) -> Path:
    """Build the `kind` of a tree; returns the build directory."""
    debian.install("qemu", *([f"build-{kind.arch}"] if toolchain.prefix(kind.arch) else []))
    for name in (f"{toolchain.prefix(kind.arch)}gcc", "ninja", "pkg-config", "ccache", "make", "readelf"):
        proc.need(name)
    root = sysroot.cross(kind.arch) if toolchain.prefix(kind.arch) else None
    folder = tree.path / kind.folder
    with paths.locked(f"build-{tree.path.parent.name}-{tree.point}-{kind.folder}", say):
        try:
            _build(tree, kind, folder, root, note)
        except OSError as error:
            raise paths.os_fail(error, folder) from None
    return folder


def configure_arguments(kind: Kind, root: Path | None = None) -> list[str]:
    """What configure is called with; root: the sysroot of a cross build."""
    arguments = [
        *_OPTIONS,
        f"--python={sys.executable}",
        "--enable-kvm" if kind.kvm else "--disable-kvm",
        f"--firmwarepath={':'.join(FIRMWARE)}",
        "--target-list=" + ",".join(f"{toolchain.machine(arch)}-softmmu" for arch in kind.targets),
    ]
    prefix = toolchain.prefix(kind.arch)
    if prefix:
        assert root, "a cross build has a sysroot"
        compiler, linker = sysroot.flags(root, kind.arch)
        arguments += [f"--cross-prefix={prefix}", f"--cpu={toolchain.machine(kind.arch)}", "--host-cc=gcc"]
        arguments += [f"--extra-cflags={compiler}", f"--extra-ldflags={linker}"]
    return [*arguments, f"--cc=ccache {prefix}gcc"]


def environment(tree: Path, root: Path | None = None) -> dict[str, str]:
    """For configure, ninja and meson: the tool's own Python first, and nothing of the user's."""
    env = {
        **toolchain.environment(),
        **dict.fromkeys(("PYTHONPATH", "CFLAGS", "LDFLAGS", "CPPFLAGS", "CC"), ""),
        "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
        # The sources are named by absolute paths, which differ between trees.
        "CCACHE_BASEDIR": str(tree),
        "CCACHE_NOHASHDIR": "1",
    }
    if root:
        env["PKG_CONFIG"] = str(root / "pkg-config")
    return env


def _build(tree: trees.Tree, kind: Kind, folder: Path, root: Path | None, note: Note | None) -> None:
    arguments = configure_arguments(kind, root)
    made = folder / "series.json"
    names = kind.names
    configuration = " ".join([*arguments, trees.git(tree.path, "rev-parse", "HEAD:configure").strip()])
    wanted = {
        "commit": trees.head(tree.path),
        "compiler": toolchain.version(kind.arch),
        "config": hashlib.sha256(configuration.encode()).hexdigest(),
        "tests": kind.tests,
    }
    # A build that has the tests, too, will do where they are not asked for.
    if all((folder / name).exists() for name in names) and any(
        stamp.current(made, {**wanted, "tests": tests}) for tests in {kind.tests, True}
    ):
        return
    paths.remove(made)
    env = environment(tree.path, root)
    name = f"{kind.folder}-{tree.path.parent.name}-{tree.point}"
    configured = folder / "configured.json"
    same = {key: wanted[key] for key in ("compiler", "config")}
    if not (folder / "build.ninja").exists() or not stamp.current(configured, same):
        paths.remove(folder)
        folder.mkdir()
        _fill_blobs(tree.path)
        log = paths.out("logs", f"configure-{name}.log")
        proc.run(["sh", "../configure", *arguments], "configure of QEMU", cwd=folder, env=env, log=log)
        stamp.write(configured, same)
    if kind.tests:
        names += test_programs(folder, env)
    title = f"build QEMU {tree.point} for {kind.arch}" + (f" ({kind.name})" if kind.name != "program" else "")
    line = ["ninja", f"-j{len(os.sched_getaffinity(0))}", *names]
    log = log_of(tree, kind)
    cold, warm = _SECONDS["tests" if kind.tests else "program"]
    step = single(f"build-qemu-{kind.folder}-{bool(tree.count)}", title, warm if tree.count else cold)
    with nullcontext(note(title)) if note else step:
        proc.run(line, title, cwd=folder, env=env, log=log)
    _link_firmware(folder)
    stamp.write(made, wanted)


def log_of(tree: trees.Tree, kind: Kind) -> Path:
    """Path of the log of a build."""
    what = "-tests" if kind.tests else ""
    return paths.out("logs", f"{kind.folder}-{tree.path.parent.name}-{tree.point}{what}.log")


def _fill_blobs(tree: Path) -> None:
    """Put empty ones in the place of the firmware blobs that meson.build unpacks and Debian's tarball
    lacks; git does not see them (trees.py)."""
    text = (tree / "pc-bios/meson.build").read_text(encoding="utf-8")
    for name in re.findall(r"'(edk2-[\w-]+\.fd)'", text):
        path = tree / "pc-bios" / f"{name}.bz2"
        if not path.exists():
            path.write_bytes(bz2.compress(b""))


def _link_firmware(folder: Path) -> None:
    """Have the programs in a build directory find Debian's firmware: what is not installed looks for every
    directory of its own below qemu-bundle/."""
    for place in FIRMWARE:
        link = folder / "qemu-bundle" / place.lstrip("/")
        if os.path.isdir(place) and not link.is_symlink() and not link.exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(place)


def meson() -> str:
    """Path of the tool's own meson."""
    return os.path.join(os.path.dirname(sys.executable), "meson")


def tests(folder: Path, env: Mapping[str, str], suite: str) -> list[dict[str, Any]]:
    """The meson tests of a `suite` ("unit") in a build directory: a list of dicts as meson's own
    introspection gives them."""
    text = proc.run([meson(), "introspect", "--tests", str(folder)], "meson introspect", cwd=folder, env=env)
    # A suite is "qemu:unit" there.
    return [
        test
        for test in json.loads(text[text.index("[") :])
        if suite in (word.rpartition(":")[2] for word in test["suite"])
    ]


def test_programs(folder: Path, env: Mapping[str, str]) -> list[str]:
    """Names of what ninja makes for the tests: migration-test and all unit tests' programs."""
    found = {
        os.path.relpath(word, folder)
        for test in tests(folder, env, "unit")
        for word in test["cmd"][:1]
        if word.startswith(f"{folder}/")
    }
    return ["tests/qtest/migration-test", *sorted(name for name in found if not name.startswith("pyvenv/"))]


def each_patch(
    series: catalog.Series, arch: str, counts: Sequence[int], note: Note | None, tree: str | None = None
) -> None:
    """Build QEMU's base, and QEMU after each number of patches in `counts`, ascending, in one tree; where its
    tests can be run, those, too.

    Raises Fail that names the patch with which it stops building, or brings a warning that base has not.
    """
    native = not toolchain.prefix(arch)
    known = _one(series, trees.worktree(series, 0, tree), arch, note, native)
    for step in trees.walk(series, counts, tree) if counts else ():
        new = _one(series, step, arch, note, native) - known
        if new:
            raise Fail(
                f"{series.name}: {series.patches[step.count - 1].name} brings a compiler warning for "
                f"{arch}: {sorted(new)[0]}"
            )


def _one(series: catalog.Series, tree: trees.Tree, arch: str, note: Note | None, tests: bool) -> set[str]:
    """Build a tree; returns the warnings that its logs have."""
    try:
        in_tree(tree, arch, note, tests)
    except Fail as error:
        name = series.patches[tree.count - 1].name if tree.count else "the base"
        raise Fail(f"{series.name} does not build for {arch} with {name}: {error}") from None
    return found_warnings(tree, arch)


def found_warnings(tree: trees.Tree, arch: str) -> set[str]:
    """Warnings in the logs of builds of `tree` for `arch`: a set of lines without line numbers, which patches
    move."""
    logs = [log_of(tree, Kind("program", arch, (arch,), tests=tests)) for tests in (False, True)]
    return {re.sub(r":\d+(:\d+)?:", ":", line.strip()) for log in logs for line in warnings(log)}
