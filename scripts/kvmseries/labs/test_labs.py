"""KTAP, JUnit, kcidb's JSON and LAVA's jobs: their shape.  Whether the projects' own parsers and schemas take them
is scripts/checks/test_0_labs.py's."""

import re
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import yaml

from kvmseries.base.errors import Usage
from kvmseries.conftest import write
from kvmseries.guest.machine import Machine
from kvmseries.labs import junit, kcidb, ktap, lava, outcomes
from kvmseries.verify.functional import Verdict

VERDICTS = [
    Verdict("alpha", {"base": "pass", "series": "pass"}, "", ""),
    Verdict(
        "beta_-p_3",
        {"base": "pass", "series": "fail"},
        "",
        "fail on series, but pass on base",
        ("on series: x.c:3: no",),
    ),
    Verdict("gamma", {"base": "fail", "series": "fail"}, "the emulator has # no PMU", ""),
    Verdict("delta", {"base": "skip", "series": "skip"}, "", ""),
    Verdict("epsilon", {"base": "pass", "series": "timeout"}, "", "timeout on series, but pass on base"),
]
COMPLAINTS = [*(verdict.line for verdict in VERDICTS if verdict.complaint), "series: the kernel reported: BUG: bad\x00"]


@pytest.fixture
def found():
    return outcomes.outcomes(VERDICTS, COMPLAINTS)


def test_every_verdict_and_the_kernels_reports_are_outcomes(found):
    assert [(one.name, one.status) for one in found] == [
        ("alpha", "pass"),
        ("beta_-p_3", "fail"),
        ("gamma", "xfail"),
        ("delta", "skip"),
        ("epsilon", "timeout"),
        ("kernel-reports", "fail"),
    ]
    assert outcomes.outcomes(VERDICTS[:1], [])[-1].status == "pass"


def test_ktap_has_a_line_for_each_outcome_and_says_why(found):
    lines = ktap.document(found, "v5.10 arm64").splitlines()
    assert lines[:3] == ["KTAP version 1", "# v5.10 arm64", "1..6"]
    assert [line for line in lines if re.match("(not )?ok", line)] == [
        "ok 1 alpha",
        "not ok 2 beta_-p_3",
        "ok 3 gamma # XFAIL the emulator has no PMU",
        "ok 4 delta # SKIP",
        "not ok 5 epsilon # TIMEOUT timeout on series, but pass on base",
        "not ok 6 kernel-reports",
    ]
    assert lines[-2:] == ["# series: the kernel reported: BUG: bad", "not ok 6 kernel-reports"]
    at = lines.index("not ok 2 beta_-p_3")
    assert lines[at - 3 : at] == [
        "# base: pass",
        "# series: fail",
        "# fail on series, but pass on base; on series: x.c:3: no",
    ]


def test_junit_counts_what_it_holds_and_is_xml_whatever_a_kernel_prints(found):
    root = ElementTree.fromstring(junit.document(found, "v5.10.arm64", {"cpu": "max\x1b"}))
    suite = root.find("testsuite")
    assert {key: suite.get(key) for key in ("tests", "failures", "skipped")} == {
        "tests": "6",
        "failures": "3",
        "skipped": "2",
    }
    assert len(suite.findall("testcase")) == 6 and len(suite.findall("testcase/failure")) == 3
    assert suite.find("properties/property").get("value") == "max?"
    assert (
        suite.findall("testcase")[1].find("failure").get("message")
        == "fail on series, but pass on base; on series: x.c:3: no"
    )


RUN = {
    "series": "mini",
    "kernel": "base",
    "arch": "arm64",
    "accel": "here",
    "clock": "wall",
    "model": "",
    "cpu": "host",
    "config": "normal",
    "params": [],
    "test": "dirty_log_perf_test",
    "args": "-i 2",
    "vcpus": 4,
    "iteration": 2,
    "metric": "dirty_memory_time",
    "unit": "s",
    "samples": [3.0, 1.0, 2.0],
}
DATA = {
    "host": {"tools": {"aarch64-linux-gnu-gcc": "gcc 12.2"}, "cpu": "N1", "os": "Debian"},
    "made": {"ids": {"kernels": {"base": "0" * 16}}},
    "runs": [RUN, {**RUN, "kernel": "series", "iteration": None, "unit": "1", "samples": [7]}],
}


