"""Building: what went into a kernel is what its stamp says."""

from types import SimpleNamespace

import pytest

from kvmseries.base.errors import Fail
from kvmseries.conftest import replaced, write
from kvmseries.kernel import build, kconfig
from kvmseries.source import catalog


@pytest.fixture(name="kernel")
def _kernel(tmp_path, monkeypatch):
    """A tree and a make that writes the .config that `dotconfig` holds; returns (build, calls)."""
    calls, dotconfig = [], {"text": ""}
    folder = tmp_path / "tree/build-arm64-normal"
    folder.parent.mkdir()

    def run(command, *_, **__):
        calls.append(command[-1])
        if command[-1] == "allnoconfig":
            (folder / ".config").write_text(dotconfig["text"], encoding="utf-8")
        else:
            for name in ("arch/arm64/boot/Image", "include/config/kernel.release"):
                write(folder / name, "5.10.262-series\n")
        return ""

    monkeypatch.setattr(build.proc, "run", run)
    monkeypatch.setattr(build.trees, "head", lambda _: "commit")
    monkeypatch.setattr(build.toolchain, "version", lambda _: "gcc 12")
    tree = SimpleNamespace(path=folder.parent, point="series", count=3)
    config = kconfig.Config((), "CONFIG_KVM=y\n", {"CONFIG_KVM": "y"}, ())
    return (lambda: build._build(tree, "arm64", config, folder, print)), calls, dotconfig


def test_a_config_that_is_not_taken_is_refused_every_time(kernel):
    make, calls, _ = kernel
    for _ in range(2):
        with pytest.raises(Fail, match="does not take CONFIG_KVM=y"):
            make()
    assert "Image" not in calls


def test_a_kernel_is_built_once_and_taken_up_again_where_it_broke_off(kernel, tmp_path):
    make, calls, dotconfig = kernel
    dotconfig["text"] = "CONFIG_KVM=y\n"
    assert make() == make() == "5.10.262-series"
    assert calls == ["allnoconfig", "Image"]
    folder = tmp_path / "tree/build-arm64-normal"
    (folder / "series.json").unlink()
    # make stops at a file that ends in the middle: "unterminated call to function 'wildcard'".
    torn = write(folder / "fs/proc/.softirqs.o.cmd", "deps := $(wildcard inc")
    whole = write(folder / "fs/proc/.stat.o.cmd", "deps := $(wildcard include/x.h)\n")
    make()
    assert calls == ["allnoconfig", "Image", "Image"] and whole.exists() and not torn.exists()


WARNED = """\
  CC      arch/arm64/kvm/mmu.o
../arch/arm64/kvm/mmu.c: In function 'f':
../arch/arm64/kvm/mmu.c:12:6: warning: variable 'x' set but not used [-Wunused-but-set-variable]
   12 |  int x;
../arch/arm64/kvm/mmu.c:99:6: warning: variable 'x' set but not used [-Wunused-but-set-variable]
  CHECK   ../arch/arm64/kvm/mmu.c
../arch/arm64/kvm/mmu.c:40:9: warning: incorrect type in assignment (different base types)
../arch/arm64/kvm/mmu.c:40:9:    expected restricted gfp_t
../arch/arm64/kvm/mmu.c:41:2: error: undefined identifier 'y'
arch/arm64/kvm/mmu.c:50: warning: Function parameter or member 'z' not described in 'f'
../include/linux/kernel.h:1:1: warning: of nobody here
"""


def test_warnings_of_some_files_are_counted_wherever_they_are():
    unused = "arch/arm64/kvm/mmu.c: warning: variable 'x' set but not used [-Wunused-but-set-variable]"
    found = build.about(WARNED, {"arch/arm64/kvm/mmu.c", "arch/arm64/kvm/arm.c"})
    assert found == {
        unused: 2,
        "arch/arm64/kvm/mmu.c: warning: incorrect type in assignment (different base types)": 1,
        "arch/arm64/kvm/mmu.c: error: undefined identifier 'y'": 1,
        "arch/arm64/kvm/mmu.c: warning: Function parameter or member 'z' not described in 'f'": 1,
    }
    # Moved it is the same, once more it is another.
    assert not found - build.about(WARNED.replace(":12:6", ":13:6"), {"arch/arm64/kvm/mmu.c"})
    once = build.about(WARNED.replace("mmu.c:99:6", "other.c:99:6"), {"arch/arm64/kvm/mmu.c"})
    assert list((found - once).elements()) == [unused]


def test_builds_of_each_patch_go_on_where_they_stopped_and_what_has_changed_is_built_again(mini, mirror, monkeypatch):
    built, bad = [], [2]

    def in_tree(tree, *_):
        if tree.count in bad:
            raise Fail("error: here")
        built.append(tree.count)

    def made():
        built.clear()
        build.each_patch(catalog.load("mini"), "arm64", range(4), None)
        return built

    monkeypatch.setattr(build, "in_tree", in_tree)
    monkeypatch.setattr(build.toolchain, "version", lambda _: "gcc 12")
    with pytest.raises(Fail, match="mini does not build for arm64 with 0002-.*patch: error: here"):
        made()
    bad.clear()
    assert built == [0, 1] and made() == [2, 3] and made() == []
    replaced(mini.patches[2], "+int third;", "+int other;")
    assert made() == [3]
    monkeypatch.setattr(build.toolchain, "version", lambda _: "gcc 99")
    assert made() == [0, 1, 2, 3]


@pytest.mark.parametrize("word", ("cmd", "savedcmd"))
def test_a_file_has_the_name_by_which_make_compiles_it(tmp_path, word):
    folder = tmp_path / "virt" / "kvm"
    folder.mkdir(parents=True)
    made = "arch/arm64/kvm/../../../virt/kvm/kvm_main"
    (folder / ".kvm_main.o.cmd").write_text(f"{word}_{made}.o := gcc -c -o {made}.o {made}.c\n", encoding="utf-8")
    assert build._named_by_make(tmp_path, "virt/kvm/kvm_main.c") == f"{made}.c"
    assert build._named_by_make(tmp_path, "virt/kvm/eventfd.c") == "virt/kvm/eventfd.c"
    assert build._named_by_make(tmp_path, "virt/kvm/kvm_mm.h") == "virt/kvm/kvm_mm.h"
