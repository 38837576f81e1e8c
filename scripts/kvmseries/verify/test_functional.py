import re
import subprocess

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import RUN_JOB, write
from kvmseries.source.catalog import Point
from kvmseries.verify import functional

# The reason of one run, as TESTS has it.
FAILS = 'fails: "TCG has\\n  no such thing"'
TESTS = """\
default_timeout: 120
mini:
  arm64:
    alpha_test:
      timeout: 30
      runs:
        - {}
        - {args: -m 2, timeout: 500, fails: "TCG has\\n  no such thing"}
"""


@pytest.fixture
def tests(tmp_path, monkeypatch):
    """tests.yaml is TESTS."""
    write(tmp_path / "data/tests.yaml", TESTS)
    monkeypatch.setattr(paths, "TESTS", tmp_path / "data")


def test_a_plan_has_listed_runs_and_every_other_program(mini, tests):
    assert functional.plan(mini, "arm64", ["aarch64/beta", "alpha_test", "lockphase"]) == (
        [
            ("aarch64/beta", 120, ["/tests/aarch64/beta"]),
            ("alpha_test", 30, ["/tests/alpha_test"]),
            ("alpha_test_-m_2", 500, ["/tests/alpha_test", "-m", "2"]),
        ],
        {"alpha_test_-m_2": "TCG has no such thing"},
        {},
    )
    assert functional.plan(mini, "x86_64", ["alpha_test"]) == ([("alpha_test", 120, ["/tests/alpha_test"])], {}, {})
    with pytest.raises(Fail, match="lists 'alpha_test' for mini on arm64, which is not built"):
        functional.plan(mini, "arm64", ["beta"])
    commands, _, _ = functional.plan(mini, "arm64", ["aarch64/beta", "alpha_test"], quick=True)
    assert [name for name, *_ in commands] == ["aarch64/beta", "alpha_test"]
    # What the series mends; a program with one run.
    mended = "{args: -m 2, timeout: 8, mended: a reason}"
    write(paths.TESTS / "tests.yaml", f"default_timeout: 9\nmini: {{arm64: {{alpha_test: {mended}, beta: {{}}}}}}")
    assert functional.plan(mini, "arm64", ["alpha_test", "beta"]) == (
        [("alpha_test_-m_2", 8, ["/tests/alpha_test", "-m", "2"]), ("beta", 9, ["/tests/beta"])],
        {},
        {"alpha_test_-m_2": "a reason"},
    )


@pytest.mark.parametrize("compiler, known", [("14", {"alpha_test_-m_2": "TCG has no such thing"}), ("12", {})])
def test_a_plan_knows_what_fails_with_a_compiler(mini, tests, monkeypatch, compiler, known):
    text = TESTS.replace(FAILS, 'fails_with: {gcc-14: "TCG has no such thing"}')
    write(paths.TESTS / "tests.yaml", text)
    assert "gcc-14" in (paths.TESTS / "tests.yaml").read_text(encoding="utf-8")
    monkeypatch.setattr(functional.toolchain, "major", lambda arch: compiler)
    commands, *reasons = functional.plan(mini, "arm64", ["alpha_test"])
    assert len(commands) == 2 and reasons == [known, {}]


@pytest.mark.parametrize(
    "fails, status, status_of", [(0, 1, 0), (functional.TRIES - 1, 1, 0), (functional.TRIES, 1, 1), (99, 4, 4)]
)
def test_what_the_hosts_clock_bounds_is_run_until_it_passes(mini, tests, tmp_path, fails, status, status_of):
    write(paths.TESTS / "tests.yaml", TESTS.replace("fails:", "clock:"))
    commands, known, mended = functional.plan(mini, "arm64", ["alpha_test"])
    name, limit, words = commands[1]
    assert (name, limit, known, mended) == ("alpha_test_-m_2", 500, {}, {})
    assert words[-3:] == ["/tests/alpha_test", "-m", "2"]
    # A test that fails so often, and then passes: "alpha -m 2".
    program, count = tmp_path / "alpha", tmp_path / "count"
    write(
        program,
        f'#!/bin/sh\n[ "$*" = "-m 2" ] || exit 9\necho >> {count}\n'
        f"[ $(wc -l < {count}) -gt {fails} ] || exit {status}\n",
    )
    program.chmod(0o755)
    words = [str(program) if word == "/tests/alpha_test" else word for word in words]
    assert subprocess.run(words, check=False).returncode == status_of


