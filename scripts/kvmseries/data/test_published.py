"""Tests of the published figures: the files themselves, and what is refused."""

import dataclasses
import datetime
import re

import pytest
import yaml

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.data import published

UPTON_2022 = [f"upton2022-{name}" for name in ("base", "series", "base-populate", "series-populate")]
FACTS = paths.ROOT.parent / "shared" / "facts" / "review-history.md"
# What is said of a key of times.
NO_VCPUS = "does not match '^[1-9][0-9]*$': it must be a number of vCPUs"


@pytest.fixture(name="columns")
def columns_fixture():
    return {column.id: column for column in published.load()}


@pytest.mark.parametrize("work, number", (("Zhang 2022", 1), ("Upton 2022", 5)))
def test_the_tables_stand_in_the_published_texts(columns, work, number):
    found = list((paths.ROOT.parent / "shared" / "seeds").glob(f"{number}-*.txt"))
    if not found:
        pytest.skip("the published texts are not here")
    text = found[0].read_text(encoding="utf-8")
    for column in columns.values():
        for vcpus, seconds in column.seconds.items() if column.what.startswith(work) else ():
            word = f"{seconds * 1000:.0f}" if number == 1 else f"{seconds:.2f}s"
            assert re.search(rf"\|\s+{vcpus}\s+\|.*\s{word}\s", text), (column.id, vcpus)


def test_pages_are_the_memory_of_the_command(columns):
    for column in columns.values():
        size = int(published.options(column.command)["-b"].rstrip("G")) * 2**30
        assert column.pages == size // 4096


def test_growth_and_time_of_a_page(columns):
    base = columns["zhang2022-base"]
    assert (base.growth[1], base.growth[64]) == (1, pytest.approx(44.27, abs=0.01))
    assert base.page_ns(1) == pytest.approx(1766.2, abs=0.1) and base.page_ns(48) is None


@pytest.mark.parametrize(
    "args, ids",
    [
        ("-b 1M -i 2 -m 2 -s anonymous_hugetlb_2mb -g -G", ["zhang2022-base", "zhang2022-fast-path"]),
        ("-s anonymous_hugetlb_2mb -g", ["zhang2022-fast-path-vgic"]),
        ("-sanonymous_hugetlb_2mb -g", ["zhang2022-fast-path-vgic"]),
        ("-s anonymous_hugetlb_2mb -G", []),
        ("-s anonymous_thp -m 2 -b 4G", UPTON_2022),
        ("-s anonymous_thp -g", []),
        ("-s anonymous_thp -G", []),
        ("-s anonymous -g -G", []),
        ("", []),
        ("-s 'anonymous_thp", []),
    ],
)
def test_arguments_select_columns(columns, args, ids):
    found = [column for column in columns.values() if column.fits("v5.10", "arm64", "dirty_log_perf_test", args)]
    assert [column.id for column in found] == ids
    # A kernel has one column for a metric.
    lines = [(kernel, column.metric) for column in found for kernel in column.kernels]
    assert len(lines) == len(set(lines))
    for other in (
        ("v7.3", "arm64", "dirty_log_perf_test"),
        ("v5.10", "x86_64", "dirty_log_perf_test"),
        ("v5.10", "arm64", "demand_paging_test"),
    ):
        assert not any(column.fits(*other, args) for column in columns.values())


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


def test_slowdowns_by_aging():
    (found,) = published.slowdowns().values()
    assert found["locked"] == pytest.approx({8: 1.0780, 32: 1.1927, 64: 1.0968, 112: 1.2019}, abs=1e-4)
    assert found["lockless"] == pytest.approx({8: 1.0163, 32: 1.0118, 64: 0.9914, 112: 1.0470}, abs=1e-4)


def test_the_table_of_aging_stands_in_the_facts():
    if not FACTS.exists():
        pytest.skip("the facts are not here")
    text = FACTS.read_text(encoding="utf-8")
    (entry,) = yaml.safe_load(published.AGING_FILE.read_text(encoding="utf-8")).values()
    for vcpus, row in entry["seconds"].items():
        assert f"| {vcpus} | {' / '.join(f'{seconds:.3f}' for seconds in row)} |" in text


