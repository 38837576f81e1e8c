import re

import pytest

from kvmseries.base.errors import Fail
from kvmseries.conftest import ARM, edit, git, MMU, snapshot, SUBJECTS
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
    assert (
        git(kernel, "log", "-1", "--format=%an <%ae> %aI", "HEAD~2").strip()
        == "Zoë Author <zoe@example.org> 2020-02-02T02:02:02+02:00"
    )
    assert not changes(kernel)


def test_the_same_patches_give_the_same_commits(mini, made, tmp_path, identity):
    """As the tool, whoever runs it: builds are stamped with commits."""
    commits = set()
    for name in "ab":
        git(tmp_path, "clone", "-q", str(made.tree), name)
        am.apply(tmp_path / name, mini.patches, own=True)
        commits.add(git(tmp_path / name, "rev-parse", "HEAD"))
    assert len(commits) == 1


def test_no_patches_are_no_work(kernel):
    before = state(kernel)
    am.apply(kernel, ())
    assert state(kernel) == before


def test_the_user_commits_where_git_knows_them(mini, kernel, identity):
    am.apply(kernel, mini.patches)
    assert git(kernel, "log", "-1", "--format=%cn").strip() == "Ursula User"


def test_signoff_is_the_users(mini, kernel, identity):
    am.apply(kernel, mini.patches, signoff=True)
    assert "Signed-off-by: Ursula User <ursula@example.org>" in git(kernel, "log", "-1", "--format=%B")


def test_signoff_takes_an_identity(kernel):
    with pytest.raises(Fail, match="--signoff certifies the DCO.*user.name and user.email"):
        am.check_identity(kernel)


def test_an_identity_is_enough_for_signoff(kernel, identity):
    am.check_identity(kernel)


def test_patch_and_hunk_that_fail_are_named(mini, kernel):
    edit(kernel, MMU, "int kvm29;", "int other;")
    git(kernel, "commit", "-q", "-a", "-m", "elsewhere")
    message = refused(kernel, mini.patches)
    assert (
        f"patch 3 does not apply to linux x: {mini.patches[2].name}: hunk @@ -28,7 +28,7 @@ "
        f"of {MMU} (int kvm26;)" in message
    )


def test_all_hunks_that_fail_are_named(mini, kernel):
    edit(kernel, ARM, "int arm9;", "int other;")
    git(kernel, "rm", "-q", "-f", MMU)
    git(kernel, "commit", "-q", "-a", "-m", "elsewhere")
    assert re.search(rf"patch 1 does not .*: hunk @@ -8,7 \+8,7 @@ of {ARM}", refused(kernel, mini.patches))
    assert f"patch 3 does not apply to linux x: {mini.patches[2].name}: {MMU} is not there" in refused(
        kernel, mini.patches[2:]
    )


def test_a_hunk_is_that_of_its_file(tmp_path):
    """Hunks of several files may begin at the same line."""
    patch = tmp_path / "0001-x.patch"
    patch.write_text(
        "".join(f"--- a/{name}\n+++ b/{name}\n@@ -8,7 +8,7 @@ in_{name}\n" for name in "ab"), encoding="utf-8"
    )
    assert am._hunk(patch, "b", "8") == "hunk @@ -8,7 +8,7 @@ of b (in_b)"
    assert am._hunk(patch, "b", "9") == "b:9"


def test_a_file_in_the_way_is_named(mini, kernel):
    (kernel / "tools/testing").mkdir(parents=True)
    (kernel / "tools/testing/new.c").write_text("mine\n", encoding="utf-8")
    git(kernel, "add", "-A")
    git(kernel, "commit", "-q", "-m", "elsewhere")
    assert "tools/testing/new.c exists" in refused(kernel, mini.patches)


def test_another_version_is_named(mini, kernel):
    edit(kernel, ARM, "int arm9;", "int other;")
    git(kernel, "commit", "-q", "-a", "-m", "elsewhere")
    assert refused(kernel, mini.patches, version="6.1.2", wants="5.10.262").endswith(
        "(the tree is linux 6.1.2, the series is for 5.10.262)"
    )
    assert "the series is for" not in refused(kernel, mini.patches, version="5.10.262", wants="5.10.262")


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_tree_that_is_patched_already_is_told_so(mini, kernel, count):
    """Also with only some of the patches, and where later patches change the lines of the first."""
    git(kernel, "am", "-q", *map(str, mini.patches[:count]))
    message = refused(kernel, mini.patches)
    assert message.startswith("linux x is patched already (it has ")
    assert mini.patches[count - 1].name in message


def test_a_tree_that_has_a_later_patch_alone_is_told_so(mini, kernel):
    git(kernel, "am", "-q", str(mini.patches[2]))
    assert refused(kernel, mini.patches).startswith(f"linux x is patched already (it has {mini.patches[2].name})")


def test_a_file_that_is_no_patch_fails_in_one_line(kernel, tmp_path):
    (tmp_path / "0001-x.patch").write_text("nothing\n", encoding="utf-8")
    message = refused(kernel, [tmp_path / "0001-x.patch"])
    assert "\n" not in message
    assert message.startswith("git am failed on linux x") or "0001-x.patch" in message