KNOWN = "a reason"
NOT_SAID = "and tests.yaml does not say why"
PASSES = "but tests.yaml says that it fails: a reason"


@pytest.mark.parametrize(
    "base, series, known, complaint",
    [
        ("pass", "pass", "", ""),
        ("skip", "skip", "", ""),
        ("skip", "pass", "", ""),
        ("fail", "fail", KNOWN, ""),
        ("timeout", "fail", KNOWN, ""),
        ("fail", "skip", KNOWN, ""),
        ("pass", "pass", KNOWN, f"pass on base, {PASSES}"),
        ("fail", "pass", KNOWN, f"pass on series, {PASSES}"),
        ("pass", "fail", "", "fail on series, but pass on base"),
        ("pass", "fail", KNOWN, "fail on series, but pass on base"),
        ("pass", "timeout", KNOWN, "timeout on series, but pass on base"),
        ("skip", "fail", KNOWN, "fail on series, but skip on base"),
        ("pass", "skip", "", "skip on series, but pass on base"),
        ("pass", "skip", KNOWN, "skip on series, but pass on base"),
        ("fail", "fail", "", f"fail on base, {NOT_SAID}"),
        ("fail", "pass", "", f"fail on base, {NOT_SAID}"),
        ("timeout", "pass", "", f"timeout on base, {NOT_SAID}"),
        # Without base a failure must be known.
        (None, "pass", "", ""),
        (None, "fail", KNOWN, ""),
        (None, "fail", "", f"fail on series, {NOT_SAID}"),
        (None, "timeout", "", f"timeout on series, {NOT_SAID}"),
        (None, "pass", KNOWN, f"pass on series, {PASSES}"),
    ],
)
def test_a_series_must_do_what_base_does(base, series, known, complaint):
    results = {label: result for label, result in (("base", base), ("series", series)) if result}
    assert functional.judge("x", results, known) == functional.Verdict("x", results, known, complaint)
    # A failure of the emulator may pass on hardware.
    if PASSES in complaint:
        assert not functional.judge("x", results, known, expires=False).complaint
    elif complaint:
        assert functional.judge("x", results, known, expires=False).complaint


@pytest.mark.parametrize(
    "base, series, bad",
    [
        ("pass", "pass", False),
        ("fail", "pass", False),
        ("timeout", "pass", False),
        ("fail", "fail", True),
        ("pass", "fail", True),
        ("fail", "timeout", True),
    ],
)
def test_what_is_mended_may_fail_on_base_and_not_on_the_series(base, series, bad):
    verdict = functional.judge("x", {"base": base, "series": series}, "", "by a patch")
    assert bool(verdict.complaint) == bad and verdict.known == "by a patch"


def _verdicts(**results):
    return [functional.Verdict(name, {"series": result}, "", "") for name, result in results.items()]


@pytest.mark.parametrize(
    "before, now, reason, complaint",
    [
        ("pass", "pass", "", ""),
        ("skip", "skip", "", ""),
        ("skip", "pass", "", ""),
        ("fail", "fail", "", ""),
        ("pass", "skip", "no such mode", ""),
        ("pass", "fail", "no such mode", ""),
        ("pass", "skip", "", f"skip on series, but pass in the default configuration, {NOT_SAID}"),
        ("pass", "fail", "", f"fail on series, but pass in the default configuration, {NOT_SAID}"),
        ("pass", "timeout", "", f"timeout on series, but pass in the default configuration, {NOT_SAID}"),
        ("pass", "pass", "no such mode", "pass on series, but tests.yaml says that it does not here: no such mode"),
    ],
)
def test_another_configuration_does_what_the_default_one_does(before, now, reason, complaint):
    verdicts = _verdicts(a=now, b="pass")
    functional.hold(verdicts, _verdicts(a=before, b="pass"), {"a": reason} if reason else {})
    assert [verdict.line for verdict in verdicts if verdict.complaint] == ([f"a: {complaint}"] if complaint else [])


def test_what_is_worse_than_base_and_than_the_default_configuration_says_both():
    verdict = functional.Verdict("a", {"series": "fail"}, "", "fail on series, but pass on base", ("on series: x",))
    functional.hold([verdict], _verdicts(a="pass"), {})
    assert verdict.line == (
        "a: fail on series, but pass on base; fail on series, but pass in the default configuration, and "
        "tests.yaml does not say why; on series: x"
    )


