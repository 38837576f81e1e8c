import pytest

from tests import extra
from kvmseries.base.errors import Fail
from kvmseries.conftest import ARM, below, edit, git, milestones, MMU, replaced, SUBJECTS, write
from kvmseries.kernel import build
from kvmseries.source import catalog, export, trees
from kvmseries.verify import check, mutants


def contents(folder):
    return {name: (folder / name).read_bytes() for name in below(folder)}


@pytest.fixture
def tree(mini, kernel, tmp_path):
    """A tree made by apply."""
    return trees.copy(mini, tmp_path / "copy", 3, kernel)


def test_export_gives_the_files_back_byte_for_byte_whoever_exports(mini, patches, tree, identity, tmp_path):
    before = contents(patches)
    with open(tmp_path / "gitconfig", "a", encoding="utf-8") as file:
        file.write(
            "[format]\n\tsignOff = true\n\tnumbered = false\n\tsubjectPrefix = RFC\n"
            "\tattach = x\n\tthread = true\n\tsuffix = .txt\n\tcoverLetter = true\n\tfrom = true\n"
            "[diff]\n\tnoprefix = true\n\talgorithm = patience\n\tcontext = 7\n"
            "[core]\n\tabbrev = 5\n[log]\n\tdate = iso\n[color]\n\tui = always\n"
            '[format]\n\tto = list@example.org\n\theaders = "X-Own: 1\\n"\n'
        )
    assert export.export(mini, tree) == 3
    assert contents(patches) == before
    assert below(patches.parent) == ["mini", *(f"mini/{name}" for name in sorted(before))]


def more(tree, subject="KVM: arm64: Take the fourth step"):
    """One more commit of `tree`."""
    edit(tree, ARM, "int arm50;", "int fourth;")
    git(tree, "commit", "-q", "-a", "-m", f"{subject}\n\nMore.")


def test_a_new_commit_is_a_new_patch_and_the_cover_letter_counts_it(mini, patches, tree):
    more(tree)
    assert export.export(mini, tree) == 4
    series = catalog.load("mini")
    assert [catalog.subject(patch) for patch in series.patches] == [*SUBJECTS, "KVM: arm64: Take the fourth step"]
    letter = series.cover.read_text(encoding="utf-8")
    assert "Subject: [PATCH] A tiny series" in letter
    assert 'What "Take the ..." are for.' in letter and "Take the fourth step" in letter
    assert letter.count("Zoë Author (1):") == 1 and "Tess Tester (3):" in letter
    assert "3 files changed" in letter
    check.clean(series)
    first = contents(patches)
    assert export.export(series, tree) == 4
    assert contents(patches) == first


def insert(tree, number, subject):
    """A commit of a new file behind patch `number`."""
    git(tree, "checkout", "-q", "--detach", f"HEAD~{3 - number}")
    write(tree / "virt/kvm/new.c", "int new;\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", f"{subject}\n\nWhy.")
    git(tree, "cherry-pick", f"HEAD~1..{BRANCH}" if number else f"base..{BRANCH}")


BRANCH = "kvm-mini"


@pytest.mark.parametrize("number, ends", [(0, [2, 3]), (1, [1, 3]), (2, [1, 2])])
def test_a_patch_that_is_added_is_one_new_file_and_the_cover(mini, patches, tree, capsys, number, ends):
    """Later ones are renamed.  milestones names patches by subject: the file keeps right by itself."""
    before = contents(patches)
    insert(tree, number, "KVM: New")
    export.export(mini, tree)
    after = contents(patches)
    new = sorted(name for name, text in after.items() if text not in before.values())
    assert new == ["0000-cover-letter.patch", f"{number + 1:04d}-KVM-New.patch"]
    assert set(before.values()) - set(after.values()) == {before["0000-cover-letter.patch"]}
    assert list(catalog.load("mini").milestones.values()) == ends
    where = ("milestone first", "milestone rwlock", "no milestone")[number]
    assert capsys.readouterr().err == f"in {where}: KVM: New\n"


