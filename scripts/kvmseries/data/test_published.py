"""Tests of the published figures: the files themselves, and what is refused."""

import dataclasses
import datetime
import re

import pytest
import yaml

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.data import published

SEED_1 = {
    "base": "926 1189 2503 5069 10340 20351 40994",
    "fast-path": "965 1006 1128 2005 3903 7595 15783",
    "fast-path-vgic": "803 843 942 1458 2853 5886 12190",
}
UPTON_2022 = {
    "base": "0.89 1.13 2.42 5.03 8.84 19.60 31.39",
    "series": "0.92 1.18 1.25 1.36 2.09 4.47 6.22",
    "base-populate": "0.19 0.25 0.38 0.64 1.22 2.50 3.88",
    "series-populate": "0.18 0.21 0.32 0.40 0.54 1.03 1.52",
}
FACTS = paths.ROOT.parent / "shared" / "facts" / "review-history.md"
# What is said of a key of times.
NO_VCPUS = "does not match '^[1-9][0-9]*$': it must be a number of vCPUs"


@pytest.fixture(name="columns")
def columns_fixture():
    return {column.id: column for column in published.load()}


@pytest.fixture(name="agings")
def agings_fixture():
    return {entry.id: entry for entry in published.load_aging()}


def test_the_tables_are_those_of_the_letters(columns):
    for name, text in SEED_1.items():
        assert list(columns.pop(f"zhang2022-{name}").seconds.items()) == [
            (vcpus, int(word) / 1000) for vcpus, word in zip((1, 2, 4, 8, 16, 32, 64), text.split())
        ]
    for name, text in UPTON_2022.items():
        assert list(columns.pop(f"upton2022-{name}").seconds.items()) == [
            (vcpus, float(word)) for vcpus, word in zip((1, 2, 4, 8, 16, 32, 48), text.split())
        ]
    assert not columns


@pytest.mark.parametrize("work, number", (("Zhang 2022", 1), ("Upton 2022", 5)))
def test_the_tables_stand_in_the_published_texts(columns, work, number):
    found = list((paths.ROOT.parent / "shared" / "seeds").glob(f"{number}-*.txt"))
    if not found:
        pytest.skip("the published texts are not here")
    text = found[0].read_text(encoding="utf-8")
    for column in columns.values():
        for vcpus, seconds in column.seconds.items() if column.work == work else ():
            word = f"{seconds * 1000:.0f}" if number == 1 else f"{seconds:.2f}s"
            assert re.search(rf"\|\s+{vcpus}\s+\|.*\s{word}\s", text), (column.id, vcpus)


def test_pages_are_the_memory_of_the_command(columns):
    for column in columns.values():
        size = int(published.options(column.command)["-b"].rstrip("G")) * 2**30
        assert column.pages == size // 4096


def test_growth_and_time_of_a_page(columns):
    base = columns["zhang2022-base"]
    assert base.growth[1] == 1
    assert base.growth[64] == pytest.approx(44.27, abs=0.01)
    assert base.page_ns(1) == pytest.approx(1766.2, abs=0.1)
    assert base.page_ns(48) is None


def test_one_column_alone_is_fitted(columns):
    assert [column.id for column in columns.values() if column.fitted] == ["zhang2022-base"]


@pytest.mark.parametrize(
    "args, ids",
    [
        ("-b 1M -i 2 -m 2 -s anonymous_hugetlb_2mb -g -G", ["zhang2022-base", "zhang2022-fast-path"]),
        ("-s anonymous_hugetlb_2mb -g", ["zhang2022-fast-path-vgic"]),
        ("-sanonymous_hugetlb_2mb -g", ["zhang2022-fast-path-vgic"]),
        ("-s anonymous_hugetlb_2mb -G", []),
        ("-s anonymous_thp -m 2 -b 4G", [f"upton2022-{name}" for name in UPTON_2022]),
        ("-s anonymous_thp -g", []),
        ("-s anonymous_thp -G", []),
        ("-s anonymous -g -G", []),
        ("", []),
        ("-s 'anonymous_thp", []),
    ],
)
def test_arguments_select_columns(columns, args, ids):
    assert [
        column.id for column in columns.values() if column.fits("v5.10", "arm64", "dirty_log_perf_test", args)
    ] == ids
    for other in (
        ("v7.3", "arm64", "dirty_log_perf_test"),
        ("v5.10", "x86_64", "dirty_log_perf_test"),
        ("v5.10", "arm64", "demand_paging_test"),
    ):
        assert not any(column.fits(*other, args) for column in columns.values())


