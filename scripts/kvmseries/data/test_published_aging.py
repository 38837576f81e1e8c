"""Tests of the published figures of aging: the file itself, and what is refused."""

import datetime
import re

import pytest
import yaml

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.data import published
from kvmseries.data.test_published import NO_VCPUS

FACTS = paths.ROOT.parent / "shared" / "facts" / "review-history.md"


@pytest.fixture(name="entries")
def entries_fixture():
    return {entry.id: entry for entry in published.load_aging()}


def test_the_tables_are_the_published_ones(entries):
    rows = """8   1.474  1.589  1.498  0.227  0.064
              32  3.316  3.955  3.355  4.347  0.251
              64  6.499  7.128  6.443  9.816  1.393
              112 8.498 10.214  8.897 13.474  2.292"""
    tdp = entries.pop("houghton2024-tdp")
    keys = ("vcpu_none", "vcpu_locked", "vcpu_lockless", "locked", "lockless")
    wanted = [[float(word) for word in row.split()] for row in rows.splitlines()]
    assert [[vcpus, *(getattr(tdp, key)[vcpus] for key in keys)] for vcpus in tdp.locked] == wanted
    assert all(list(getattr(tdp, key)) == [8, 32, 64, 112] for key in keys)
    shadow, arm64 = entries.pop("houghton2024-shadow"), entries.pop("houghton2024-arm64")
    assert (shadow.locked, shadow.lockless) == ({64: 15.95}, {64: 0.527})
    assert (arm64.locked, arm64.lockless) == ({32: 1.661}, {32: 0.307})
    assert (arm64.vcpu_locked, arm64.vcpu_lockless) == ({32: 3.039}, {32: 3.011})
    assert not entries


def test_the_tables_stand_in_the_facts(entries):
    if not FACTS.exists():
        pytest.skip("the facts are not here")
    text = FACTS.read_text(encoding="utf-8")
    tdp = entries["houghton2024-tdp"]
    for vcpus in tdp.locked:
        row = (
            f"| {vcpus} | {tdp.vcpu_none[vcpus]:.3f} / {tdp.vcpu_locked[vcpus]:.3f} / "
            f"{tdp.vcpu_lockless[vcpus]:.3f} | {tdp.locked[vcpus]:.3f} -> "
            f"{tdp.lockless[vcpus]:.3f} |"
        )
        assert row in text
    for words in ("64 vCPUs: pass 15.95 -> 0.527 s", "pass 1.661 -> 0.307 s, vCPU wall 3.039 -> 3.011 s"):
        assert words in text


def test_ratios(entries):
    tdp = entries["houghton2024-tdp"]
    assert tdp.passes == pytest.approx({8: 0.2819, 32: 0.0577, 64: 0.1419, 112: 0.1701}, abs=1e-4)
    assert tdp.slowdown["locked"] == pytest.approx({8: 1.0780, 32: 1.1927, 64: 1.0968, 112: 1.2019}, abs=1e-4)
    assert tdp.slowdown["lockless"][64] < 1
    assert entries["houghton2024-arm64"].passes == pytest.approx({32: 0.1848}, abs=1e-4)
    # Without a time without aging there is nothing to divide by.
    assert entries["houghton2024-arm64"].slowdown == {"locked": {}, "lockless": {}}


@pytest.mark.parametrize(
    "change, line",
    [
        ({"work": None}, "x.work: None is not of type 'string'"),
        ({"work": True}, "x.work: True is not of type 'string'"),
        ({"what": 1}, "x.what: 1 is not of type 'string'"),
        ({"what": datetime.date(2024, 1, 2)}, "x.what: datetime.date(2024, 1, 2) is not of type 'string'"),
        ({"vcpu_none": []}, "x.vcpu_none: [] is not of type 'object'"),
        ({"locked": {8: 0}}, "x.locked.8: 0 is less than or equal to the minimum of 0"),
        ({"locked": {0: 1.0}}, f"x.locked: '0' {NO_VCPUS}"),
        ({"locked": {True: 1.0}}, f"x.locked: 'True' {NO_VCPUS}"),
        ({"locked": {1.0: 1.0}}, "the key 1.0 is a number with a point: write an integer, or text in quotes"),
        ({"locked": {None: 1.0}}, f"x.locked: 'None' {NO_VCPUS}"),
        ({"lockless": {8: "fast"}}, "x.lockless.8: 'fast' is not of type 'number'"),
        ({"lockless": {8: float("nan")}}, "x.lockless.8: nan is not of type 'number'"),
        ({"vcpu_locked": {"all": 1.0}}, f"x.vcpu_locked: 'all' {NO_VCPUS}"),
        ({"locked": {8: 1.0}}, "x: 'locked' and 'lockless' are not of the same vCPUs"),
        ({"locked": {}, "lockless": {}}, "x.locked: {} should be non-empty"),
        ({"more": 1}, "x: Additional properties are not allowed ('more' was unexpected)"),
    ],
)
def test_a_bad_entry_is_refused(tmp_path, change, line):
    entry = yaml.safe_load(published.AGING_FILE.read_text(encoding="utf-8"))["houghton2024-tdp"]
    path = tmp_path / "published-aging.yaml"
    path.write_text(yaml.safe_dump({"x": {**entry, **change}}), encoding="utf-8")
    with pytest.raises(Fail, match=f": {re.escape(line)}$") as failure:
        published.load_aging(path)
    assert "\n" not in str(failure.value)


def test_every_key_is_needed(tmp_path):
    entry = yaml.safe_load(published.AGING_FILE.read_text(encoding="utf-8"))["houghton2024-tdp"]
    path = tmp_path / "published-aging.yaml"
    for key in entry:
        path.write_text(
            yaml.safe_dump({"x": {name: value for name, value in entry.items() if name != key}}), encoding="utf-8"
        )
        with pytest.raises(Fail, match=f"x: '{key}' is a required property$"):
            published.load_aging(path)


@pytest.mark.parametrize(
    "text, line",
    (
        ("", ": None is not of type 'object'$"),
        ("- 1", r": \[1\] is not of type 'object'$"),
        ("x: 1", ": x: 1 is not of type 'object'$"),
        ("x: [", "cannot read"),
        ("x: &x {what: *x}", "cannot read .*: maximum recursion depth"),
        ("x: {what: 2024-13-13}", "cannot read .*: month must be in"),
        ("\0", "cannot read"),
    ),
)
def test_a_file_that_is_none_is_refused(tmp_path, text, line):
    path = tmp_path / "published-aging.yaml"
    with pytest.raises(Fail, match="cannot read"):
        published.load_aging(path)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Fail, match=line):
        published.load_aging(path)
