"""Test programs that export makes of the one source: which commit has them, and when that is a failure."""

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.source import programs
from kvmseries.source.git import git, head

TEST, HEADER = f"{programs.KVM}/access_tracking_stress_test.c", f"{programs.KVM}/include/compat.h"


@pytest.fixture
def tree(kernel, monkeypatch):
    """A tree whose last commit is that of the program; tree.made is what the source makes of it."""

    class Tree:
        """Its path, and {file: text}."""

        path = kernel
        made = {TEST: "one\n", HEADER: "map\n"}

    git(kernel, "tag", "base", own=True)
    for folder in ("include", "lib"):
        (kernel / programs.KVM / folder).mkdir(parents=True)
    (kernel / programs.KVM / "Makefile").write_text("all:\n", encoding="utf-8")
    git(kernel, "add", "-f", "-A", own=True)
    git(kernel, "commit", "-q", "-m", programs.SUBJECT, own=True)
    # As Debian's tarballs have it.
    (kernel / ".git/info/exclude").write_text("/*\n", encoding="utf-8")
    monkeypatch.setattr(programs, "_made", lambda tree: Tree.made)
    return Tree


def files(path):
    """The files of the last commit."""
    return git(path, "show", "--format=", "--name-only", "HEAD").split()


def test_the_commit_has_what_the_source_makes_beside_what_it_had(tree):
    programs.update(tree.path)
    assert set(files(tree.path)) == {TEST, HEADER, f"{programs.KVM}/Makefile"}
    assert (tree.path / TEST).read_text(encoding="utf-8") == "one\n"
    programs.check(tree.path)
    # Once more changes nothing.
    before = head(tree.path)
    programs.update(tree.path)
    assert head(tree.path) == before
    tree.made = {TEST: "two\n", HEADER: None}
    programs.update(tree.path)
    assert set(files(tree.path)) == {TEST, f"{programs.KVM}/Makefile"} and not (tree.path / HEADER).exists()


def test_what_is_not_the_source_s_is_a_failure(tree):
    """So is a shared file of an earlier patch."""
    programs.update(tree.path)
    shared = tree.path / programs.KVM / "include/metric.h"
    shared.write_bytes((paths.TESTS / "lib/metric.h").read_bytes())
    programs.check(tree.path)
    for path in (shared, tree.path / TEST):
        path.write_text("edited\n", encoding="utf-8")
        with pytest.raises(Fail, match=f"{path.name} is not what .* has: export the series"):
            programs.check(tree.path)
        path.unlink()
        if path == shared:
            programs.check(tree.path)


def test_the_commit_must_be_the_last(tree):
    git(tree.path, "commit", "-q", "--allow-empty", "-m", "KVM: Another", own=True)
    with pytest.raises(Fail, match="must be the last commit"):
        programs.update(tree.path)


def test_a_tree_without_such_a_commit_is_left_alone(tree):
    git(tree.path, "commit", "-q", "--amend", "-m", "KVM: Another", own=True)
    before = head(tree.path)
    programs.update(tree.path)
    programs.check(tree.path)
    assert head(tree.path) == before


@pytest.mark.parametrize(
    "text, empty",
    [
        ('/* x\n * y */\n#ifndef A\n#define A\n\n#include "kvm_util.h"\n#endif /* A */\n', True),
        ("// SPDX\n/* x */\n", True),
        ("#define A\n#define gva_t vm_vaddr_t\n", False),
        ("int x;\n", False),
    ],
)
def test_what_has_nothing_left_to_map(text, empty):
    assert bool(programs._EMPTY.fullmatch(text)) == empty
