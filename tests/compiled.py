"""What a kernel is compiled from, and that a mistake in it stops the build."""

import os
import re
import shlex
import tempfile
from pathlib import Path

from kvmseries.base import paths, proc
from kvmseries.kernel import build, toolchain
from kvmseries.source import catalog, trees
from kvmseries.verify import check
from tests import extra

# How the names of files begin that no kernel is made of, or only that of another architecture.
OTHERS = ("Documentation/", "tools/")
# What a kernel does not have, of the files that a series changes, as its configuration is without their options: {(series,
# arch): {file: (what is compiled for it, a file beside it that the kernel has, options)}}.
_UPROBES = ("kernel/events/uprobes.c", "kernel/fork.c", ("CONFIG_UPROBES",))
_PTDUMP = "arch/arm64/kvm/ptdump.c"
_MMU = "arch/x86/kvm/mmu/mmu.c"
ALONE = {
    ("v5.10", "arm64"): {"kernel/events/uprobes.c": _UPROBES},
    ("v5.10", "x86_64"): {
        "kernel/events/uprobes.c": _UPROBES,
        "arch/x86/kvm/mmu/mmu_audit.c": (_MMU, _MMU, ("CONFIG_KVM_MMU_AUDIT",)),
    },
}
for _series in ("v6.12", "v7.3"):
    ALONE[_series, "arm64"] = {
        _PTDUMP: (_PTDUMP, "arch/arm64/kvm/mmu.c", ("CONFIG_PTDUMP", "CONFIG_PTDUMP_STAGE2_DEBUGFS"))
    }


def changed(series, tree, arch):
    """The C and assembler files of `tree` that the patches of `series` change, without those of other architectures."""
    names = {name for patch in series.patches for name in check.files(tree, patch)}
    others = [name for name in names if re.match(r"arch/(?!%s)" % build.FOLDERS[arch][len("arch/") :], name)]
    return {
        name
        for name in names.difference(others)
        if name.endswith((".c", ".h", ".S")) and not name.startswith(OTHERS) and (tree / name).exists()
    }


def read(folder):
    """Names of all files of the tree that the compiler has read for the objects in `folder`, a build directory."""
    found = set()
    for file in folder.rglob(".*.o.cmd"):
        found |= set(re.findall(r"\s\.\./(\S+\.[chS])(?=\s)", file.read_text(encoding="utf-8", errors="replace")))
    # arch/arm64/kvm/../../../virt/kvm/kvm_main.c
    return set(map(os.path.normpath, found))


def not_stopped_by_an_error(name, arch, files):
    """Those of `files` in which a #error does not stop the build of the whole series `name`; [] is right."""
    series = catalog.load(name)
    with paths.locked("mutant-kernels"):
        tree = trees.mutant(series, (), extra.own_base(series))
        folder = build.in_tree(tree, arch).image.parents[3]
        for file in files:
            with open(tree.path / file, "a", encoding="utf-8") as text:
                text.write("#error planted\n")
        # Or this tree counts as built.
        paths.remove(folder / "series.json")
        make = ["make", "-k", "-C", str(tree.path), f"O={folder}", *toolchain.make_arguments(arch)]
        line = [*make, f"LOCALVERSION=-{tree.point}", "Image" if arch == "arm64" else "bzImage"]
        _, text = proc.attempt(line, "make -k", env=toolchain.environment())
    stopped = re.findall(r"^(?:\.\./)?(\S+?):\d+:\d+: error: #error planted$", text, re.M)
    return sorted(set(files) - set(map(os.path.normpath, stopped)))


def alone(kernel, source, like, options):
    """Names of the files that the compiler reads for `source` with `options` of the configuration, which `kernel` does not
    have, and otherwise as for the file `like`, which it has.  Raises Fail if it does not compile."""
    folder = kernel.image.parents[3]
    command = (folder / like).with_name(f".{Path(like).stem}.o.cmd").read_text(encoding="utf-8").splitlines()[0]
    words = shlex.split(command.partition(" := ")[2].partition(" ; ")[0])
    words = [word for word in words if not word.startswith("-Wp,-MMD")]
    words = words[: words.index("-o")]
    with tempfile.TemporaryDirectory() as made:
        listed = f"{made}/files"
        words += [*(f"-D{option}=1" for option in options), "-MMD", "-MF", listed, "-o", f"{made}/x.o", f"../{source}"]
        proc.run(words, f"compiling {source}", cwd=folder, env=toolchain.environment())
        names = Path(listed).read_text(encoding="utf-8").split()
        return {os.path.normpath(name[len("../") :]) for name in names if name.startswith("../")}
