"""Bad input, each one clear line and a non-zero exit, nothing half-written and no traceback: the
fixture `refused` holds every one of these to that."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from kvmseries import cli
from kvmseries.base import paths
from kvmseries.conftest import below, COMPILER, compilers, edit, git, RUN_JOB, snapshot, subjects, SUBJECTS, write
from kvmseries.kernel import kconfig
from kvmseries.source import trees
from kvmseries.vm import machine

pytestmark = pytest.mark.usefixtures("patches")


def made_trees():
    """Trees that are there, whole or half."""
    return list(paths.out("trees", "x").parent.glob("*/*"))


# One of each kind: what click says, values that are wrong, options that exclude each other or would be ignored.
MISTAKES = [
    ([], "Give a command (see scripts/series -h)"),
    (["nope"], "No such command 'nope' (see scripts/series -h)"),
    (["list", "--more"], "No such option: --more (see scripts/series list -h)"),
    (["apply"], "Missing argument 'SERIES' (see scripts/series apply -h)"),
    (["report"], "say which results files, or --texts"),
    (["bench", "mini", "--arch"], "Option '--arch' requires an argument"),
    (["export", "mini", "a", "b"], "Got unexpected extra argument (b)"),
    (["bench", "mini", "--accel", "x"], "Invalid value for '--accel': 'x' is not one of 'tcg', 'kvm'"),
    (["apply", "mini"], "apply needs DIR, a directory to make, or --fetch-only (see scripts/series apply -h)"),
    (["bench", "mini", "--arch", ""], "--arch '': give a value"),
    (["bench", "mini", "--json", "--no-counts"], "--json '--no-counts': give a value"),
    # Names
    (["apply", "v9.9", "DIR"], "unknown series 'v9.9': there is mini"),
    (["build", "mini", "--arch", "riscv"], "unknown arch 'riscv': mini is built for arm64, x86_64"),
    (["build", "mini", "--config", "nope"], "unknown config 'nope': there is"),
    (["build", "mini", "--config", "kcsan"], "config 'kcsan' is for x86_64, not for arm64"),
    (["bench", "mini", "--config", "lockstat"], "bench builds the normal and the lockstat kernel"),
    (["bench", "mini", "--test", "nope"], "unknown test 'nope': scripts/series bench knows"),
    (["bench", "mini", "--case", "nope"], "unknown case 'nope': dirty_log_perf_test has zhang2022,"),
    *(
        ([*words.split(), "x"], "unknown kernel 'x': it is base, series, ")
        for words in ("bench mini --kernels", "test mini --kernels", "boot mini --kernel", "build mini --kernels")
    ),
    (["boot", "mini", "--kernel", "base,series"], "--kernel base,series: give one kernel"),
    (["build", "mini", "--kernels", "base,base"], "--kernels base,base names a kernel twice"),
    (["bench", "mini", "--kernels", "base,upto:9"], "--upto 9 is beyond the end: mini has 3"),
    (["bench", "mini", "--kernels", "nope:base"], "unknown series 'nope': there is mini"),
    (["bench", "mini", "--kernels", "base,"], "unknown kernel ''"),
    (["bench", "mini", "--kernels", "mini:series"], "unknown kernel 'mini:series'"),
    (["bench", "mini", "--kernels", "upto:nope"], "mini has no milestone 'nope'"),
    (["apply", "mini", "DIR", "--milestone", "nope"], "mini has no milestone 'nope' (milestones: first, rwlock)"),
    (["apply", "mini", "DIR", "--upto", "nope"], "mini has no milestone 'nope' (milestones: first,"),
    # Numbers
    (["bench", "mini", "--vcpus", "two"], "--vcpus 'two' is not a list of numbers such as 1,2,4"),
    (["bench", "mini", "--vcpus", "100"], "--vcpus 100: a guest has 1 to 64 vCPUs"),
    (["bench", "mini", "--samples", "0"], "Invalid value for '--samples': 0 is not in the range x>=1"),
    (["test", "mini", "--soak", "nan"], "Invalid value for '--soak': nan is not a number"),
    (["test", "mini", "--soak", "0"], "0.0 is not in the range x>0"),
    # RULES
    (["apply", "mini", "DIR", "--fetch-only"], "--fetch-only excludes DIR: it makes no tree of the series"),
    (["apply", "mini", "DIR", "--upto", "1", "--milestone", "first"], "--upto excludes --milestone"),
    (["build", "mini", "--host-config", "x"], "--host-config needs --package"),
    (["boot", "mini", "--timeout", "9"], "--timeout needs COMMAND"),
    (["test", "mini", "--soak", "1", "--kernels", "base"], "--soak excludes --kernels"),
    (["test", "mini", "--soak", "1", "--repeat", "2"], "--soak excludes --repeat: HOURS says how long"),
    (["test", "mini", "--json", "x"], "--json needs --soak"),
    (["test", "mini", "--only", "races"], "--only needs --soak, or a series of QEMU"),
    (["prove", "mini", "--litmus", "--model"], "--litmus excludes --model"),
    (["prove", "mini", "--litmus", "--upto", "1"], "--litmus excludes --upto: litmus tests are of no patches"),
    (["prove", "mini", "--guests"], "--guests needs --mutants"),
    (["prove", "mini", "name"], "NAMES needs --litmus or --model or --mutants"),
    (["prove", "mini", "--model", "--seed", "1"], "--seed needs --engine random or --engine pct: loom runs every"),
    (["report", "x", "--table", "html"], "'html' is not one of 'text', 'none'"),
    (["bench", "mini", "--calibrate", "--samples", "2"], "--calibrate excludes --samples: it measures what was "),
    (["bench", "mini", "--no-counts", "--no-times"], "--no-counts excludes --no-times: nothing is left to measure"),
    (["bench", "mini", "--case", "thp", "--test-args=-i 3"], "--case excludes --test-args: a case brings its own"),
    (["bench", "mini", "--test-args", "-v 3"], "--test-args: the number of vCPUs comes from"),
    (["bench", "mini", "--test-args", "-v4"], "--test-args: the number of vCPUs comes from"),
    (["bench", "mini", "--test-args", "-i '2"], "No closing quotation"),
    (["bench", "mini", "--clock", "virtual", "--accel", "kvm"], "--clock virtual is for emulated"),
    (["bench", "mini", "--here", "--clock", "virtual"], "--here excludes --clock virtual: this machine's clock"),
    *(
        (["bench", "mini", "--here", "series", *words], f"--here excludes {words[0]}: it runs on the kernel that is")
        for words in map(str.split, ("--cpu max", "--kernels base", "--accel tcg", "--param a", "--config 64k"))
    ),
    *(
        (["bench", "mini", *where.split(), "--retry", "1"], " excludes --retry: that is for --clock virtual")
        for where in ("--clock wall", "--accel kvm", "--here")
    ),
    *(
        (["bench", "mini", "--no-times", *words.split()], f"--no-times excludes {words.split()[0]}")
        for words in ("--samples 2", "--sensitivity")
    ),
]


@pytest.mark.parametrize(
    "arguments, line", MISTAKES, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_a_mistake_in_the_arguments_is_told_before_any_work(
    refused, series, mirror, tmp_path, monkeypatch, arguments, line
):
    monkeypatch.chdir(tmp_path)
    assert line in refused(*arguments)
    assert series(*arguments).status == 2
    assert not (tmp_path / "DIR").exists()
    assert made_trees() == [] and not mirror.read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", [(), *((name,) for name in cli.NAMES)])
def test_every_verb_has_help(series, verb):
    result = series(*verb, "-h")
    assert (result.status, result.err) == (0, "") and "Usage: scripts/series" in result.out
    assert all(name in result.out for name in (verb or cli.NAMES))


def test_rules_are_of_options_that_there_are():
    for name, rules in cli.RULES.items():
        command = cli.Command(name)
        there = {cli._name(param) for param in command.params} | {"COMMAND"}
        words = " ".join(text for rule in rules for text in (rule.given, rule.no, rule.only, rule.needs)).split()
        assert {word.partition("=")[0] for word in words} <= there


def test_list_shows_every_series(series):
    result = series("list")
    assert result.status == 0
    for word in ("mini", "5.10.262", "rwlock=2", "not fetched"):
        assert word in result.out


def test_fetch_prints_the_path(series, mirror):
    assert series("apply", "mini", "--fetch-only").out == f"{paths.out('trees/mini-5.10.262-1/base')}\n"


@pytest.mark.parametrize("upto, count", [((), 3), (("--upto", "rwlock"), 2), (("--upto", "0"), 0)])
def test_apply_makes_a_tree_and_prints_its_path(series, kernel, tmp_path, monkeypatch, upto, count):
    monkeypatch.setenv("TREE", str(kernel))
    result = series("apply", "mini", tmp_path / "copy", *upto)
    assert (result.status, result.out) == (0, f"{tmp_path / 'copy'}\n")
    assert subjects(tmp_path / "copy") == list(SUBJECTS[:count])


def test_only_the_module_of_a_command_is_loaded():
    """What a command needs is imported when it runs: -h and short commands answer at once."""
    code = (
        "import sys; from kvmseries import cli; cli.parse(['apply', 'v5.10', '--fetch-only']); cli.main(['-h']); "
        "print(*(name for name in sys.modules if name.startswith(('kvmseries', 'matplotlib', 'rich'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=paths.ROOT / "scripts", check=True, text=True, capture_output=True
    )
    loaded = done.stdout.split()
    assert "kvmseries.commands.apply" in loaded
    assert not {"kvmseries.commands.bench", "kvmseries.report", "kvmseries.vm", "matplotlib"} & set(loaded)


def test_boot_runs_a_command_and_exits_with_its_status(series, built, qemu):
    qemu('prints() { echo "ran $*"; return 3; }\n' + RUN_JOB)
    result = series("boot", "mini", "--kernel", "base", "--", "uname", "--all")
    assert (result.status, result.out) == (3, "ran uname --all\n")


def test_an_interrupt_is_one_line(series, monkeypatch, tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(trees, "base", interrupt)
    result = series("apply", "mini", "--fetch-only")
    assert result.status == 130
    assert result.err == "series: interrupted; what was built is kept\n"


def test_an_error_of_the_system_is_one_line(refused, patches):
    (patches / "base").unlink()
    (patches / "base").mkdir()
    assert refused("apply", "mini", "--fetch-only") == f"{patches}/base: Is a directory"


def test_deps_without_dpkg(refused, series, only_tools):
    assert series("deps", "--checks").status == 0
    line = refused("deps")
    assert line.startswith("deps installs packages of Debian, and ") and line.endswith(
        "has no dpkg: a command names the program that it lacks; or run it in a container of Debian: make run CONTAINER=1"
    )


def test_deps_installs_what_make_check_needs_alone(refused, nothing_installed):
    line = refused("deps", "--checks")
    assert line.startswith("cannot install ") and " gcc " in line and "qemu" not in line


def test_a_place_in_which_nobody_can_write_is_told_before_the_work(
    refused, mirror, monkeypatch, read_only, tmp_path, kernel
):
    for words, line in (
        (["apply", "mini", "/proc/new"], "nothing can be made in /proc ("),
        (["bench", "mini", "--json", "/proc/new.json"], "nothing can be made in /proc ("),
        (["apply", "mini", read_only / "new"], f"no permission to write {read_only}: choose another destination"),
        (["bench", "mini", "--json", read_only / "x"], f"no permission to write {read_only}: choose another --json"),
        (["bench", "mini", "--json", tmp_path], f"--json {tmp_path} is a directory: name a file"),
        (["bench", "mini", "--json", tmp_path / "n/x"], f"--json {tmp_path}/n/x: there is no directory {tmp_path}/n"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(trees, "base", None)
            assert refused(*words).startswith(line)
    assert below(read_only) == [] and made_trees() == []
    monkeypatch.setenv("SERIES_OUT", str(read_only / "out"))
    assert refused("apply", "mini", "--fetch-only", "--tree", kernel).startswith("no permission to write ")


@pytest.mark.parametrize("where", ["destination", "out"])
def test_a_full_disk(refused, kernel, small_disk, monkeypatch, tmp_path, where):
    """2 MiB of the user's tree do not compress."""
    (kernel / "blob").write_bytes(os.urandom(2 << 20))
    git(kernel, "add", "-A")
    git(kernel, "commit", "-q", "-m", "big")
    if where == "out":
        monkeypatch.setenv("SERIES_OUT", str(small_disk))
    copy = (tmp_path if where == "out" else small_disk) / "copy"
    assert "disk full: " in refused("apply", "mini", copy, "--tree", kernel)
    assert not copy.exists() and not [name for name in below(small_disk) if "base" in name or "copy" in name]


