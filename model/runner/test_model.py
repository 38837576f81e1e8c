"""The model's own tools: cutting out definitions, mutants' patches, the checker's last line.  What compiles
code or runs the checker is in tests/v5.10/test_model.py."""

import re

import pytest

from kvmseries import cli
from kvmseries.base import distro, paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import write
from kvmseries.source import trees
from kvmseries.verify import mutants as table
from runner import build, coverage, mutants, prove, runs, source, tree as modeltree

SOURCE = """\
static int one(struct kvm *kvm);

#define SIZE	\\
	2

enum colour {
	RED,
};

static int one(struct kvm *kvm,
	       int size)
{
	return size;
}

static gfn_t
two(void)
{
}

static struct ops two;
static struct ops all = {
	.one = one,
};
"""
ONE = "static int one(struct kvm *kvm, int size)"


@pytest.mark.parametrize(
    "wanted, text",
    [
        (ONE, '#line 10 "a.c"\nstatic int one(struct kvm *kvm,\n\t       int size)\n{\n\treturn size;\n}\n'),
        ("static gfn_t two(void)", '#line 16 "a.c"\nstatic gfn_t\ntwo(void)\n{\n}\n'),
        ("#define SIZE", '#line 3 "a.c"\n#define SIZE\t\\\n\t2\n'),
        ("enum colour", '#line 6 "a.c"\nenum colour {\n\tRED,\n};\n'),
        ("static struct ops all =", '#line 22 "a.c"\nstatic struct ops all = {\n\t.one = one,\n};\n'),
    ],
)
def test_definitions_are_cut_out_with_their_lines(wanted, text):
    assert source.cut(SOURCE, wanted, "a.c") == text


@pytest.mark.parametrize(
    "wanted, message",
    [
        ("int gone(void)", "gone() is not there, which the model compiles"),
        ("#define GONE", "GONE is not there"),
        ("enum gone", "gone is not there"),
        ("static struct ops gone =", "gone is not there"),
        (
            "static int one(struct kvm *kvm)",
            "one() is declared otherwise than the model's shims expect: "
            "'static int one(struct kvm *kvm, int size)', not 'static int one(struct kvm *kvm)'",
        ),
    ],
)
def test_what_has_moved_is_said(wanted, message):
    with pytest.raises(Fail, match="^a.c: " + re.escape(message)):
        source.cut(SOURCE, wanted, "a.c")


WANTED = (f"? {ONE}", "? int gone(void)", "< int old(void)", "int two(void) || static gfn_t two(void)")
SECTION = source.Section("functions", "a.c", "", WANTED)


def test_a_milestone_may_lack_what_is_marked():
    assert source.present(SOURCE, SECTION) == [ONE, "static gfn_t two(void)"]
    with pytest.raises(Fail, match="one.. is declared otherwise"):
        source.cut(SOURCE, source.present(SOURCE, SECTION._replace(wanted=("? int one(void)",)))[0], "a.c")


def test_the_list_of_functions():
    for arch in source.ARCHES.values():
        sections = source.sections(arch.list.read_text(encoding="utf-8"))
        assert all(source.name_of(wanted) for section in sections for wanted in section.wanted)
    assert "virt/kvm/kvm_main.c" in source.files()
    with pytest.raises(Fail, match="a declaration before the first file"):
        source.sections("int one(void)\n")
    with pytest.raises(Fail, match="declares nothing"):
        source.name_of("int one")


def test_a_tree_that_is_none(tmp_path):
    with pytest.raises(Fail, match="has no .*: the model needs a tree made by scripts/series apply"):
        build.library(tmp_path, "arm64")


def _tree(tmp_path, text="a\nb\nc\n"):
    for name in source.files():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text, encoding="utf-8")
    return tmp_path / "tree"


def _patch(tmp_path, name="virt/kvm/kvm_main.c", line="b"):
    path = tmp_path / "x.patch"
    return write(path, f"the mistake\n\n--- a/{name}\n+++ b/{name}\n@@ -1,3 +1,3 @@\n a\n-{line}\n+B\n c\n")