KINDS = {"column": (published.load, published.FILE, "zhang2022-base")}
KINDS["aging"] = (published.slowdowns, published.AGING_FILE, "houghton2024-tdp")


@pytest.fixture
def changed(tmp_path):
    """changed(kind, change): what the reader of a kind says of a file with the text `change`, or with one entry changed."""

    def load(kind, change):
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

    return load


GONE = object()


@pytest.mark.parametrize(
    "kind, change, line",
    [
        ("column", {"what": None}, "what: None is not of type 'string'"),
        ("column", {"fitted": 1}, "fitted: 1 is not of type 'boolean'"),
        ("column", {"iteration": True}, "iteration: True is not of type 'integer', 'null'"),
        ("column", {"kernels": ["base", 1]}, "kernels[1]: 1 is not of type 'string'"),
        ("column", {"args": {"-g": []}}, "args.-g: [] is not of type 'string', 'number', 'null'"),
        ("column", {"without": "-g"}, "without: '-g' is not of type 'array'"),
        ("column", {"seconds": {2: 1.0}}, "seconds: '1' is a required property: growth is by the time of 1 vCPU"),
        ("column", {"seconds": {1: 0}}, "seconds.1: 0 is less than or equal to the minimum of 0"),
        ("column", {"seconds": {1: 1e6}}, "seconds.1: 1000000.0 is greater than or equal to the maximum of 1000000"),
        ("column", {"seconds": {1: float("nan")}}, "x.seconds.1: nan is not of type 'number'"),
        ("column", {"seconds": {1: 1.0, "one": 1.0}}, f"seconds: 'one' {NO_VCPUS}"),
        ("column", {"seconds": {1.0: 1.0}}, "the key 1.0 is a number with a point: write an integer, or text"),
        ("column", {"pages": 0}, "pages: 0 is less than the minimum of 1"),
        ("column", {"kernels": []}, "kernels: [] should be non-empty"),
        ("column", {"more": 1}, "x: Additional properties are not allowed ('more' was unexpected)"),
        ("column", {"seconds": GONE}, "x: 'seconds' is a required property"),
        ("aging", {"what": datetime.date(2024, 1, 2)}, "x.what: datetime.date(2024, 1, 2) is not of type 'string'"),
        ("aging", {"seconds": {0: [1.0, 1.0, 1.0]}}, f"x.seconds: '0' {NO_VCPUS}"),
        ("aging", {"seconds": {8: [1.0, 0, 1.0]}}, "x.seconds.8[1]: 0 is less than or equal to the minimum of 0"),
        ("aging", {"seconds": {8: [1.0, 1.0]}}, "x.seconds.8: [1.0, 1.0] is too short"),
        ("aging", {"more": 1}, "x: Additional properties are not allowed ('more' was unexpected)"),
        ("aging", {"seconds": GONE}, "x: 'seconds' is a required property"),
        ("column", "", ": None is not of type 'object'"),
        ("column", "x: 1", ": x: 1 is not of type 'object'"),
    ],
)
def test_a_bad_entry_is_refused(changed, kind, change, line):
    assert line in changed(kind, change)


@pytest.mark.parametrize(
    "text, line",
    [
        ("x: [", ""),
        ("x: &x {what: *x}", ".*: maximum recursion depth"),
        ("x: {what: 2024-13-13}", ".*: month must be in"),
        ("\0", ""),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(changed, tmp_path, text, line):
    with pytest.raises(Fail, match="cannot read"):
        published.load(tmp_path / "none.yaml")
    assert re.match(f"cannot read{line}", changed("column", text))


def test_keys_are_those_of_the_code():
    entry = yaml.safe_load(published.FORMAT.read_text(encoding="utf-8"))["$defs"]["column"]
    fields = {one.name for one in dataclasses.fields(published.Column)}
    assert {*entry["properties"], "id"} == {*entry["required"], "id"} == fields
