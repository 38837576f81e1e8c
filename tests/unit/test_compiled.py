"""What a kernel is compiled from, on a build directory that is made up; the compiler is the host's."""

from types import SimpleNamespace

import pytest

from kvmseries.base.errors import Fail
from kvmseries.conftest import wanted, write
from tests import compiled

CMD = """\
savedcmd_{0} := gcc -Wp,-MMD,x.d -DKBUILD='"x"' -c -o {0} ../{1} ; ./tools/objtool/objtool {0}

source_{0} := ../{1}

deps_{0} := \\
    $(wildcard include/config/KVM) \\
  ../include/linux/kvm.h \\
  include/generated/autoconf.h \\

"""
MMU, MAIN, AUDIT = "arch/arm64/kvm/mmu.c", "virt/kvm/kvm_main.c", "arch/arm64/kvm/audit.c"


@pytest.fixture(name="kernel")
def _kernel(tmp_path):
    """A build of MMU, which includes AUDIT with CONFIG_AUDIT, and of MAIN."""
    wanted("gcc")
    tree = tmp_path / "tree"
    write(tree / MMU, '#ifdef CONFIG_AUDIT\n#include "audit.c"\n#endif\nint mmu;\n')
    write(tree / AUDIT, "int audit;\n")
    folder = tree / "build-arm64-normal"
    write(folder / "arch/arm64/kvm/.mmu.o.cmd", CMD.format("arch/arm64/kvm/mmu.o", MMU))
    write(
        folder / "virt/kvm/.kvm_main.o.cmd",
        CMD.format("arch/arm64/kvm/../../../virt/kvm/kvm_main.o", f"arch/arm64/kvm/../../../{MAIN}"),
    )
    return SimpleNamespace(tree=SimpleNamespace(path=tree), image=folder / "arch/arm64/boot/Image")


def test_all_that_the_compiler_has_read(kernel):
    assert compiled.read(kernel.image.parents[3]) == {MMU, MAIN, "include/linux/kvm.h"}


def test_what_only_an_option_compiles(kernel):
    assert compiled.alone(kernel, MMU, MMU, ()) == {MMU}
    assert compiled.alone(kernel, MMU, MMU, ("CONFIG_AUDIT",)) == {MMU, AUDIT}
    write(kernel.tree.path / AUDIT, "#error planted\n")
    compiled.alone(kernel, MMU, MMU, ())
    with pytest.raises(Fail, match="#error planted"):
        compiled.alone(kernel, MMU, MMU, ("CONFIG_AUDIT",))


def test_files_that_count_are_the_kernel_s_own_of_this_architecture(monkeypatch, kernel):
    others = ["arch/mips/kvm/mmu.c", "arch/x86/kvm/x86.c", "tools/x.c", "Documentation/x.h"]
    for name in others:
        write(kernel.tree.path / name, "")
    monkeypatch.setattr(compiled.check, "files", lambda _tree, _patch: [MMU, AUDIT, *others, "mm/gone.c"])
    series = SimpleNamespace(patches=(1,))
    assert compiled.changed(series, kernel.tree.path, "arm64") == {MMU, AUDIT}
    assert compiled.changed(series, kernel.tree.path, "x86_64") == {"arch/x86/kvm/x86.c"}