def test_a_mutant_is_planted(tmp_path, monkeypatch):
    tree = _tree(tmp_path)
    folder = mutants.plant(tree, _patch(tmp_path), paths.out("mutants"))
    assert (folder / "virt/kvm/kvm_main.c").read_text(encoding="utf-8") == "a\nB\nc\n"
    with pytest.raises(Fail, match="x.patch does not apply to what the model compiles of"):
        mutants.plant(tree, _patch(tmp_path, line="z"), paths.out("mutants"))
    with pytest.raises(Fail, match="x.patch changes nothing that the model compiles"):
        mutants.plant(tree, _patch(tmp_path, name="mm/memory.c"), paths.out("mutants"))
    monkeypatch.setattr(source, "collect", lambda tree, to, of: write(to / "x", f"#line {len(str(tree))}\n"))
    with pytest.raises(Fail, match="x.patch changes no function that the model compiles"):
        mutants.planted(tree, _patch(tmp_path), paths.out("mutants"), "v5.10")


def test_each_mutant_says_its_mistake_and_changes_what_is_compiled():
    every = mutants.every(source.ARCHES)
    assert len(every) >= 296
    scenarios = runs.declared()
    for mutant in every:
        text = mutant.path.read_text(encoding="utf-8")
        assert re.match(r"\w.{9,}\n\n--- a/", text) and mutants.mistake(mutant) == text.splitlines()[0], mutant.name
        assert any(f"+++ b/{name}\n" in text for name in source.files()), mutant.name
        assert mutant.survives or mutants.arch(mutant) in scenarios[mutant.scenario], mutant.name


LAST = "holds\twrite-harvest\t133\t0.04\t27\t2\t1\t\t\tfaults_lockless; lost cmpxchg: f() a.c:1\n"


def _outcome(verdict, scenario="write-harvest", survives=""):
    mutant = table.Mutant("v5.10", "x", "barrier", scenario, by=survives)
    return mutants.Outcome(mutant, runs.parse(0, LAST.replace("holds", verdict), "", "x") if scenario else None)


def test_the_checkers_last_line():
    result = runs.parse(0, "  thread 0 ...\n" + LAST, "", "write-harvest")
    assert result.good and result.executions == 133 and result.trace == "  thread 0 ..."
    assert result.arms == ("faults_lockless", "lost cmpxchg: f() a.c:1")
    assert "133 executions" in result.line
    nothing = runs.parse(1, LAST.replace("holds", "nothing").replace("\t\t\t", "\tages\t\t"), "", "x")
    assert not nothing.good and nothing.line.endswith("HAS SHOWN NOTHING: never reached ages")


@pytest.mark.parametrize(
    "output, errors, message",
    [
        ("", "s2check: no scenario 'x'\n", "the checker ended with status 2: no scenario 'x'"),
        ("", "", "the checker ended with status 2, and said nothing"),
    ],
)
def test_a_checker_that_says_nothing(output, errors, message):
    with pytest.raises(Fail, match=message):
        runs.parse(2, output, errors, "x")


def test_outcomes():
    assert _outcome("found").good and _outcome("nothing").good
    assert not _outcome("holds").good and "NOT FOUND by write-harvest" in _outcome("holds").line
    assert _outcome("", scenario="", survives="harmless").good
    assert prove.summary([_outcome("found"), _outcome("holds")]) == "1 of 2 mutants found: barrier 1/2"


def test_the_table_says_where_and_how_long(monkeypatch, capsys):
    """A mutant that is not found is a row of it, and the status is 1."""
    verdicts = {"no-dirty-bit": "found", "log-on-no-flush": "holds"}

    def judge_all(chosen, _tree, _program, _told):
        return [
            mutants.Outcome(m, runs.parse(0, LAST.replace("holds", verdicts[m.name]), "", "x"), 1.5) for m in chosen
        ]

    monkeypatch.setattr(mutants, "judge_all", judge_all)
    monkeypatch.setattr(build, "checker", lambda: None)
    monkeypatch.setattr(modeltree, "find", lambda _: None)
    assert cli.main(["prove", "v5.10", "--mutants", "no-dirty-bit"]) == 0
    text = capsys.readouterr()
    assert "1.5" in text.out and "133" in text.out and "selftest: not run" in " ".join(text.out.split())
    assert "found in: model 1 in 2 s, selftest: not run 1; not found: 0" in text.err
    assert cli.main(["prove", "v5.10", "--mutants", "no-dirty-bit", "log-on-no-flush"]) == 1
    text = capsys.readouterr()
    assert "NOT" in text.out and "FOUND" in text.out and "1 of 3 mutants are not found" in text.err


GCOV = """{"files": [{"file": "/out/pgtable.c", "functions": [{"name": "f", "start_line": 3, "end_line": 6},
 {"name": "g", "start_line": 8, "end_line": 9}], "lines": [{"line_number": 3, "count": 1, "function_name": "f",
  "branches": [{"count": 1, "throw": false}, {"count": 0, "throw": false}, {"count": 0, "throw": true}]},
 {"line_number": 4, "count": 0, "function_name": "f"}, {"line_number": 8, "count": 0, "function_name": "g"}]},
 {"file": "/model/shim/vm.c", "functions": [{"name": "h", "start_line": 1, "end_line": 2}], "lines": []}]}"""


