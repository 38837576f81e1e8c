"""Trees of a kernel of four files, from a fake mirror, a user's git tree and a tarball."""

import multiprocessing
import os
import shutil
import subprocess

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import ARM, below, edit, git, MMU, NO_NETWORK, replaced, snapshot, started
from kvmseries.conftest import subjects, SUBJECTS, write
from kvmseries.source import catalog, git as git_module, projects, trees

BASE = "trees/mini-5.10.262-1/base"


@pytest.mark.parametrize(
    "text, version",
    [
        ("VERSION = 5\nPATCHLEVEL = 10\nSUBLEVEL = 262\n", "5.10.262"),
        ("# c\nVERSION=7\nPATCHLEVEL=3\nSUBLEVEL=0\nEXTRAVERSION = -rc1\n", "7.3.0"),
        ("all:\n\tcc x.c\n", None),
        ("VERSION = 5\nPATCHLEVEL = 10\n", None),
        ("", None),
    ],
)
def test_the_version_of_a_makefile(text, version):
    assert projects.kernel_version(text) == version


def test_the_base_is_one_commit_with_a_tag(mini, mirror):
    tree = trees.base(mini)
    assert (tree.point, tree.count, tree.version) == ("base", 0, "5.10.262")
    assert tree.path == paths.out(BASE)
    assert git(tree.path, "rev-list", "--count", "HEAD").strip() == "1"
    assert git(tree.path, "rev-parse", "base^{commit}") == git(tree.path, "rev-parse", "HEAD")
    # The tarball's .gitignore does not keep its own files out.
    assert "firmware/blob.o" in git(tree.path, "ls-files").split()
    assert not git(tree.path, "status", "--porcelain", "--ignored")


def test_the_base_is_fetched_once_and_another_clone_takes_it_from_the_cache(
    mini, mirror, program, tmp_path, monkeypatch
):
    first = trees.base(mini)
    before = snapshot(first.path / ".git/objects")
    # Neither fetched nor unpacked again.
    program("apt-get", NO_NETWORK)
    program("dpkg-deb", "exit 1\n")
    paths.remove(paths.cache("deb"))
    assert trees.base(mini) == first
    monkeypatch.setenv("SERIES_OUT", str(tmp_path / "other"))
    second = trees.base(mini)
    assert second.path != first.path and second.version == first.version
    assert git(second.path, "rev-parse", "base", "HEAD") == git(first.path, "rev-parse", "base", "HEAD")
    assert below(second.path / "firmware") == ["blob.o"] and not git(second.path, "status", "--porcelain")
    assert not git(second.path, "remote") and trees.worktree(mini, 2).path.is_dir()
    assert mirror.read_text(encoding="utf-8").count("download") == 1
    # The other clone can go, and the cache, too.
    assert snapshot(first.path / ".git/objects") == before
    paths.remove(first.path)
    paths.remove(paths.cache_root())
    git(second.path, "fsck")


def test_build_directories_do_not_make_a_tree_dirty(mini, mirror):
    tree = trees.worktree(mini, 3)
    for path in (tree.path, trees.base(mini).path):
        write(path / "build-arm64-normal/vmlinux", "x")
        assert not git(path, "status", "--porcelain")
    assert trees.worktree(mini, 3) == tree
    assert trees.worktree(mini, 0).count == 0


def test_a_series_without_packages_wants_a_tree(patches, kernel):
    text = (patches / "base").read_text(encoding="utf-8")
    (patches / "base").write_text(text[: text.index("versions:")] + "versions: []\n", encoding="utf-8")
    with pytest.raises(Fail, match="names no package of the base: give your own kernel tree"):
        trees.base(catalog.load("mini"))
    assert trees.base(catalog.load("mini"), kernel).version == "5.10.262"


def test_leftovers_of_a_killed_run_are_cleared(mini, mirror):
    part = paths.out(BASE).with_name(".base.part")
    write(part / "Makefile", "half of it")
    write(paths.out("cache/deb/.linux-source-5.10_5.10.262-1.deb.d.part/x"), "half")
    trees.base(mini)
    assert not part.exists()
    assert not [name for name in below(paths.out("x").parent) if ".part" in name]