def test_a_kernel_has_one_column_for_a_metric(columns):
    for args in ("-s anonymous_hugetlb_2mb -g -G", "-s anonymous_hugetlb_2mb -g", "-s anonymous_thp"):
        found = [
            (kernel, column.metric)
            for column in columns.values()
            for kernel in column.kernels
            if column.fits("v5.10", "arm64", "dirty_log_perf_test", args)
        ]
        assert found and len(found) == len(set(found))


@pytest.mark.parametrize(
    "args, found",
    [
        ("-b 2G -g -v4", {"-b": "2G", "-g": None, "-v": "4"}),
        ("-x -1", {"-x": "-1"}),
        ("--dev 4 word", {"--dev": "4"}),
        ("-", {}),
        ("", {}),
    ],
)
def test_options(args, found):
    assert published.options(args) == found


def test_the_tables_of_aging_are_the_published_ones(agings):
    rows = """8   1.474  1.589  1.498  0.227  0.064
              32  3.316  3.955  3.355  4.347  0.251
              64  6.499  7.128  6.443  9.816  1.393
              112 8.498 10.214  8.897 13.474  2.292"""
    tdp = agings.pop("houghton2024-tdp")
    keys = ("vcpu_none", "vcpu_locked", "vcpu_lockless", "locked", "lockless")
    wanted = [[float(word) for word in row.split()] for row in rows.splitlines()]
    assert [[vcpus, *(getattr(tdp, key)[vcpus] for key in keys)] for vcpus in tdp.locked] == wanted
    assert all(list(getattr(tdp, key)) == [8, 32, 64, 112] for key in keys)
    shadow, arm64 = agings.pop("houghton2024-shadow"), agings.pop("houghton2024-arm64")
    assert (shadow.locked, shadow.lockless) == ({64: 15.95}, {64: 0.527})
    assert (arm64.locked, arm64.lockless) == ({32: 1.661}, {32: 0.307})
    assert (arm64.vcpu_locked, arm64.vcpu_lockless) == ({32: 3.039}, {32: 3.011})
    assert not agings


def test_the_tables_of_aging_stand_in_the_facts(agings):
    if not FACTS.exists():
        pytest.skip("the facts are not here")
    text = FACTS.read_text(encoding="utf-8")
    tdp = agings["houghton2024-tdp"]
    for vcpus in tdp.locked:
        row = (
            f"| {vcpus} | {tdp.vcpu_none[vcpus]:.3f} / {tdp.vcpu_locked[vcpus]:.3f} / "
            f"{tdp.vcpu_lockless[vcpus]:.3f} | {tdp.locked[vcpus]:.3f} -> "
            f"{tdp.lockless[vcpus]:.3f} |"
        )
        assert row in text
    for words in ("64 vCPUs: pass 15.95 -> 0.527 s", "pass 1.661 -> 0.307 s, vCPU wall 3.039 -> 3.011 s"):
        assert words in text


def test_ratios_of_aging(agings):
    tdp = agings["houghton2024-tdp"]
    assert tdp.passes == pytest.approx({8: 0.2819, 32: 0.0577, 64: 0.1419, 112: 0.1701}, abs=1e-4)
    assert tdp.slowdown["locked"] == pytest.approx({8: 1.0780, 32: 1.1927, 64: 1.0968, 112: 1.2019}, abs=1e-4)
    assert tdp.slowdown["lockless"][64] < 1
    assert agings["houghton2024-arm64"].passes == pytest.approx({32: 0.1848}, abs=1e-4)
    # Without a time without aging there is nothing to divide by.
    assert agings["houghton2024-arm64"].slowdown == {"locked": {}, "lockless": {}}


KINDS = {
    "column": (published.load, published.FILE, "zhang2022-base"),
    "aging": (published.load_aging, published.AGING_FILE, "houghton2024-tdp"),
}


@pytest.fixture(params=KINDS)
def changed(request, tmp_path):
    """changed(change, kind): what load() says of a file with one entry of a kind, with a change; without one, of each kind."""

    def load(change, kind=request.param):
        read, file, name = KINDS[kind]
        path = tmp_path / "x.yaml"
        if not isinstance(change, str):
            entry = {**yaml.safe_load(file.read_text(encoding="utf-8"))[name], **change}
            change = yaml.safe_dump({"x": {key: value for key, value in entry.items() if value is not GONE}})
        path.write_text(change, encoding="utf-8")
        with pytest.raises(Fail) as failure:
            read(path)
        assert "\n" not in str(failure.value)
        return str(failure.value)

    load.kind = request.param
    return load


GONE = object()