def test_lines_that_are_not_run():
    functions = coverage.parse(GCOV, "/out")
    assert [function.text for function in functions] == ["pgtable.c: f(): lines 4", "pgtable.c: g() is never run"]
    assert coverage.summary(functions) == (
        "1 of 3 lines run (33 %), 1 of 2 branches taken (50 %), of 2 functions; 1 are never run"
    )


def test_where_a_cmpxchg_is():
    text = '#line 7 "x/mmu.c"\nif (cmpxchg_relaxed(p,\n\t0, 1))\n/* by\n * a cmpxchg() */\n#line 3 "y.h"\ncmpxchg64(p, 0, 1);\n'
    assert coverage.exchanges("functions.inc", text) == {"mmu.c:7", "y.h:3"}
    text = "\n\tcmpxchg(p, 0, 1);\n\ttry_cmpxchg(p, &o, 1);\n"
    assert coverage.exchanges("pgtable.c", text) == {"pgtable.c:2", "pgtable.c:3"}


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("v7.3 --arch x86_64", "--arch x86_64: the model has of v7.3 only arm64-v7.3"),
        ("v5.10 --model --arch x86_64 --upto bounded", "x86: nothing to check before the milestone aging-x86: "),
        ("v5.10 --mutants --upto fixes", "arm64: nothing to check before patch 21: "),
        ("v5.10 --mutants nobody", "no mutant 'nobody'"),
        ("v5.10 --model --applied /nowhere", "--applied /nowhere: no such directory"),
        ("v5.10 --model --bound x", "--bound x: give a number from 0 to 99, or all"),
        ("v5.10 --model --bound 300", "--bound 300: give a number from 0 to 99, or all"),
        ("v5.10 --model --schedules 9", "--schedules needs --engine random or pct: loom runs every execution"),
        ("v5.10 --model --coverage short-one", "--coverage excludes NAMES: it is of all short scenarios"),
        ("v5.10 --model --plant /nowhere", "--plant /nowhere: no such file"),
        ("v5.10 --model write-harves", "no scenario 'write-harves': the model has write-harvest"),
        ("v5.10 --model SB", "no scenario 'SB': the model has "),
        ("v5.10 --model --arch arm64 x86-write-harvest", "no scenario 'x86-write-harvest': "),
        ("v7.3 --model split-age", "no scenario 'split-age': the model has "),
    ],
)
def test_bad_arguments_are_told_before_a_tree_is_made(capsys, monkeypatch, arguments, message):
    monkeypatch.setattr(trees, "worktree", None)
    monkeypatch.setattr(build, "checker", None)
    assert cli.main(["prove", *arguments.split()]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "makefile, message",
    [
        (None, "is not a linux kernel tree"),
        ("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 0\n", "is linux 6.1.0, and v5.10 is for linux 5.10"),
    ],
)
def test_an_applied_tree_of_something_else_is_told_before_the_checker_is_built(
    capsys, monkeypatch, tmp_path, makefile, message
):
    monkeypatch.setattr(build, "checker", None)
    (tmp_path / "virt/kvm").mkdir(parents=True)
    (tmp_path / "virt/kvm/kvm_main.c").touch()
    if makefile:
        (tmp_path / "Makefile").write_text(makefile, encoding="utf-8")
    assert cli.main(["prove", "v5.10", "--model", "--applied", str(tmp_path)]) == 1
    assert f"--applied {tmp_path} {message}" in capsys.readouterr().err


def test_without_cargo_or_gcc(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None if name in ("cargo", "dpkg-query") else "/bin/true")
    with pytest.raises(Fail, match="needs cargo and rustc 1.74 or newer"):
        build.need()
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(Fail, match="install the package gcc"):
        build.need()


@pytest.mark.parametrize(
    "release, packages",
    [('ID=debian\nVERSION_ID="12"\n', "cargo-web rustc-web"), ('ID=debian\nVERSION_ID="13"\n', "cargo rustc")],
)
def test_cargo_is_installed_as_the_release_has_it(tmp_path, monkeypatch, nothing_installed, release, packages):
    monkeypatch.setattr(distro, "FILES", (str(write(tmp_path / "os-release", release)),))
    with pytest.raises(Fail, match=f"^cannot install {packages}: "):
        build.need()