def test_what_does_less_elsewhere_is_listed_with_its_place(mini, tests):
    write(paths.TESTS / "tests.yaml", TESTS.replace(FAILS, "unless: {old-cpu: no  SVE, x=1: none}"))
    assert functional.excused(mini, "arm64", ("old-cpu",)) == {"alpha_test_-m_2": "no SVE"}
    assert functional.excused(mini, "arm64", ("max", "x=1")) == {"alpha_test_-m_2": "none"}
    assert functional.excused(mini, "arm64", ("max", "x=0")) == functional.excused(mini, "x86_64", ("old-cpu",)) == {}
    commands, known, mended = functional.plan(mini, "arm64", ["alpha_test"])
    assert len(commands) == 2 and not known and not mended


@pytest.fixture
def run(mini, tests, built, program):
    program("aarch64-linux-gnu-gcc", "echo gcc\n")
    return lambda labels=("base", "series"), **more: functional.run(
        mini, "arm64", [Point(label, 3 * (label == "series"), mini) for label in labels], **more
    )


def test_what_fails_in_one_place_alone_is_known_there_and_must_fail_there(run, qemu):
    write(paths.TESTS / "tests.yaml", TESTS.replace(FAILS, "unless: {x=1: none}"))
    qemu("prints() { case $1$2 in *alpha_test-m) return 1 ;; esac; }\n" + RUN_JOB)
    assert run(labels=["series"], params=["x=1"])[1] == []
    assert [line.partition(";")[0] for line in run(labels=["series"])[1]] == [
        "alpha_test_-m_2: fail on series, and tests.yaml does not say why"
    ]
    qemu("prints() { :; }\n" + RUN_JOB)
    assert run(labels=["series"], params=["x=1"])[1] == [
        "alpha_test_-m_2: pass on series, but tests.yaml says that it fails: none"
    ]


def test_all_tests_run_on_all_kernels(run, qemu):
    qemu("prints() { case $1$2 in *alpha_test-m) return 1 ;; *beta*) return 4 ;; esac; }\n" + RUN_JOB)
    verdicts, complaints, host = run()
    assert {verdict.name: verdict.results for verdict in verdicts} == {
        "aarch64/beta_test": {"base": "skip", "series": "skip"},
        "alpha_test": {"base": "pass", "series": "pass"},
        "alpha_test_-m_2": {"base": "fail", "series": "fail"},
    }
    assert complaints == []
    assert host["kernels"]["base arm64 normal"] == "5.10.262-fake"


def test_a_series_alone_is_held_to_the_default_configuration(run, qemu):
    """Without booting base."""
    qemu("prints() { case $1$2 in *alpha_test-m) return 1 ;; *beta*) return 4 ;; esac; }\n" + RUN_JOB)
    reference = _verdicts(**{"aarch64/beta_test": "pass", "alpha_test": "pass", "alpha_test_-m_2": "fail"})
    assert run(["series"])[1] == []
    assert run(["series"], reference=reference)[1] == [
        "aarch64/beta_test: skip on series, but pass in the default configuration, and tests.yaml does not say why"
    ]


# What tests.yaml says that it fails does.
AS_KNOWN = "prints() { case $1$2 in *alpha_test-m) return 1 ;; esac; }\n"
SAID = "fail on series, but pass on base; on series: status 1: vCPU 1: unexpected exit, exit_reason=SHUTDOWN"
EMPTY = "no harvest of -H fell into the writing"


@pytest.mark.parametrize(
    "prints, complaints",
    [
        # With what it said as it failed.
        (
            "case $job$1 in *-series*alpha*) echo 'vCPU 1: unexpected exit, exit_reason=SHUTDOWN'; echo end; return 1",
            [f"alpha_test: {SAID}", f"alpha_test_-m_2: {SAID}"],
        ),
        # It harvested nothing while the guest wrote.
        (
            "case $1$2 in *alpha_test-m) return 1 ;; *alpha*) echo '# metric get_while_writing_times/1 0 count'",
            [f"alpha_test: fail on base, {NOT_SAID}; on base: {EMPTY}; on series: {EMPTY}"],
        ),
    ],
)
def test_a_test_that_fails_is_a_complaint(run, qemu, prints, complaints):
    qemu(f"prints() {{ {prints} ;; esac; }}\n{RUN_JOB}")
    assert run()[1] == complaints