@pytest.mark.parametrize(
    "name, error", [("_keep", Fail("disk full")), ("_commit_base", KeyboardInterrupt()), ("fetch", Fail("gone"))]
)
def test_a_base_that_breaks_off_leaves_nothing(mini, mirror, monkeypatch, name, error):
    def broken(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(trees, name, broken)
        with pytest.raises(type(error)):
            trees.base(mini)
    assert not paths.out("trees").exists()
    assert trees.base(mini).version == "5.10.262"


def _in_child(series, results):
    results.put(str(trees.worktree(series, 3).path))


def test_two_runs_at_once_make_one_tree(mini, mirror, monkeypatch):
    monkeypatch.setenv("DOWNLOAD_SECONDS", "0.3")
    results = multiprocessing.get_context("fork").Queue()
    runs = started(_in_child, *[(mini, results)] * 2)
    found = [results.get(timeout=30) for _ in runs]
    for run in runs:
        run.join(30)
    assert [run.exitcode for run in runs] == [0, 0]
    assert found[0] == found[1] == str(paths.out("trees/mini-5.10.262-1/series"))
    assert mirror.read_text(encoding="utf-8").count("download") == 1
    assert subjects(found[0]) == list(SUBJECTS)


def test_a_users_tree_is_only_read_and_its_copy_stands_alone(mini, kernel):
    """Not even its index is refreshed, as git status does when times of files have changed."""
    git(kernel, "branch", "series")
    git(kernel, "tag", "base")
    os.utime(kernel / MMU, (1, 1))
    before = snapshot(kernel)
    tree = trees.worktree(mini, 3, kernel)
    assert snapshot(kernel) == before
    assert subjects(tree.path) == list(SUBJECTS)
    assert kernel not in tree.path.parents
    shutil.rmtree(kernel)
    git(tree.path, "fsck", "--full")


def test_a_users_tree_of_another_owner_is_read(mini, kernel):
    """root (sudo make run) on a user's tree: git calls that dubious."""
    if os.geteuid():
        pytest.skip("changing owners takes root")
    for path in (kernel, *kernel.rglob("*")):
        os.chown(path, 65534, 65534)
    assert trees.base(mini, kernel).version == "5.10.262"


def test_a_users_tree_that_moves_on_is_another_base(mini, kernel):
    first = trees.base(mini, kernel).path
    assert trees.base(mini, kernel).path == first
    edit(kernel, MMU, "int kvm0;", "int moved;")
    git(kernel, "commit", "-q", "-a", "-m", "more")
    second = trees.base(mini, kernel).path
    assert second != first
    assert "int moved;" in (second / MMU).read_text(encoding="utf-8")


def test_what_is_a_tree(mini, kernel, made, tmp_path, monkeypatch):
    """A worktree, a shallow clone, a relative path, a tarball."""
    git(kernel, "worktree", "add", "-q", str(tmp_path / "more"), "-b", "more")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{kernel}", "shallow")
    monkeypatch.chdir(kernel)
    for tree in (tmp_path / "more", tmp_path / "shallow", "."):
        assert trees.base(mini, tree).version == "5.10.262"
    before = made.tarball.read_bytes()
    assert subjects(trees.worktree(mini, 3, made.tarball).path) == list(SUBJECTS)
    assert made.tarball.read_bytes() == before


@pytest.mark.parametrize(
    "break_it, reason",
    [
        (lambda tree: edit(tree, ARM, "int arm1;", "int x;"), f"has uncommitted changes .M {ARM}"),
        (lambda tree: write(tree / "notes", "x"), r"has uncommitted changes .\?\? notes"),
        (lambda tree: shutil.rmtree(tree / ".git"), "is not a git tree: give the tarball"),
        (lambda tree: (tree / "Makefile").unlink(), "is not a linux kernel tree"),
        (lambda tree: write(tree / "Makefile", "all:\n"), "is not a linux kernel tree"),
        (lambda tree: (tree / MMU).unlink(), "is not a linux kernel tree"),
        (shutil.rmtree, "no such tree or tarball"),
    ],
)
def test_a_tree_that_cannot_be_used_is_refused(mini, kernel, break_it, reason):
    break_it(kernel)
    before = snapshot(kernel)
    with pytest.raises(Fail, match=f"^--tree {kernel}:? {reason}"):
        trees.base(mini, kernel)
    assert snapshot(kernel) == before
    assert not [name for name in below(paths.out("x").parent) if "/base" in name]


def test_a_tarball_that_cannot_be_used_is_refused(mini, kernel, tmp_path, monkeypatch):
    """That of another version before it is unpacked."""

    def packed(name):
        subprocess.run(["tar", "-C", str(tmp_path), "-cf", str(tmp_path / "x.tar"), name], check=True)
        return tmp_path / "x.tar"

    def refused(file, line):
        with pytest.raises(Fail, match=f"{file} {line}"):
            trees.base(mini, file)
        assert not paths.out("trees").exists()

    for name in "y.tar", "y.tar.xz":
        refused(
            write(tmp_path / name, "no archive"), "is not a tarball: .*(does not look like a tar|format not recognized)"
        )
    write(tmp_path / "other/readme", "x")
    refused(packed("other"), "is not a linux kernel tree")
    edit(kernel, "Makefile", "VERSION = 5", "VERSION = 4")
    ran, run = [], trees.proc.attempt
    monkeypatch.setattr(trees.proc, "attempt", lambda line, *rest, **more: ran.append(line) or run(line, *rest, **more))
    refused(packed(kernel.name), "is linux 4.10.262, and mini is for linux 5.10.262$")
    assert [command[-1] for command in ran if command[0] == "tar"] == ["*/Makefile"]


def test_worktrees_have_the_first_patches_and_are_reused(mini, kernel):
    for count, point in ((1, "upto-1"), (2, "upto-2"), (3, "series")):
        tree = trees.worktree(mini, count, kernel)
        assert (tree.point, tree.count, tree.path.name) == (point, count, point)
        assert subjects(tree.path) == list(SUBJECTS[:count])
        before = snapshot(tree.path)
        assert trees.worktree(mini, count, kernel) == tree and snapshot(tree.path) == before
    assert trees.worktree(mini, 0, kernel) == trees.base(mini, kernel)


def test_changed_patches_change_the_worktree_but_not_other_files(patches, mini, kernel):
    tree = trees.worktree(mini, 3, kernel)
    before = (tree.path / "Makefile").stat().st_mtime_ns
    for patch in mini.patches[:2]:
        replaced(patch, "int first;", "int FIRST;")
    assert trees.worktree(catalog.load("mini"), 3, kernel) == tree
    assert "int FIRST;" in (tree.path / ARM).read_text(encoding="utf-8")
    assert (tree.path / "Makefile").stat().st_mtime_ns == before


@pytest.mark.parametrize("count", [0, 3])
def test_work_in_a_tree_of_the_tool_is_refused_and_kept(mini, kernel, count):
    tree = trees.worktree(mini, count, kernel)
    edit(tree.path, ARM, "int arm40;", "int precious;")
    with pytest.raises(Fail, match=f"{tree.path} has uncommitted changes .M {ARM}.*export"):
        trees.worktree(mini, count, kernel)
    assert "int precious;" in (tree.path / ARM).read_text(encoding="utf-8")
    git(tree.path, "commit", "-q", "-a", "-m", "precious")
    with pytest.raises(Fail, match=f"{tree.path} has commits that are not in patches/mini"):
        trees.worktree(mini, count, kernel)
    assert subjects(tree.path)[-1] == "precious"


def test_an_interrupted_am_is_recovered(mini, kernel):
    tree = trees.worktree(mini, 3, kernel)
    stamp = tree.path.parent / "series.stamp"
    stamp.unlink()
    git(tree.path, "reset", "-q", "--hard", "base")
    edit(tree.path, ARM, "int arm11;", "int conflict;")
    git(tree.path, "commit", "-q", "-a", "-m", "conflict")
    with pytest.raises(subprocess.CalledProcessError):
        git(tree.path, "am", "-q", *map(str, mini.patches))
    left = git(tree.path, "rev-parse", "--git-path", "rebase-apply").strip()
    assert os.path.exists(os.path.join(tree.path, left))
    assert trees.worktree(mini, 3, kernel) == tree
    assert subjects(tree.path) == list(SUBJECTS)
    assert not git(tree.path, "status", "--porcelain")


@pytest.mark.parametrize("how", [KeyboardInterrupt, Fail("it does not apply")])
def test_an_interrupted_update_is_recovered(patches, mini, kernel, monkeypatch, how):
    """The patches have changed, and the first try to bring the tree up to date breaks off."""
    tree = trees.worktree(mini, 3, kernel)
    replaced(mini.patches[2], "The last one.", "The very last.")
    with monkeypatch.context() as patch:

        def broken(path, *_args, **_keys):
            git(path, "am", "-q", str(mini.patches[0]))
            raise how

        patch.setattr(trees.am, "apply", broken)
        with pytest.raises(type(how) if isinstance(how, Exception) else how):
            trees.worktree(mini, 3, kernel)
    assert trees.worktree(mini, 3, kernel) == tree
    assert "The very last." in git(tree.path, "log", "-1", "--format=%B")


@pytest.mark.parametrize("text", ["", "[]", None])
def test_a_tree_without_its_stamp_or_a_stamp_without_its_tree_is_made_again(mini, kernel, text):
    tree = trees.worktree(mini, 3, kernel)
    if text is None:
        shutil.rmtree(tree.path)
    else:
        (tree.path.parent / "series.stamp").write_text(text, encoding="utf-8")
    assert trees.worktree(mini, 3, kernel) == tree
    assert subjects(tree.path) == list(SUBJECTS)


def test_a_tree_that_an_older_version_has_stamped_is_kept(mini, kernel):
    tree = trees.worktree(mini, 3, kernel)
    (tree.path.parent / "series.stamp").write_text(f"patches {'0' * 40}\n", encoding="utf-8")
    with pytest.raises(Fail, match="series was made by another version of this tool: keep what you changed"):
        trees.worktree(mini, 3, kernel)
    assert subjects(tree.path) == list(SUBJECTS)


def test_walk_goes_through_the_steps_in_one_tree(mini, kernel, mirror):
    found = [(tree.path.name, tree.count, len(subjects(tree.path))) for tree in trees.walk(mini, [0, 1, 3])]
    assert found == [("walk", 0, 0), ("walk", 1, 1), ("walk", 3, 3)]


def test_a_patch_that_does_not_apply_is_told_with_the_tree_s_other_version(mini, kernel):
    edit(kernel, ARM, "int arm9;", "int other;")
    edit(kernel, "Makefile", "SUBLEVEL = 262", "SUBLEVEL = 9")
    git(kernel, "commit", "-q", "-a", "-m", "another version")
    with pytest.raises(Fail, match="^patch 1 does not .*[(]the tree is linux 5.10.9, the series is for 5.10.262[)]$"):
        trees.worktree(mini, 3, kernel)


def test_a_copy_has_the_tag_base_and_one_commit_a_patch_and_stands_alone(mini, kernel, tmp_path):
    path = trees.copy(mini, tmp_path / "new/copy", 3, kernel)
    assert path == tmp_path / "new/copy"
    assert subjects(path) == list(SUBJECTS)
    assert git(path, "rev-parse", "--abbrev-ref", "HEAD").strip() == "kvm-mini"
    assert not git(path, "status", "--porcelain")
    assert [entry.name for entry in (tmp_path / "new").iterdir()] == ["copy"]
    (tmp_path / "empty").mkdir()
    assert subjects(trees.copy(mini, tmp_path / "empty", 1, kernel)) == [SUBJECTS[0]]
    shutil.rmtree(paths.out("trees"))
    shutil.rmtree(kernel)
    git(path, "fsck", "--full")
    assert not git(path, "remote")
    assert not (path / ".git/objects/info/alternates").exists()
    git(path, "checkout", "-q", "base")


def test_a_copy_is_signed_off_only_when_asked_and_by_somebody(mini, kernel, tmp_path, monkeypatch):
    with pytest.raises(Fail, match="--signoff certifies the DCO in your name: set git's user.name and user.email"):
        trees.copy(mini, tmp_path / "a", 3, kernel, signoff=True)
    assert not (tmp_path / "a").exists()
    assert "Signed-off-by" not in git(trees.copy(mini, tmp_path / "b", 3, kernel), "log", "-1")
    write(tmp_path / "gitconfig", "[user]\n\tname = Ursula User\n\temail = ursula@example.org\n")
    signed = git(trees.copy(mini, tmp_path / "a", 3, kernel, signoff=True), "log", "-1")
    assert "Signed-off-by: Ursula User <ursula@example.org>" in signed


def test_a_copy_that_does_not_apply_leaves_nothing(mini, kernel, tmp_path):
    edit(kernel, MMU, "int kvm29;", "int other;")
    git(kernel, "commit", "-q", "-a", "-m", "elsewhere")
    with pytest.raises(Fail, match=f"patch 3 does not apply to {kernel}: {mini.patches[2].name}"):
        trees.copy(mini, tmp_path / "there/copy", 3, kernel)
    assert not (tmp_path / "there").exists()


def test_a_worktree_that_was_killed_while_it_was_made(mini, mirror):
    root = trees.base(mini)
    half = root.path.parent / "series"
    git(root.path, "worktree", "add", "-q", "-B", "series", str(half), "base")
    # What git leaves: the lock of a worktree that is being made, and that of its branch.
    write(root.path / ".git/worktrees/series/locked", "initializing\n")
    write(root.path / ".git/refs/heads/series.lock", "")
    paths.remove(half)
    assert subjects(trees.worktree(mini, 3).path) == list(SUBJECTS)


def test_a_repository_in_the_environment_is_not_ours(mini, mirror, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-q", "--allow-empty", "-m", "theirs")
    before = snapshot(other)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    git_module.forget_environment()
    trees.worktree(mini, 3)
    assert snapshot(other) == before


def test_what_is_committed_after_a_patch_failed_is_kept(mini, mirror, patches):
    trees.worktree(mini, 3)
    patch = mini.patches[1]
    patch.write_text(patch.read_text(encoding="utf-8").replace("\n-", "\n-x", 3), encoding="utf-8")
    with pytest.raises(Fail):
        trees.worktree(catalog.load("mini"), 3)
    own = paths.out(BASE).parent / "series"
    write(own / "virt/new.c", "mine\n")
    git(own, "add", "-f", "virt/new.c")
    git(own, "commit", "-q", "-m", "Mine")
    with pytest.raises(Fail, match="has commits that are not in patches/"):
        trees.worktree(catalog.load("mini"), 3)
    assert (own / "virt/new.c").exists()
