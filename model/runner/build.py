"""Compiling: the kernel's code and the shims to a library, the checker by cargo."""

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

from kvmseries.base import debian, distro, paths, proc
from kvmseries.base.errors import Fail
from kvmseries.base.progress import say

from . import ROOM, source

# What the crates in Cargo.lock say that they need.
RUSTC = (1, 74)
_CFLAGS = (
    "-std=gnu11 -O1 -g0 -fPIC -fexceptions -Wall -Werror -Wno-unused -Wno-maybe-uninitialized -fno-builtin-memset"
).split()


def install() -> None:
    """Install cargo and rustc where there is none."""
    if not shutil.which("cargo") or not shutil.which("rustc"):
        old = (distro.release().get("ID"), distro.release().get("VERSION_ID")) == ("debian", "12")
        debian.install("model-debian12" if old else "model")


def need() -> None:
    """Install what is lacking; raise Fail in one line if gcc or cargo is missing or too old."""
    install()
    if not shutil.which("gcc"):
        raise Fail("the model checker needs gcc: install the package gcc")
    wanted = f"{RUSTC[0]}.{RUSTC[1]} or newer"
    if not shutil.which("cargo") or not shutil.which("rustc"):
        raise Fail(f"the model checker needs cargo and rustc {wanted}: install the packages cargo and rustc, or rustup")
    text = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=False).stdout
    match = re.match(r"rustc (\d+)\.(\d+)", text)
    if not match or (int(match[1]), int(match[2])) < RUSTC:
        raise Fail(f"the model checker needs rustc {wanted}, and this is {text.strip() or 'none'}")


def checker() -> Path:
    """The path of the checker's program, built if it is not."""
    need()
    target = paths.out("cargo")
    program = target / "release" / "s2check"
    with paths.locked("model-checker", say):
        if not program.exists() and not target.exists():
            say("building the model checker: loom, shuttle and what they need (a minute)")
        proc.run(
            ["cargo", "build", "--release", "--quiet", "--manifest-path", str(_patched() / "Cargo.toml")],
            "cargo build",
            env={"CARGO_TARGET_DIR": str(target)},
        )
    return program


def _patched() -> Path:
    """The directory to build the checker in: model's source, and loom's as model/loom.patch changes it.  The versions of all crates are
    those of model/Cargo.lock."""
    parts = [ROOM / name for name in ("Cargo.toml", "Cargo.lock", "loom.patch")]
    # It has a link to the source: of this checkout, and of no other one that has the same out/.
    digest = hashlib.sha256(b"".join([*(part.read_bytes() for part in parts), bytes(ROOM)]))
    folder = paths.out("checker", digest.hexdigest()[:16])
    if folder.exists():
        return folder
    text = proc.run(
        ["cargo", "metadata", "--locked", "--quiet", "--format-version", "1", "--manifest-path", str(parts[0])],
        "cargo metadata",
    )
    packages = json.loads(next(line for line in text.splitlines() if line.startswith("{")))["packages"]
    loom = next(Path(package["manifest_path"]).parent for package in packages if package["name"] == "loom")
    with paths.whole(folder) as part:
        shutil.copytree(loom, part / "loom")
        # Not as a part of the repository that out/ is in.
        where = {"GIT_CEILING_DIRECTORIES": str(part.absolute())}
        proc.run(["git", "apply", str(parts[2])], "git apply of model/loom.patch", cwd=part / "loom", env=where)
        shutil.copyfile(parts[1], part / "Cargo.lock")
        manifest = parts[0].read_text(encoding="utf-8") + '\n[patch.crates-io]\nloom = { path = "loom" }\n'
        (part / "Cargo.toml").write_text(manifest, encoding="utf-8")
        (part / "src").symlink_to(ROOM / "src")
    return folder


def library(tree: Path, arch: str) -> Path:
    """The path of the library made of the kernel in `tree` for the architecture of that name: found again by what
    went into it."""
    of = source.ARCHES[arch]
    digest = hashlib.sha256(arch.encode())
    kernel = (source.checked(tree, name) for name in source.files(of))
    for path in [*kernel, of.list, *sorted((ROOM / "shim").iterdir())]:
        digest.update(path.read_bytes())
    folder = paths.out("model", digest.hexdigest()[:16])
    if not (folder / "code.so").exists():
        with paths.locked(f"model-{folder.name}", say):
            if not (folder / "code.so").exists():
                with paths.whole(folder) as part:
                    source.collect(tree, part, of)
                    compile_in(part, of)
    return folder / "code.so"


def compile_in(folder: Path, arch: source.Arch, *options: str) -> None:
    """Compile what source.collect() has written to `folder` for an Arch to code.so, with more options of gcc's."""
    flags = [*_CFLAGS, *options, "-DS2_" + re.sub(r"\W", "_", arch.name.upper())]
    flags += [f"-I{ROOM / 'shim'}", f"-I{folder}", "-include", "kernel.h"]
    if arch.series == "v5.10" and "enum kvm_change_pte" not in (folder / "defines.inc").read_text(encoding="utf-8"):
        # A milestone before the patches that count.
        flags.append("-DS2_NO_COUNTS")
        if "\tread_lock(" in (folder / "functions.inc").read_text(encoding="utf-8"):
            flags.append("-DS2_SHARED_FAULTS")
    shims = [ROOM / "shim" / name for name in arch.shims]
    hooks = ROOM / "shim/hooks.c"
    objects = []
    for file in (*(folder / unit for unit in arch.units), *shims, hooks):
        objects.append(str(folder / f"{file.stem}.o"))
        more = [] if file == hooks else ["-fsanitize=thread"]
        proc.run(["gcc", *flags, *more, "-c", str(file), "-o", objects[-1]], f"compiling {file.name} for the model")
    shared = ["-shared", "-Wl,-z,defs", "-o", str(folder / "code.so")]
    proc.run(["gcc", *options, *shared, *objects], "linking the model's library")
