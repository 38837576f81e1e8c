import subprocess

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import ARM, edit, git, MMU, write
from kvmseries.data import ids
from vtime import vtime


def patches(tree):
    """The commits after the tag base as texts of patches."""
    out = git(tree, "format-patch", "--stdout", "--full-index", "--no-renames", "base..HEAD")
    return ["From " + part for part in out.split("From ")[1:] if "diff --git" in part]


@pytest.fixture
def tree(tmp_path):
    """A git tree of a few files with the tag base."""
    top = tmp_path / "tree"
    for name in (
        ARM,
        MMU,
        "arch/x86/kvm/mmu/mmu.c",
        "arch/Kconfig",
        "Documentation/x.rst",
        "tools/perf/x.c",
        "tools/testing/selftests/kvm/lib/x.c",
        "tools/testing/selftests/kvm/dirty_log_perf_test.c",
        "tools/testing/selftests/kvm/other_test.c",
        "MAINTAINERS",
        "virt/.gitignore",
    ):
        write(top / name, "".join(f"{number}\n" for number in range(40)))
    subprocess.run(["git", "init", "-q", "-b", "main", str(top)], check=True)
    commit(top, "base")
    git(top, "tag", "base")
    return top


def commit(tree, message):
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", message)


def change(tree, name, line):
    edit(tree, name, str(line), f"changed {line}")
    commit(tree, f"change {name}")


def all_ids(tree):
    return {what: ids.source(tree, what) for what in ("arm64", "x86_64", "tests", "suite")}


@pytest.mark.parametrize(
    "name, changed",
    [
        (ARM, {"arm64"}),
        ("arch/x86/kvm/mmu/mmu.c", {"x86_64"}),
        (MMU, {"arm64", "x86_64"}),
        ("arch/Kconfig", {"arm64", "x86_64"}),
        ("Documentation/x.rst", set()),
        ("tools/perf/x.c", set()),
        ("MAINTAINERS", set()),
        ("virt/.gitignore", set()),
        ("tools/testing/selftests/kvm/lib/x.c", {"tests", "suite"}),
        ("tools/testing/selftests/kvm/dirty_log_perf_test.c", {"tests", "suite"}),
        ("tools/testing/selftests/kvm/other_test.c", {"suite"}),
    ],
)
def test_one_line_changes_the_ids_of_what_is_built_of_it_alone(tree, name, changed):
    before = all_ids(tree)
    change(tree, name, 7)
    after = all_ids(tree)
    assert {what for what in before if before[what] != after[what]} == changed


def test_the_ids_of_a_series_follow_from_its_patches(tree):
    base = all_ids(tree)
    change(tree, ARM, 3)
    change(tree, ARM, 30)
    write(tree / "virt/kvm/new.c", "new\n")
    (tree / "arch/Kconfig").unlink()
    (tree / MMU).chmod(0o755)
    commit(tree, "one more, one less, one that may be run")
    for what, number in all_ids(tree).items():
        assert ids.of_patches(base[what], patches(tree), what) == number
        assert ids.of_patches(base[what], [], what) == base[what]
    assert ids.of_patches(base["arm64"], patches(tree), "arm64") != base["arm64"]


def test_the_order_and_the_messages_of_patches_make_no_difference(tree):
    base = all_ids(tree)["arm64"]
    change(tree, ARM, 3)
    change(tree, MMU, 30)
    first = patches(tree)
    there = ids.source(tree, "arm64")
    git(tree, "reset", "-q", "--hard", "base")
    change(tree, MMU, 30)
    change(tree, ARM, 3)
    git(tree, "commit", "-q", "--amend", "-m", "other words, diff --git a/x b/x")
    assert ids.source(tree, "arm64") == there
    assert patches(tree) != first
    assert ids.of_patches(base, patches(tree), "arm64") == there == ids.of_patches(base, first, "arm64")


def test_a_patch_with_short_ids_is_refused(tree):
    change(tree, ARM, 3)
    text = git(tree, "format-patch", "--stdout", "base..HEAD")
    with pytest.raises(Fail, match="has no whole index line: export the series"):
        ids.of_patches("0" * 16, [text], "arm64")


def test_qemu_is_built_of_other_files():
    for name, yes in (
        ("accel/kvm/kvm-all.c", True),
        ("target/arm/kvm.c", True),
        ("target/i386/kvm.c", False),
        ("tests/qtest/migration-test.c", False),
        ("docs/x.rst", False),
        ("target/meson.build", True),
    ):
        assert ids.wanted(name, "arm64", "qemu") is yes, name


def test_today_of_the_project_s_own_series_needs_no_tree():
    """Labels of all kinds; what they are is checked with a tree, in tests/each/test_patches.py."""
    found = {label: ids.today(label, "v5.10", "arm64") for label in ("base", "series", "upto:1", "v7.3:base")}
    assert len(set(found.values())) == 4 and None not in found.values()
    assert ids.today("v7.3:base", "v5.10", "arm64") == ids.today("base", "v7.3", "arm64")
    assert ids.today("upto:1", "v5.10", "x86_64") == ids.today("base", "v5.10", "x86_64")
    assert ids.today("series", "qemu-10.0", "arm64") not in (None, ids.today("base", "qemu-10.0", "arm64"))


@pytest.mark.parametrize("label", ["upto:no-such-step", "v1.0:base", "upto:999", "odd"])
def test_what_cannot_be_known_is_not_guessed(label):
    assert ids.today(label, "v5.10", "arm64") is None and ids.today("series", "v1.0", "arm64") is None


def test_a_base_without_ids_is_of_an_unknown_state(mini):
    assert mini.versions[0].ids == {} and ids.today("series", "mini", "arm64") is None


def test_the_programs_and_the_instrument(tmp_path, monkeypatch):
    monkeypatch.setattr(vtime, "SOURCE", tmp_path / "vtime")
    monkeypatch.setattr(paths, "TESTS", tmp_path / "ours")
    monkeypatch.setattr(paths, "PATCHES", tmp_path / "patches")
    of_programs = ("ours/tests/x_test.c", "ours/lib/x.h")
    measuring = ("vtime/clock.c", "vtime/model.yaml", "patches/instruments/v7.3/x.patch")
    measuring += ("ours/guest/init", "ours/configs/normal")
    for where in (*of_programs, *measuring, "vtime/README.md", "patches/v7.3/0001-x.patch"):
        write(tmp_path / where, where)
    first = ids.programs(), ids.instrument()
    for where in ("vtime/README.md", "patches/v7.3/0001-x.patch"):
        write(tmp_path / where, "other words")
    assert (ids.programs(), ids.instrument()) == first
    for where in (*of_programs, *measuring):
        before = ids.programs(), ids.instrument()
        write(tmp_path / where, "changed")
        now = ids.programs(), ids.instrument()
        assert [one != two for one, two in zip(before, now)] == [where in of_programs, where in measuring], where
