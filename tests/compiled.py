"""What a kernel is compiled from, and that a mistake in it stops the build."""

import os
import re

from kvmseries.base import paths, proc
from kvmseries.base.errors import Fail
from kvmseries.kernel import build, toolchain
from kvmseries.source import catalog, trees
from kvmseries.verify import check
from tests import extra

# How the names of files begin that no kernel is made of, or only that of another architecture.
OTHERS = ("Documentation/", "tools/")
# What an architecture's kernel does not have, of the files that a series changes: {(series, arch): {file}}.
NOT_BUILT: dict[tuple[str, str], set[str]] = {}


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
    with paths.locked("planted-kernels"):
        tree = trees.planted(series, (), extra.own_base(series))
        folder = build.in_tree(tree, arch).image.parents[3]
        for file in files:
            with open(tree.path / file, "a", encoding="utf-8") as text:
                text.write("#error planted\n")
        paths.remove(folder / "series.json")
        try:
            build.in_tree(tree, arch)
        except Fail as error:
            assert "#error planted" in str(error), error
        else:
            return sorted(files)
        make = ["make", "-k", "-C", str(tree.path), f"O={folder}", *toolchain.make_arguments(arch)]
        line = [*make, f"LOCALVERSION=-{tree.point}", "Image" if arch == "arm64" else "bzImage"]
        _, text = proc.run(line, "make -k", env=toolchain.environment(), check=False)
    stopped = re.findall(r"^(?:\.\./)?(\S+?):\d+:\d+: error: #error planted$", text, re.M)
    return sorted(set(files) - set(map(os.path.normpath, stopped)))
