"""Tests of the published figures: the file itself, and what is refused."""

import copy
import dataclasses
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
# What is said of a key of times.
NO_VCPUS = "does not match '^[1-9][0-9]*$': it must be a number of vCPUs"


@pytest.fixture(name="columns")
def columns_fixture():
    return {column.id: column for column in published.load()}


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


@pytest.mark.parametrize(
    "change, line",
    [
        ({"work": None}, "work: None is not of type 'string'"),
        ({"work": True}, "work: True is not of type 'string'"),
        ({"fitted": 1}, "fitted: 1 is not of type 'boolean'"),
        ({"iteration": True}, "iteration: True is not of type 'integer', 'null'"),
        ({"kernels": ["base", 1]}, "kernels[1]: 1 is not of type 'string'"),
        ({"args": {"-g": []}}, "args.-g: [] is not of type 'string', 'number', 'null'"),
        ({"without": "-g"}, "without: '-g' is not of type 'array'"),
        ({"seconds": {2: 1.0}}, "seconds: '1' is a required property: growth is by the time of 1 vCPU"),
        ({"seconds": {1: 0}}, "seconds.1: 0 is less than or equal to the minimum of 0"),
        ({"seconds": {1: 1e6}}, "seconds.1: 1000000.0 is greater than or equal to the maximum of 1000000"),
        ({"seconds": {1: "fast"}}, "seconds.1: 'fast' is not of type 'number'"),
        ({"seconds": {1: True}}, "seconds.1: True is not of type 'number'"),
        ({"seconds": {1: 1.0, "one": 1.0}}, f"seconds: 'one' {NO_VCPUS}"),
        ({"pages": 0}, "pages: 0 is less than the minimum of 1"),
        ({"kernels": []}, "kernels: [] should be non-empty"),
        ({"more": 1}, "x: Additional properties are not allowed ('more' was unexpected)"),
    ],
)
def test_a_bad_entry_is_refused(tmp_path, change, line):
    data = yaml.safe_load(published.FILE.read_text(encoding="utf-8"))
    entry = copy.deepcopy(data["zhang2022-base"])
    path = tmp_path / "published.yaml"
    path.write_text(yaml.safe_dump({"x": {**entry, **change}}), encoding="utf-8")
    with pytest.raises(Fail, match=f"{re.escape(line)}$"):
        published.load(path)
    for key in entry:
        path.write_text(
            yaml.safe_dump({"x": {name: value for name, value in entry.items() if name != key}}), encoding="utf-8"
        )
        with pytest.raises(Fail, match=f"x: '{key}' is a required property$"):
            published.load(path)


@pytest.mark.parametrize("text", ("", "- 1", "x: 1", "x: [", "\0"))
def test_a_file_that_is_none_is_refused(tmp_path, text):
    path = tmp_path / "published.yaml"
    with pytest.raises(Fail, match="cannot read"):
        published.load(path)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Fail):
        published.load(path)


@pytest.mark.parametrize("part, kind", [("column", published.Column), ("aging", published.Aging)])
def test_keys_are_those_of_the_code(part, kind):
    entry = yaml.safe_load(published.FORMAT.read_text(encoding="utf-8"))["$defs"][part]
    assert {*entry["properties"], "id"} == {*entry["required"], "id"} == {one.name for one in dataclasses.fields(kind)}
