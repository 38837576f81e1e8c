"""Building kernels, in a directory build-<arch>-<config> inside their tree.

Inside, because kbuild then names sources by the relative path "..": the compiler cache sees the
same command for the same file in every tree.  Of a series' kernel only what its patches touch is
compiled once its base is built.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from ..base import debian, paths, proc, stamp
from ..base.errors import Fail
from ..base.progress import Note, say, single
from ..source import catalog, trees
from ..source.git import git
from . import kconfig, toolchain

# What no other architecture compiles.
FOLDERS = {"arm64": "arch/arm64/", "x86_64": "arch/x86/"}
_IMAGE = {"arm64": "arch/arm64/boot/Image", "x86_64": "arch/x86/boot/bzImage"}
# Seconds on 2 cores when nothing is known: (from cold, with the base's objects in the cache).
_SECONDS = {"normal": (150, 45), "lockstat": (160, 50), "debug": (420, 150), "kcsan": (300, 100)}


@dataclass(frozen=True)
class Kernel:
    """A kernel that is built."""

    tree: trees.Tree
    arch: str
    config: kconfig.Config
    image: Path
    release: str  # what uname -r says in the guest


def seconds(arch: str, config: str, count: int) -> float:
    """Estimate for a build of `count` patches."""
    cold, warm = _SECONDS.get(config.split("+")[0], (200, 60))
    return (warm if count else cold) * (1.3 if arch == "x86_64" else 1)


def kernel(
    series: catalog.Series,
    count: int,
    arch: str,
    configs: Iterable[str] = (),
    kernel_tree: str | Path | None = None,
    note: Note | None = None,
) -> Kernel:
    """Build (or find built) the Kernel of the first `count` patches of `series`.

    configs: names of overlays.  note: called with a line of progress.  Raises Fail with the
    compiler's first error.
    """
    return in_tree(trees.worktree(series, count, kernel_tree), arch, configs, note)


def in_tree(tree: trees.Tree, arch: str, configs: Iterable[str] = (), note: Note | None = None) -> Kernel:
    """Build the Kernel of a tree that is at hand."""
    config = kconfig.load(arch, configs, tree.version)
    toolchain.install(arch)
    folder = tree.path / f"build-{arch}-{config.name}"
    with paths.locked(f"build-{tree.path.parent.name}-{tree.point}-{arch}-{config.name}", say):
        try:
            release = _build(tree, arch, config, folder, note)
        except OSError as error:
            raise paths.os_fail(error, folder) from None
    return Kernel(tree, arch, config, folder / _IMAGE[arch], release)


def _build(tree: trees.Tree, arch: str, config: kconfig.Config, folder: Path, note: Note | None) -> str:
    made = folder / "series.json"
    wanted = {"commit": trees.head(tree.path), "compiler": toolchain.version(arch), "config": stamp.digest(config.text)}
    built = stamp.current(made, wanted)
    if built and (folder / _IMAGE[arch]).exists():
        return built["release"]
    paths.remove(made)
    folder.mkdir(exist_ok=True)
    _remove_torn(folder)
    log = paths.out("logs", f"build-{tree.path.parent.name}-{tree.point}-{arch}-{config.name}.log")
    make = _configure(tree, arch, config, folder, log)
    title = f"build {tree.point} for {arch} ({config.name})"
    estimate = seconds(arch, config.name, tree.count)
    if note:
        note(title)
    # The step of a caller has its own clock.
    own = (
        contextlib.nullcontext() if note else single(f"build-{arch}-{config.name}-{bool(tree.count)}", title, estimate)
    )
    with own:
        proc.run([*make, Path(_IMAGE[arch]).name], title, log=log, env=toolchain.environment())
    release = _read(folder / "include/config/kernel.release").strip()
    stamp.write(made, wanted, release=release)
    return release


def _remove_torn(folder: Path) -> None:
    """Remove the files in `folder` that make reads and a build that was killed has left without their end: make
    would stop at one."""
    for path in folder.rglob(".*.cmd"):
        if not path.read_bytes().endswith(b"\n"):
            paths.remove(path)


def configure(tree: trees.Tree, arch: str, configs: Iterable[str]) -> None:
    """Make the configuration that in_tree() would build, and build nothing; raises Fail if the kernel does not take
    it."""
    config = kconfig.load(arch, configs, tree.version)
    toolchain.install(arch)
    folder = tree.path / f"build-{arch}-configured"
    paths.remove(folder)
    try:
        folder.mkdir()
        _configure(tree, arch, config, folder, paths.out("logs", f"configure-{arch}-{config.name}.log"))
    except OSError as error:
        raise paths.os_fail(error, folder) from None
    finally:
        paths.remove(folder)


def _configure(tree: trees.Tree, arch: str, config: kconfig.Config, folder: Path, log: Path) -> list[str]:
    """Have .config of `config` in `folder`; returns make's command line without a target."""
    make = toolchain.make(tree.path, folder, arch, f"-{tree.point}")
    allconfig = folder / "fragments.config"
    if not (folder / ".config").exists() or _read(allconfig) != config.text:
        # fragments.config is what .config was made from and found right with, so it comes last.
        paths.remove(allconfig)
        wish = allconfig.with_suffix(".new")
        wish.write_text(config.text, encoding="utf-8")
        env = {**toolchain.environment(), "KCONFIG_ALLCONFIG": str(wish)}
        proc.run([*make, "allnoconfig"], "make allnoconfig", log=log, env=env)
        kconfig.check(config, _read(folder / ".config"))
        wish.replace(allconfig)
    return make


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def warnings(log: str | Path) -> list[str]:
    """Compiler warnings in a build log: a list of lines."""
    return [line for line in _read(Path(log)).splitlines() if re.search(r"\bwarning:", line)]