def older(tree):
    """Its version is another one now."""
    edit(tree, "Makefile", "PATCHLEVEL = 10", "PATCHLEVEL = 15")
    git(tree, "commit", "-q", "-a", "-m", "another version")


def patched(tree):
    """It has the series now."""
    git(tree, "am", "-q", *map(str, sorted((paths.PATCHES / "mini").glob("000[1-3]-*"))))


@pytest.mark.parametrize(
    "change, line",
    [
        (shutil.rmtree, "--tree {}: no such tree or tarball"),
        (older, "--tree {} is linux 5.15.262, and mini is for linux 5.10.262"),
        (patched, r"0003-.* is already there in .*"),
    ],
)
@pytest.mark.parametrize("verb", ["apply", "build", "bench", "verify", "boot", "test"])
def test_a_tree_that_cannot_be_used_is_refused_as_it_is(
    refused, qemu, kernel, tmp_path, monkeypatch, verb, change, line
):
    """Before it is copied, or a QEMU is looked for; but what is patched shows in the copy alone."""
    monkeypatch.chdir(tmp_path)
    change(kernel)
    before = snapshot(kernel)
    if change == patched:
        qemu("")
    else:
        monkeypatch.setattr(trees, "base", None)
        monkeypatch.setattr(machine, "check", None)
    words = ["--clock", "wall"] if verb == "bench" else ["copy"] if verb == "apply" else []
    assert re.fullmatch(line.format(kernel), refused(verb, "mini", *words, "--tree", kernel))
    assert not (tmp_path / "copy").exists() and snapshot(kernel) == before