WARNING = "WARNING: CPU: 0 PID: 71 at "


@pytest.mark.parametrize(
    "report, of_series, complaint",
    [
        ("BUG: KCSAN: data-race in both / sides", "WARNING: suspicious RCU usage", "WARNING: suspicious RCU usage"),
        # Numbers differ from boot to boot.
        ("WARNING: CPU: 1 PID: $$ at x.c:3 f+0x$$/0x30", "", ""),
        (f"{WARNING}kvm_f1+0x1c/0x30", f"{WARNING}kvm_f2+0x1c/0x30", f"{WARNING}kvm_f2+0x1c/0x30"),
    ],
)
def test_a_report_of_the_series_kernel_only_is_a_complaint(run, qemu, report, of_series, complaint):
    more = f"case $job in *-series*) echo '[ 2.0] {of_series}' ;; esac\n"
    qemu(f'{AS_KNOWN}{RUN_JOB}echo "[ 1.0] {report}"\n{more}')
    assert run()[1] == ([f"series: the kernel reported: {complaint}"] if complaint else [])


KMALLOC = "BUG kmalloc-64 (Not tainted): Poison overwritten"
ADDRESS = "BUG: unable to handle page fault for address: "


@pytest.mark.parametrize(
    "one, other, same",
    [
        (f"{WARNING}stage2_age_leaf+0x1c/0x30", "WARNING: CPU: 2 PID: 9 at stage2_age_leaf+0x20/0x34", True),
        (f"{WARNING}stage2_age_leaf+0x1c/0x30", f"{WARNING}spte_age+0x1c/0x30", False),
        (f"{WARNING}stage2_f+0x1c/0x30", f"{WARNING}stage1_f+0x1c/0x30", False),
        (f"{WARNING}mm/a.c:71 f+0x1/0x3", f"{WARNING}mm/a.c:7 f+0x1/0x3", True),
        (f"{WARNING}mm/a.c:71 f+0x1/0x3", f"{WARNING}mm/b.c:71 f+0x1/0x3", False),
        ("BUG: KASAN: use-after-free in f+0x1/0x3", "BUG: KASAN: use-after-free in g+0x1/0x3", False),
        ("BUG: KASAN: use-after-free in f+0x1/0x3", "BUG: KASAN: out-of-bounds in f+0x1/0x3", False),
        (KMALLOC, "BUG kmalloc-64 (Tainted: G B W): Poison overwritten", True),
        (KMALLOC, "BUG kmalloc-128 (Not tainted): Poison overwritten", False),
        ("list_del corruption, ffff0000c3f2a008->next", "list_del corruption, ffff0000deadbee0->next", True),
        (f"{ADDRESS}ffffc90000000000", f"{ADDRESS}0000000000000010", True),
        ("rcu: INFO: rcu_sched self-detected stall on CPU", "rcu: INFO: rcu_preempt self-detected stall on CPU", False),
        ("pagealloc: memory corruption", "pagealloc: single bit error", False),
    ],
)
def test_two_reports_are_one_if_they_differ_in_numbers_alone(one, other, same):
    assert (functional._shape(one) == functional._shape(other)) == same


RUN = "mini.arm64.alpha_test.runs[1]"


@pytest.mark.parametrize(
    "old, new, why",
    [
        ("fails:", "fail:", f"{RUN}: Additional properties are not allowed ('fail' was unexpected)"),
        ("timeout: 500", "timeout: soon", f"{RUN}.timeout: 'soon' is not of type 'number'"),
        ("timeout: 30", "args: x", "mini.arm64.alpha_test: Additional properties are not allowed ('args' was "),
        ("default_timeout", "timeout", "'default_timeout' is a required property"),
        # A comma inside of braces: the reason ends there, and its rest is a key.
        (FAILS, "unless: {x: none, here}", ".unless.here: None is not of type 'string'"),
        ("- {}", "- {", "cannot read "),
    ],
)
def test_a_file_of_another_form(mini, tests, old, new, why):
    text = TESTS.replace(old, new)
    assert text != TESTS
    write(paths.TESTS / "tests.yaml", text)
    with pytest.raises(Fail, match=re.escape(why)) as error:
        functional.plan(mini, "arm64", [])
    assert "tests.yaml" in str(error.value) and "\n" not in str(error.value)