@pytest.fixture
def tiny(tmp_path):
    """A series of two patches."""
    for name in ("0001-a.patch", "0002-b.patch"):
        write(tmp_path / name, name)
    return SimpleNamespace(name="mini", tag="v5.10.262", patches=tuple(sorted(tmp_path.glob("*.patch"))))


def test_kcidb_links_tests_to_builds_and_builds_to_checkouts(tiny):
    made = kcidb.document(DATA, tiny, {"base": 0, "series": 2}, "my_lab", "2026-01-02T03:04:05Z")
    assert made["checkouts"][0]["patchset_hash"] == ""
    assert len(made["checkouts"][1]["patchset_hash"]) == 64
    builds = {entry["id"]: entry["checkout_id"] for entry in made["builds"]}
    assert set(builds.values()) == {entry["id"] for entry in made["checkouts"]}
    assert {entry["build_id"] for entry in made["tests"]} == set(builds)
    first, second = made["tests"]
    assert first["number"] == {"value": 2.0, "unit": "s"} and second["number"] == {"value": 7}
    assert first["path"] == "kvm.dirty_log_perf_test.dirty_memory_time.iteration-2.vcpus-4"
    assert first["status"] == "DONE" and len({entry["id"] for entry in made["tests"]}) == 2


def test_kcidb_hashes_patches_as_its_schema_says(tiny):
    """sha256 of the newline-terminated sha256 of each: computed with sha256sum."""
    assert kcidb.patchset_hash(()) == ""
    assert kcidb.patchset_hash(tiny.patches) == "6146f26ac7d6b4f9688db084d0c591ed73c5267073cc2c3db93cb72a001c6ba0"
    assert kcidb.patchset_hash(tiny.patches[::-1]) != kcidb.patchset_hash(tiny.patches)


def test_an_origin_that_kcidb_does_not_take(tiny):
    with pytest.raises(Usage, match="--kcidb-origin 'My Lab': KCIDB takes small letters"):
        kcidb.document(DATA, tiny, {}, "My Lab", "2026-01-02T03:04:05Z")


def test_a_lava_job_runs_every_test_with_its_limit():
    job = yaml.safe_load(
        lava.document(
            "kvm",
            Machine("arm64", cpus=6),
            "console=ttyAMA0 a=b",
            ("file:///Image", "file:///i.cpio"),
            [("one/a_-v_2", 60, ["/tests/one/a", "-v", "2"]), ("two", 30.5, ["/tests/two"])],
        )
    )
    assert [list(action) for action in job["actions"]] == [["deploy"], ["boot"], ["test"]]
    steps = job["actions"][2]["test"]["definitions"][0]["repository"]["run"]["steps"]
    assert steps[-2:] == ["report one_a_-v_2 60 /tests/one/a -v 2", "report two 30 /tests/two"]
    images = job["actions"][0]["deploy"]["images"]
    assert images["kernel"]["image_arg"] == "-kernel {kernel} -append 'console=ttyAMA0 a=b'"
    assert job["context"]["extra_options"][:2] == ["-smp", "6"]
    # The job outlives all that it runs.
    assert job["timeouts"]["job"]["minutes"] * 60 >= 600 + 60 + 30.5


def test_a_lava_job_keeps_off_cpu_0_of_emulated_x86_64():
    urls, commands = ("file:///bzImage", "file:///i.cpio"), [("one", 60, ["/tests/one"])]
    job = yaml.safe_load(lava.document("kvm", Machine("x86_64", cpus=6), "a=b", urls, commands))
    steps = job["actions"][2]["test"]["definitions"][0]["repository"]["run"]["steps"]
    assert steps[0] == ". /job.sh" and steps[1].startswith("taskset -p 7e ")
    assert job["context"]["extra_options"][:2] == ["-smp", "7"]