def test_patches_that_an_export_puts_into_another_milestone_are_named(mini, patches, tree, capsys):
    """The last one of "first" goes to the front of all: what was before it is no longer in "first"."""
    milestones(patches, {"first": 2, "rwlock": 3})
    git(tree, "checkout", "-q", "--detach", "base")
    edit(tree, MMU, "int kvm50;", "int other;")
    git(tree, "commit", "-q", "-a", "-m", f"{SUBJECTS[1]}\n\nAnother reason.")
    git(tree, "cherry-pick", f"{BRANCH}~2", BRANCH)
    export.export(catalog.load("mini"), tree)
    assert capsys.readouterr().err == f"in milestone rwlock: {SUBJECTS[0]}\n"


@pytest.mark.parametrize("many", ["no patch has", "several patches have"])
def test_a_milestone_whose_last_patch_is_gone_or_there_twice_is_named_and_nothing_is_written(mini, patches, tree, many):
    before = contents(patches)
    if many == "no patch has":
        git(tree, "reset", "-q", "--hard", "HEAD~2")
    else:
        more(tree, SUBJECTS[1])
    with pytest.raises(Fail, match=f"milestones: milestones, rwlock: {many} the subject '{SUBJECTS[1]}': write"):
        export.export(mini, tree)
    assert contents(patches) == before


def test_a_commit_that_is_gone_is_a_patch_that_is_gone(mini, patches, tree):
    git(tree, "reset", "-q", "--hard", "HEAD~2")
    milestones(patches, {"first": 1})
    assert export.export(catalog.load("mini"), tree) == 1 == len(catalog.load("mini").patches)


def test_a_last_patch_with_another_subject_is_exported_when_milestones_has_that(mini, patches, tree, capsys):
    git(tree, "commit", "-q", "--amend", "-m", "New subject\n\nThe last one.")
    milestones(patches, {"first": 1, "all": 3})
    with pytest.raises(Fail, match=f"all: no patch has the subject '{SUBJECTS[2]}'"):
        export.export(catalog.load("mini"), tree)
    replaced(patches / "milestones", SUBJECTS[2], "New subject")
    export.export(catalog.load("mini"), tree)
    assert catalog.load("mini").milestones == {"first": 1, "all": 3}
    assert capsys.readouterr().err == ""


def test_a_series_without_cover_letter_gets_none(mini, patches, tree):
    mini.cover.unlink()
    export.export(mini, tree)
    assert not mini.cover.exists()


def test_the_exported_tree_of_the_tool_is_up_to_date(mini, patches, mirror):
    """Work in out/trees/.../series is exported, and then the tree is what patches/ say."""
    own = trees.worktree(mini, 3).path
    more(own)
    head = git(own, "rev-parse", "HEAD")
    export.export(mini)
    assert trees.worktree(catalog.load("mini"), 4).path == own
    assert git(own, "rev-parse", "HEAD") == head


LEFTOVERS = [
    "# Conflicts:\n#\tarch/arm64/kvm/mmu.c",
    "#\tarch/arm64/kvm/mmu.c",
    "#",
    "# Please enter the commit message for your changes.",
    "Conflicts:\n\tarch/arm64/kvm/mmu.c",
    "squash! Another",
]
TRAILERS = ["Signed-off-by", "signed-off-by", "Reviewed-by", "Tested-by", "Acked-by"]


@pytest.mark.parametrize(
    "text, line",
    [
        *((left, "'Last' has git's '.*' in its message: take it out") for left in LEFTOVERS),
        *((f"{name}: X <x@example.org>", f"'Last' carries '{name}: .*': whoever submits adds it") for name in TRAILERS),
    ],
)
def test_what_is_in_a_message_and_must_not_be_is_refused(mini, patches, tree, text, line):
    before = contents(patches)
    git(tree, "commit", "-q", "--amend", "--cleanup=verbatim", "-m", f"Last\n\nText.\n\n{text}\n")
    with pytest.raises(Fail, match=line):
        export.export(mini, tree)
    assert contents(patches) == before


def test_what_is_no_tree_of_the_tool_is_refused(mini, patches, kernel, tree, tmp_path, mirror):
    before = contents(patches)
    edit(tree, ARM, "int arm50;", "int unfinished;")
    for path, line in (
        (tree, f"has uncommitted changes .M {ARM}.: commit them"),
        (kernel, "has no tag 'base'"),
        (tmp_path / "none", "is not a git tree"),
        (None, "no tree to export: make one with"),
    ):
        with pytest.raises(Fail, match=line):
            export.export(mini, path)
    git(kernel, "tag", "base")
    with pytest.raises(Fail, match="no commits after its tag 'base'"):
        export.export(mini, kernel)
    assert contents(patches) == before