def test_a_missing_program(refused, only_tools, kernel, program):
    for name, package in (("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"), ("make", "make")):
        line = f"{name} is missing: install the package {package}, or run `make deps`"
        assert refused("build", "mini", "--tree", kernel) == line
        program(name, COMPILER)
    line = "qemu-system-aarch64 is missing: install the package qemu-system-arm, or run `make deps`"
    assert refused("test", "mini") == line


def test_kvm_of_another_arch(refused, monkeypatch):
    monkeypatch.setattr(machine.platform, "machine", lambda: "x86_64")
    assert refused("test", "mini", "--accel", "kvm").startswith("--accel kvm runs arm64 on a aarch64 host only")


def test_a_compiler_error_is_told_with_the_log(refused, only_tools, kernel, program):
    compilers(program)
    program("make", "echo '  CC x.o'; echo 'x.c:3:1: error: expected expression'; exit 2\n")
    line = refused("build", "mini", "--tree", kernel)
    assert line.startswith("make allnoconfig failed: x.c:3:1: error: expected expression (see ")


BOOT = ["boot", "mini", "--timeout", "1", "--", "true"]


def test_a_command_that_runs_out_of_time(series, built, qemu):
    qemu("prints() { return 124; }\n" + RUN_JOB)
    result = series(*BOOT)
    assert result.status == 1
    assert result.err.startswith("series: error: the command ran out of time (1 s; see ")


def test_a_failing_comparison_ends_with_one_line(series, built, qemu, program, monkeypatch, tmp_path):
    write(tmp_path / "data/tests.yaml", "default_timeout: 9\n")
    monkeypatch.setattr(paths, "TESTS", tmp_path / "data")
    program("aarch64-linux-gnu-gcc", COMPILER)
    qemu("prints() { case $job$1 in *-series*alpha*) return 1 ;; esac; }\n" + RUN_JOB)
    monkeypatch.setattr(kconfig, "load", lambda *_: None)  # reads what is in TESTS, too
    result = series("test", "mini")
    assert result.status == 1
    assert result.err.splitlines()[-1].startswith(
        "series: error: 1 complaint, the first: alpha_test: fail on series, but pass on base"
    )
    saved = json.loads(paths.out("results/mini-arm64-tests-max-normal.json").read_text(encoding="utf-8"))
    assert saved["about"]["cpu"] == "max" and saved["host"]["cpus"]
    assert {test["name"]: test["results"] for test in saved["tests"]} == {
        "aarch64/beta_test": {"base": "pass", "series": "pass"},
        "alpha_test": {"base": "pass", "series": "fail"},
    }
