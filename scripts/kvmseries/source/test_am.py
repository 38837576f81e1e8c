import pytest

from kvmseries.base.errors import Fail
from kvmseries.conftest import edit, git, MMU, snapshot, SUBJECTS, write
from kvmseries.source import am
from kvmseries.source.git import changes


def state(tree):
    return git(tree, "rev-parse", "HEAD"), git(tree, "status", "--porcelain"), git(tree, "for-each-ref")


def refused(tree, patches, **options):
    """am.apply() must fail and leave the tree as it was; returns the message."""
    before, files = state(tree), snapshot(tree / "arch")
    with pytest.raises(Fail) as caught:
        am.apply(tree, patches, where="linux x", **options)
    assert state(tree) == before
    assert {name: text for name, (text, _) in snapshot(tree / "arch").items()} == {
        name: text for name, (text, _) in files.items()
    }
    assert not (tree / ".git/rebase-apply").exists()
    return str(caught.value)


def test_one_commit_a_patch_with_author_and_date(mini, kernel):
    am.apply(kernel, mini.patches, own=True)
    assert git(kernel, "log", "--reverse", "--format=%s", "-3").splitlines() == list(SUBJECTS)
    author = git(kernel, "log", "-1", "--format=%an <%ae> %aI", "HEAD~2").strip()
    assert author == "Zoë Author <zoe@example.org> 2020-02-02T02:02:02+02:00"
    assert not changes(kernel)


def test_the_same_patches_give_the_same_commits(mini, made, tmp_path, identity):
    """As the tool, whoever runs it: builds are stamped with commits."""
    commits = set()
    for name in "ab":
        git(tmp_path, "clone", "-q", str(made.tree), name)
        am.apply(tmp_path / name, mini.patches, own=True)
        commits.add(git(tmp_path / name, "rev-parse", "HEAD"))
    assert len(commits) == 1


def test_the_user_commits_where_git_knows_them_and_signs_off(mini, kernel, identity):
    before = state(kernel)
    am.apply(kernel, ())
    assert state(kernel) == before
    am.apply(kernel, mini.patches[:1])
    assert git(kernel, "log", "-1", "--format=%cn").strip() == "Ursula User"
    am.apply(kernel, mini.patches[1:], signoff=True)
    assert "Signed-off-by: Ursula User <ursula@example.org>" in git(kernel, "log", "-1", "--format=%B")


def test_patch_and_hunk_that_fail_are_named(mini, kernel):
    edit(kernel, MMU, "int kvm29;", "int other;")
    git(kernel, "commit", "-q", "-a", "-m", "elsewhere")
    message = refused(kernel, mini.patches, differ=" (so it is)")
    hunk = f"hunk @@ -28,7 +28,7 @@ of {MMU} (int kvm26;)"
    assert message == f"patch 3 does not apply to linux x: {mini.patches[2].name}: {hunk} (so it is)"
    git(kernel, "rm", "-q", "-f", MMU)
    write(kernel / "tools/testing/new.c", "mine\n")
    git(kernel, "add", "-A")
    git(kernel, "commit", "-q", "-m", "files are gone, or in the way")
    message = refused(kernel, mini.patches)
    assert f"{MMU} is not there" in message and "tools/testing/new.c exists" in message


def test_a_hunk_is_that_of_its_file(tmp_path):
    """Hunks of several files may begin at the same line."""
    patch = tmp_path / "0001-x.patch"
    patch.write_text(
        "".join(f"--- a/{name}\n+++ b/{name}\n@@ -8,7 +8,7 @@ in_{name}\n" for name in "ab"), encoding="utf-8"
    )
    assert am._hunk(patch, "b", "8") == "hunk @@ -8,7 +8,7 @@ of b (in_b)"
    assert am._hunk(patch, "b", "9") == "b:9"


@pytest.mark.parametrize("there, named", [((0,), 0), ((0, 1), 1), ((0, 1, 2), 2), ((2,), 2)])
def test_a_tree_that_is_patched_already_is_told_so(mini, kernel, there, named):
    """Also with only some of the patches, and where later patches change the lines of the first."""
    git(kernel, "am", "-q", *(str(mini.patches[number]) for number in there))
    message = refused(kernel, mini.patches)
    assert message.startswith(f"{mini.patches[named].name} is already there in linux x: use a tree")


def test_a_file_that_is_no_patch_fails_in_one_line(kernel, tmp_path):
    (tmp_path / "0001-x.patch").write_text("nothing\n", encoding="utf-8")
    message = refused(kernel, [tmp_path / "0001-x.patch"])
    assert "\n" not in message
    assert message.startswith("git am failed on linux x") or "0001-x.patch" in message