@pytest.mark.parametrize(
    "kind, change, line",
    [
        ("column", {"work": None}, "work: None is not of type 'string'"),
        ("column", {"work": True}, "work: True is not of type 'string'"),
        ("column", {"fitted": 1}, "fitted: 1 is not of type 'boolean'"),
        ("column", {"iteration": True}, "iteration: True is not of type 'integer', 'null'"),
        ("column", {"kernels": ["base", 1]}, "kernels[1]: 1 is not of type 'string'"),
        ("column", {"args": {"-g": []}}, "args.-g: [] is not of type 'string', 'number', 'null'"),
        ("column", {"without": "-g"}, "without: '-g' is not of type 'array'"),
        ("column", {"seconds": {2: 1.0}}, "seconds: '1' is a required property: growth is by the time of 1 vCPU"),
        ("column", {"seconds": {1: 0}}, "seconds.1: 0 is less than or equal to the minimum of 0"),
        ("column", {"seconds": {1: 1e6}}, "seconds.1: 1000000.0 is greater than or equal to the maximum of 1000000"),
        ("column", {"seconds": {1: "fast"}}, "seconds.1: 'fast' is not of type 'number'"),
        ("column", {"seconds": {1: True}}, "seconds.1: True is not of type 'number'"),
        ("column", {"seconds": {1: 1.0, "one": 1.0}}, f"seconds: 'one' {NO_VCPUS}"),
        ("column", {"pages": 0}, "pages: 0 is less than the minimum of 1"),
        ("column", {"kernels": []}, "kernels: [] should be non-empty"),
        ("column", {"more": 1}, "x: Additional properties are not allowed ('more' was unexpected)"),
        ("aging", {"work": None}, "x.work: None is not of type 'string'"),
        ("aging", {"what": datetime.date(2024, 1, 2)}, "x.what: datetime.date(2024, 1, 2) is not of type 'string'"),
        ("aging", {"vcpu_none": []}, "x.vcpu_none: [] is not of type 'object'"),
        ("aging", {"locked": {8: 0}}, "x.locked.8: 0 is less than or equal to the minimum of 0"),
        ("aging", {"locked": {0: 1.0}}, f"x.locked: '0' {NO_VCPUS}"),
        ("aging", {"locked": {True: 1.0}}, f"x.locked: 'True' {NO_VCPUS}"),
        ("aging", {"locked": {1.0: 1.0}}, "the key 1.0 is a number with a point: write an integer, or text in quotes"),
        ("aging", {"locked": {None: 1.0}}, f"x.locked: 'None' {NO_VCPUS}"),
        ("aging", {"lockless": {8: float("nan")}}, "x.lockless.8: nan is not of type 'number'"),
        ("aging", {"vcpu_locked": {"all": 1.0}}, f"x.vcpu_locked: 'all' {NO_VCPUS}"),
        ("aging", {"locked": {8: 1.0}}, "x: 'locked' and 'lockless' are not of the same vCPUs"),
        ("aging", {"locked": {}, "lockless": {}}, "x.locked: {} should be non-empty"),
        ("aging", {"more": 1}, "x: Additional properties are not allowed ('more' was unexpected)"),
    ],
)
@pytest.mark.parametrize("changed", ["column"], indirect=True)
def test_a_bad_entry_is_refused(changed, kind, change, line):
    assert changed(change, kind).endswith(line)


def test_every_key_is_needed(changed):
    _, file, name = KINDS[changed.kind]
    for key in yaml.safe_load(file.read_text(encoding="utf-8"))[name]:
        assert changed({key: GONE}).endswith(f"x: '{key}' is a required property")


@pytest.mark.parametrize(
    "text, line",
    [
        ("", ": None is not of type 'object'$"),
        ("- 1", r": \[1\] is not of type 'object'$"),
        ("x: 1", ": x: 1 is not of type 'object'$"),
        ("x: [", "cannot read"),
        ("x: &x {what: *x}", "cannot read .*: maximum recursion depth"),
        ("x: {what: 2024-13-13}", "cannot read .*: month must be in"),
        ("\0", "cannot read"),
    ],
)
def test_a_file_that_is_none_is_refused(changed, tmp_path, text, line):
    with pytest.raises(Fail, match="cannot read"):
        KINDS[changed.kind][0](tmp_path / "none.yaml")
    assert re.search(line, changed(text))


@pytest.mark.parametrize("part, kind", [("column", published.Column), ("aging", published.Aging)])
def test_keys_are_those_of_the_code(part, kind):
    entry = yaml.safe_load(published.FORMAT.read_text(encoding="utf-8"))["$defs"][part]
    assert {*entry["properties"], "id"} == {*entry["required"], "id"} == {one.name for one in dataclasses.fields(kind)}