def test_a_clean_series_is_clean(mini, mirror):
    check.clean(mini)
    check.round_trip(mini)


_BUG = """\
%s

--- a/virt/kvm/kvm_main.c
+++ b/virt/kvm/kvm_main.c
@@ -1,3 +1,3 @@
-%s
+%s
 int kvm1;
 int kvm2;
"""


def test_instruments_and_mutants_apply_on_top_of_each_other(mini, mirror, patches, monkeypatch):
    one, two = (patches.parent / "instruments/mini" / name for name in ("one.patch", "two.patch"))
    write(one, _BUG % ("A bug.", "int kvm0;", "int bug;"))
    write(two, _BUG % ("Another, on top\nof one.patch.", "int bug;", "int bugs;"))
    monkeypatch.setattr(mutants, "FILE", write(patches.parent / "mutants/mutants.yaml", "mini: {}\n"))
    assert extra.apply_on_top(mini) == ["one.patch", "two.patch"]
    write(two, _BUG % ("Another one.", "int bug;", "int bugs;"))
    with pytest.raises(Fail, match="two.patch"):
        extra.apply_on_top(mini)


@pytest.mark.parametrize(
    "arch, ends, counts",
    [
        ("arm64", None, [0, 1, 2, 3]),
        ("x86_64", None, [0, 3]),
        ("arm64", {"one": 1, "three": 3}, [1, 3]),
        ("x86_64", {"one": 1, "three": 3}, [3]),
        ("x86_64", {"one": 1}, []),
    ],
)
def test_patches_that_change_no_kernel_of_an_architecture_are_not_built(mini, mirror, monkeypatch, arch, ends, counts):
    """The first two are arm64's.  Of steps, which `ends` says, the last patch that changes the kernel is built."""
    built = []
    monkeypatch.setattr(build, "each_patch", lambda _s, _a, counts, *_, **singly: singly or built.append(counts))
    if ends:
        milestones(mini.path, ends)
    assert check.builds(catalog.load("mini"), arch, None, steps=bool(ends)) == [count for count in counts if count]
    assert built == [counts]


def test_a_series_without_patches_needs_no_cover_letter(patches, mirror):
    for file in [*patches.glob("000*"), patches / "milestones"]:
        file.unlink()
    series = catalog.load("mini")
    check.applies(series)
    check.clean(series)
    check.round_trip(series)
    (patches / "0000-cover-letter.patch").write_text("Subject: [PATCH] x\n", encoding="utf-8")
    with pytest.raises(Fail, match="0000-cover-letter.patch is for no patches: mini has none"):
        check.clean(series)


@pytest.mark.parametrize(
    "name, old, new, reason",
    [
        ("0002", "Another reason.", 'As in commit\n0123456789ab ("x").\n\nFixes: 0123456789ab ("x")', ""),
        ("0002", "Another reason.", "#define X 1\n  # echo 1", ""),
        *(("0002", "Another reason.", f"A.\n\n{left}", "0002-.* has git's '.*' in its message") for left in LEFTOVERS),
        ("0002", "Subject: [PATCH] ", "Subject: [PATCH] fixup! ", "0002-.* has git's 'fixup! .*' in its message: take"),
        ("0002", "Another reason.", "Another.\n\nSigned-off-by: X <x@y>", "carries 'Signed-off-by: X"),
        ("0002", "Another reason.", 'As in commit 0123456 ("x").', "'commit 0123456': name a commit by 12 digits"),
        ("0002", "Another reason.", "As in commit\n0123456789ab.", "'commit 0123456789ab': name a commit by 12 digits"),
        ("0002", "Another reason.", 'Another.\n\nFixes: 0123456789 ("x")', "'Fixes: 0123456789"),
        ("0002", "Another reason.", "Another.\n\nFixes: 0123456789ab", "'Fixes: 0123456789ab'"),
        ("0000", "Tess Tester (2):", "Tess Tester (1):", "is not for 3 patches"),
        ("milestones", "the second", "the last", "milestones, rwlock: no patch has the subject '.* last step'"),
    ],
)
def test_what_is_not_clean_is_named(mini, patches, name, old, new, reason):
    replaced(next(patches.glob(f"{name}*")), old, new)
    if reason:
        with pytest.raises(Fail, match=reason):
            check.clean(catalog.load("mini"))
        return
    check.clean(catalog.load("mini"))
    mini.cover.unlink()
    with pytest.raises(Fail, match="mini has no cover letter: 0000-cover-letter.patch"):
        check.clean(mini)


