"""apply --milestone, and fixes that apply alone."""

import re

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import below, git, milestones, subjects, SUBJECTS, write
from kvmseries.kernel import build
from kvmseries.source import catalog, export, trees
from kvmseries.verify import check

LETTER = 'KVM: A letter\n\nWhat "Take the second step" is for.\n'


def with_milestones(patches, ends, on=None, needs=None):
    """The series mini with these milestones; see conftest.milestones."""
    milestones(patches, ends, on, needs)
    return catalog.load("mini")


def test_a_milestone_is_a_branch_on_what_it_needs(series, mini, kernel, tmp_path):
    result = series("apply", "mini", tmp_path / "copy", "--tree", kernel, "--milestone", "rwlock")
    assert (result.status, result.out) == (0, f"{tmp_path / 'copy'}\n")
    assert "1 of 3 patches of mini on 1 that they need, branch kvm-mini-rwlock, tags base and needed" in result.err
    copy = tmp_path / "copy"
    assert subjects(copy, until="needed") == [SUBJECTS[0]] and subjects(copy, "needed") == [SUBJECTS[1]]
    assert git(copy, "symbolic-ref", "--short", "HEAD") == "kvm-mini-rwlock\n"
    # The base of what git sends is the kernel's commit, and the patch below is named.
    sent = git(copy, "format-patch", "--stdout", "--base=base", "needed..HEAD")
    assert f"base-commit: {git(kernel, 'rev-parse', 'HEAD')}prerequisite-patch-id: " in sent
    assert sent.count("Subject: ") == 1


def test_a_milestone_on_the_base_is_without_those_before_it(series, patches, kernel, tmp_path):
    milestones(patches, {"rwlock": 2, "last": 3}, {"last": ["base"]})
    assert series("apply", "mini", tmp_path / "copy", "--tree", kernel, "--milestone", "last").status == 0
    assert subjects(tmp_path / "copy") == [SUBJECTS[2]]
    base, needed = git(tmp_path / "copy", "rev-parse", "base^{commit}", "needed^{commit}").split()
    assert base == needed


def test_a_patch_of_a_milestone_that_does_not_apply_is_named_by_its_number(series, refused, patches, kernel, tmp_path):
    milestones(patches, {"first": 1, "rwlock": 2}, {"rwlock": ["base"]})
    line = refused("apply", "mini", tmp_path / "copy", "--tree", kernel, "--milestone", "rwlock")
    assert line.startswith("patch 2 does not apply to ") and not (tmp_path / "copy").exists()


def test_letters_and_trees_of_a_milestone_and_export(mini, patches, kernel, tmp_path):
    write(mini.letter("rwlock"), LETTER)
    before = below(patches)
    copy = trees.copy(mini, tmp_path / "copy", 3, kernel, part=mini.milestone("rwlock"))
    with pytest.raises(Fail, match="was made with --milestone "):
        export.export(mini, copy)
    assert below(patches) == before
    export.export(mini, trees.copy(mini, tmp_path / "other", 2, kernel))
    assert mini.letter("rwlock").read_text(encoding="utf-8") == LETTER


def test_fixes_that_apply_alone(patches, mirror):
    mini = with_milestones(patches, {"fixes": 2}, needs={2: [1]})
    assert check.alone(mini) == 2
    tree = trees.base(mini).path
    assert git(tree, "diff", "--name-only", "base", trees.alone(mini, 1)) == "arch/arm64/kvm/mmu.c\n"
    # What it needs is below it, and the same commit comes of the same patches.
    assert git(tree, "rev-parse", f"{trees.alone(mini, 2)}^{{tree}}") == git(
        trees.worktree(mini, 2).path, "rev-parse", "HEAD^{tree}"
    )
    assert trees.alone(mini, 2) == trees.alone(mini, 2)
    assert not git(tree, "status", "--porcelain")


def test_negative_control_a_fix_that_needs_another(patches, mirror):
    mini = with_milestones(patches, {"fixes": 2})
    with pytest.raises(Fail, match="0002-.* does not apply to the base alone: .*mmu.c.*milestones must say so"):
        check.alone(mini)