def about(text: str, names: Collection[str]) -> Counter[str]:
    """A Counter of the compiler's and sparse's lines in `text` that warn of the files `names`, without line numbers."""
    lines = re.findall(r"^(?:\.\./)?(\S+?):\d+(?::\d+)?: ((?:\w+: )?(?:warning|error): .*)$", text, re.M)
    return Counter(f"{name}: {words}" for name, words in lines if name in names)


def examine(kernel: Kernel, names: Collection[str]) -> Counter[str]:
    """What gcc with W=1 and sparse say of those of `names` that `kernel` is made of, as from about().

    names: files of the tree.  Compiles them anew in the kernel's directory."""
    debian.install("static")
    proc.need("sparse")
    tree, folder = kernel.tree, kernel.image.parents[3]
    names = {_named_by_make(folder, name) for name in names}
    objects = [Path(name).with_suffix(".o") for name in names if name.endswith(".c")]
    objects = [path for path in objects if (folder / path.parent / f".{path.name}.cmd").exists()]
    if not objects:
        raise Fail(f"{folder} has none of the files to look at")
    with paths.locked(f"build-{tree.path.parent.name}-{tree.point}-{kernel.arch}-{kernel.config.name}", say):
        for path in objects:
            # Or make would find nothing to do, and gcc say nothing.
            paths.remove(folder / path)
        make = toolchain.make(tree.path, folder, kernel.arch, f"-{tree.point}")
        what = f"W=1 and sparse on {tree.point} ({kernel.arch})"
        text = proc.run([*make, "W=1", "C=2", *map(str, objects)], what, env=toolchain.environment())
    return about(text, names)


def _named_by_make(folder: Path, name: str) -> str:
    """`name`, a file of the tree, as the Makefile names it that compiles it in `folder`; `name` itself if none does.

    In 5.10 those of virt/kvm are arch/.../kvm/../../../virt/kvm/..., and make takes no other name for one of them."""
    path = Path(name)
    command = folder / path.parent / f".{path.stem}.o.cmd"
    if path.suffix != ".c" or not command.exists():
        return name
    target = re.match(r"(?:saved)?cmd_(\S+)\.o\b", command.read_text(encoding="utf-8"))
    return f"{target[1]}.c" if target else name


def each_patch(
    series: catalog.Series,
    arch: str,
    numbers: Iterable[int],
    note: Note | None,
    kernel_tree: str | Path | None = None,
    singly: bool = False,
) -> None:
    """Build the kernel after each number of patches in `numbers`, ascending, or with `singly` of the base with each of
    the fixes `numbers` alone; all in one tree.  What has been built before, in whole, is not built again: a run that was
    stopped goes on where it was.

    Raises Fail that names the patch with which it stops building.
    """
    done = paths.out("built", f"{series.name}-{arch}.json")
    for tree in trees.walk(series, numbers, kernel_tree, singly):
        key = _contents(tree, arch)
        if key in stamp.read(done):
            continue
        try:
            in_tree(tree, arch, (), note)
        except Fail as error:
            name = series.patches[tree.count - 1].name if tree.count else "the base"
            how = "on the base with only" if singly else "with"
            raise Fail(f"{series.name} does not build for {arch} {how} {name}: {error}") from None
        stamp.write(done, {**stamp.read(done), key: tree.point})


def _contents(tree: trees.Tree, arch: str) -> str:
    """A hash of all that a kernel of `tree` is built from: its files, not its commit."""
    text = kconfig.load(arch, (), tree.version).text
    return stamp.digest(git(tree.path, "rev-parse", "HEAD^{tree}").strip(), arch, toolchain.version(arch), text)
