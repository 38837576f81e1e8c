"""Building the selftests: what make is told, when it is run at all, and what of ours a tree has."""

import pytest

from kvmseries.base import paths, proc
from kvmseries.base.errors import Fail
from kvmseries.conftest import compilers, write
from kvmseries.kernel import selftests

# Ours are built first, which makes headers and the library; then the tree's.
MAKE = """\
for word; do case $word in *=*) eval "${word%%=*}='${word#*=}'" ;; esac; done
case "$*" in
*TREE=*)
	[ -f "$TREE/Makefile" ] || exit 2
	echo x >> "$COUNT"
	mkdir -p "$O/build/tools" "$O/headers/include"
	for name in lockphase own_test; do
		echo ours > "$O/$name"; chmod +x "$O/$name"
	done ;;
*)
	[ -d "$abs_objdir/tools" ] && [ -d "$INSTALL_HDR_PATH/include" ] || exit 2
	[ "$KHDR_INCLUDES" = "-isystem $INSTALL_HDR_PATH/include" ] || exit 3
	mkdir "$OUTPUT/arm64"
	for name in arm64/some_test some_test.o own_test; do
		echo "$ARCH" > "$OUTPUT/$name"; chmod +x "$OUTPUT/$name"
	done ;;
esac
"""
# What tree.mk asks of a tree's Makefile, and a tree whose library has little.
TREE = """\
LIBKVM_OBJS := $(OUTPUT)/kvm_util.o
LINUX_TOOL_INCLUDE := include
$(OUTPUT)/kvm_util.o:
	touch $@
"""


@pytest.fixture
def make(program, mini, kernel, tmp_path, monkeypatch):
    """make(): builds for arm64, returns the directory; make.count holds an x for each real run."""
    compilers(program)
    program("make", MAKE)
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))

    def run(count=None):
        return selftests.build(mini, "arm64", kernel, count)

    run.count = tmp_path / "count"
    return run


def test_the_programs_are_those_that_can_be_run_and_ours_goes_before_the_tree_s(make):
    assert selftests.programs(make()) == ["arm64/some_test", "lockphase", "own_test"]
    assert (make() / "own_test").read_text(encoding="utf-8") == "ours\n"


def test_what_is_built_is_not_built_again_until_a_program_of_ours_changes(make, tmp_path, monkeypatch):
    assert make() == make()
    assert make.count.read_text(encoding="utf-8") == "x\n"
    for name in ("Makefile", "tree.mk", "guest/lockphase.c", "guest/spread.c", "lib/compat.h", "tests/x_test.c"):
        write(tmp_path / "ours" / name, "another\n")
    monkeypatch.setattr(paths, "TESTS", tmp_path / "ours")
    for number, name in enumerate(("Makefile", "guest/spread.c", "lib/compat.h", "tests/x_test.c"), 2):
        (tmp_path / "ours" / name).write_text(f"{number}\n", encoding="utf-8")
        make()
        assert make.count.read_text(encoding="utf-8") == "x\n" * number


def test_base_s_selftests_are_built_apart(make, mini):
    every, base = make(), make(0)
    assert base != every == make(len(mini.patches)) and make.count.read_text(encoding="utf-8") == "x\nx\n"


def test_a_build_that_fails_leaves_no_programs(make, program):
    program("make", "echo 'x.c:1: error: no'; exit 2\n")
    with pytest.raises(Fail, match="error: no"):
        make()
    program("make", MAKE)
    assert selftests.programs(make()) == ["arm64/some_test", "lockphase", "own_test"]


@pytest.fixture
def tree(tmp_path):
    """A directory that our Makefile takes for a tree."""
    kvm = tmp_path / "tree" / selftests.SUBDIR
    (kvm / "include").mkdir(parents=True)
    (kvm / "Makefile").write_text(TREE, encoding="utf-8")
    (tmp_path / "headers/include/linux").mkdir(parents=True)
    (tmp_path / "headers/include/linux/kvm.h").touch()
    return tmp_path / "tree"


def ours(tree, *words):
    """(status, output) of our Makefile for `tree`, with compilers that do nothing."""
    out = tree.parent / "out"
    command = ["make", "-C", str(paths.TESTS), f"TREE={tree}", f"O={out}", f"HEADERS={tree.parent}/headers"]
    return proc.attempt([*command, "ARCH=arm64", "CC=true", "AR=true", *words], "make")


def test_what_a_tree_cannot_have_is_named_and_left_out(tree):
    status, text = ours(tree, "CC=false")
    assert status and "Error 1" in text
    status, text = ours(tree)
    assert not status
    assert "invlpg_test is left out: it is not for arm64\n" in text
    assert "gigantic_page_test is left out: this tree has no VM_MEM_SRC_ANONYMOUS_HUGETLB_1GB\n" in text
    assert "/stage2_fault_stress_test" in text and "stage2_fault_stress_test is left out" not in text
    header = tree / selftests.SUBDIR / "include/test_util.h"
    header.write_text("enum { VM_MEM_SRC_ANONYMOUS_HUGETLB_1GB };\n", encoding="utf-8")
    assert "gigantic_page_test is left out" not in ours(tree)[1]


def test_what_the_library_has_is_found_in_the_tree_s_headers_but_not_in_ours(tree):
    include = tree / selftests.SUBDIR / "include"
    assert "-DHAVE_" not in ours(tree)[1]
    (include / "compat.h").write_text("struct kvm_vcpu {\n", encoding="utf-8")
    assert "-DHAVE_" not in ours(tree)[1]
    (include / "kvm_util.h").write_text("struct kvm_vcpu {\n", encoding="utf-8")
    (include / "ucall_common.h").touch()
    text = ours(tree, "--always-make")[1]
    assert "-DHAVE_KVM_VCPU" in text and "-DHAVE_UCALL_COMMON_H" in text and "-DHAVE_GVA_T" not in text


def test_what_is_no_tree_or_was_built_in_place_is_told(tree, tmp_path):
    status, text = ours(tmp_path / "none")
    assert status and "is no kernel tree with KVM selftests: say which with TREE=" in text
    status, text = proc.attempt(["make", "-C", str(paths.TESTS), "TREE=", "ARCH=arm64"], "make")
    assert status and "say which with TREE=" in text
    (tree / ".config").touch()
    status, text = ours(tree, f"HEADERS={tree.parent}/out/headers")
    assert status and "give HEADERS=DIR" in text
    assert not (tree.parent / "out/headers").exists()