def test_negative_control_a_milestone_that_needs_another(patches, mirror):
    with pytest.raises(Fail, match="0002-.* does not apply to the base with the milestone rwlock on base"):
        check.alone(with_milestones(patches, {"first": 1, "rwlock": 2}, {"rwlock": ["base"]}))
    assert check.alone(with_milestones(patches, {"first": 2, "last": 3}, {"last": ["base"]})) == 1


def test_each_fix_is_built_alone_where_it_changes_the_kernel(patches, mirror, monkeypatch):
    mini = with_milestones(patches, {"first": 1, "fixes": 3}, needs={2: [1]})
    built, bad = [], ()

    def in_tree(tree, arch, *_):
        if tree.count in bad:
            raise Fail("virt/kvm/kvm_main.c:30: error: unknown type")
        built.append((tree.point, arch, "first" in (tree.path / "arch/arm64/kvm/mmu.c").read_text(encoding="utf-8")))

    monkeypatch.setattr(build, "in_tree", in_tree)
    assert check.builds_alone(mini, "arm64", None) == [2, 3]
    assert check.builds_alone(mini, "x86_64", None) == [3]
    assert built == [("alone-2", "arm64", True), ("alone-3", "arm64", False), ("alone-3", "x86_64", False)]
    # Negative control: one that does not build; what was built is not built again.
    bad = (3,)
    paths.remove(paths.out("built"))
    with pytest.raises(Fail, match="mini does not build for arm64 on the base with only 0003-.*: .*unknown type"):
        check.builds_alone(mini, "arm64", None)


def mails(text, series):
    """Lines about the table of submitting.md that lists the mails of the fixes of `series`, a catalog.Series: patches
    that no mail has, or two, and patches that need one of another mail, other than the one that the row says it is on."""
    subjects = [catalog.subject(patch) for patch in series.patches[: series.milestones["fixes"]]]
    found, wrong, sent = [], [], {}
    for count, last, on in re.findall(r"^\| .* \| `-(\d+) \":/([^\"]+)\"`(?:, on \"([^\"]+)\")? \|$", text, re.M):
        ends = [number for number, subject in enumerate(subjects, 1) if last in subject]
        if len(ends) != 1:
            wrong.append(f"{last}: {len(ends)} patches")
            continue
        own = range(ends[0] - int(count) + 1, ends[0] + 1)
        found += own
        sent[last] = own
        there = {*own, *sent.get(on, ())}
        needed = [other for number in own for other in series.needs.get(number, ()) if other not in there]
        wrong += [f"{last}: needs '{subjects[other - 1]}'" for other in needed]
    for number, subject in enumerate(subjects, 1):
        if found.count(number) != 1:
            wrong.append(f"{subject}: in {found.count(number)} mails")
    return wrong


def test_the_mails_of_the_fixes_are_the_patches_of_the_milestone():
    text = (paths.ROOT / "Documentation" / "submitting.md").read_text(encoding="utf-8")
    assert mails(text, catalog.load("v7.3")) == []


FIRST, SECOND_ALONE = '| x | to | `-1 ":/the first"` |', '| x | to | `-1 ":/the second"`'
SECOND, THIRD = '| x | to | `-2 ":/the second"` |', '| x | to | `-1 ":/the third"` |'


@pytest.mark.parametrize(
    "text, wrong",
    [
        (f"{SECOND}\n{THIRD}", []),
        (SECOND, [f"{SUBJECTS[2]}: in 0 mails"]),
        (f'{FIRST}\n{SECOND_ALONE}, on "the first" |\n{THIRD}', []),
        (f'{FIRST}\n{SECOND_ALONE}, on "the other" |\n{THIRD}', [f"the second: needs '{SUBJECTS[0]}'"]),
        (f"{SECOND}\n{THIRD}\n{THIRD}", [f"{SUBJECTS[2]}: in 2 mails"]),
        (f"{SECOND}\n{THIRD}\n{THIRD.replace('third', 'fifth')}", ["the fifth: 0 patches"]),
        (f"{SECOND}\n{THIRD}\n{THIRD.replace('the third', 'Take the')}", ["Take the: 3 patches"]),
    ],
)
def test_negative_control_mails_that_are_not_the_patches(patches, text, wrong):
    assert mails(text, with_milestones(patches, {"fixes": 3}, needs={2: [1]})) == wrong