def ending(patches, number, text):
    """Give patch `number` of the series "mini" `text` as the end of its message."""
    replaced(next(patches.glob(f"{number:04d}-*")), "\n---\n", f"\n\n{text}\n---\n")


NO_TAG = "Found by reading. No Fixes: tag,\nbecause base is only slower."


@pytest.mark.parametrize(
    "text, right",
    [
        ('Fixes: 0123456789ab ("x")', True),
        (NO_TAG, True),
        ("No Fixes: tag.", False),
        ("It has a Fixes: tag, because it must.", False),
        ("See Fixes: below.", False),
        ("", False),
    ],
)
def test_a_fix_says_what_it_fixes_or_why_not(patches, text, right):
    milestones(patches, {"fixes": 1, "rwlock": 2})
    ending(patches, 1, text)
    if right:
        check.clean(catalog.load("mini"))
        return
    with pytest.raises(Fail, match="0001-.* is a fix without Fixes: name the commit that brought the bug"):
        check.clean(catalog.load("mini"))


def test_a_test_among_the_fixes_fixes_nothing(patches):
    """The third patch also changes KVM: without that it is a test's."""
    milestones(patches, {"fixes": 3})
    for number in 1, 2:
        ending(patches, number, NO_TAG)
    with pytest.raises(Fail, match="0003-.* is a fix without Fixes"):
        check.clean(catalog.load("mini"))
    replaced(next(patches.glob("0003*")), f"diff --git a/{MMU}", "diff --git a/tools/x.c")
    check.clean(catalog.load("mini"))


def body(lines):
    """A message's end with which it has so many lines: a line, an empty one, and then these."""
    return "\n".join(f"Line {number}." for number in range(lines - 2))


def test_a_message_is_short_or_it_is_said_why_not(patches):
    long = patches / "long-messages"
    ending(patches, 2, body(check.LINES + 1))
    check.clean(catalog.load("mini"))
    long.write_text("# Which\n\n", encoding="utf-8")
    with pytest.raises(Fail, match=f"{SUBJECTS[1]}' has {check.LINES + 1} lines: at most {check.LINES} are"):
        check.clean(catalog.load("mini"))
    reason = f'"{SUBJECTS[1]}": why two vCPUs lose nothing\n'
    long.write_text(reason, encoding="utf-8")
    check.clean(catalog.load("mini"))
    long.write_text(f'{reason}"{SUBJECTS[2]}": too\n', encoding="utf-8")
    with pytest.raises(Fail, match=f"long-messages: the message of '{SUBJECTS[2]}' has 1 lines: take the line out"):
        check.clean(catalog.load("mini"))
    long.write_text(f"{reason}nope: never\n", encoding="utf-8")
    with pytest.raises(Fail, match="long-messages: the message of 'nope' is of no patch: take the line out"):
        check.clean(catalog.load("mini"))


def test_a_message_of_as_many_lines_as_may_be_there_is_short(patches):
    """Trailers and empty lines at the end do not count."""
    (patches / "long-messages").touch()
    ending(patches, 2, body(check.LINES) + '\n\nFixes: 0123456789ab ("x")\nCc: x@example.org')
    check.clean(catalog.load("mini"))


@pytest.mark.parametrize(
    "line, reason",
    [
        ('"x":', "'x': a line is the subject of a patch, and why its message is long"),
        ("2: 3", "'2': a line is"),
        ("words", "is not right: it is no mapping"),
    ],
)
def test_a_line_about_a_long_message_needs_subject_and_reason(patches, line, reason):
    (patches / "long-messages").write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(Fail, match=f"long-messages.*{reason}"):
        check.clean(catalog.load("mini"))


@pytest.mark.parametrize(
    "name, old, new, line",
    [
        ("0002", "\n---\n", "\n\n---\n", "0002-.* is not what `scripts/series export mini` writes"),
        ("0000", "3 files changed", "2 files changed", "list of patches or diffstat is out of date"),
    ],
)
def test_a_file_that_was_edited_is_not_what_export_writes(patches, mirror, name, old, new, line):
    replaced(next(patches.glob(f"{name}*")), old, new)
    with pytest.raises(Fail, match=line):
        check.round_trip(catalog.load("mini"))
