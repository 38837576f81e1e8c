"""Tests of the report of live migrations."""

import pytest
from rich.console import Console

from kvmseries import report
from kvmseries.data import summary as s
from kvmseries.report import migrating, own, verdict
from kvmseries.report.conftest import make_file, make_run
from kvmseries.report.test_page import Checker


def _runs(ratio):
    """Two QEMUs, two ways to track pages, two vCPU counts; the series has `ratio` of base's figures."""
    return [
        {
            "series": "qemu-10.0",
            "kernel": kernel,
            "arch": "arm64",
            "accel": "tcg",
            "clock": "wall",
            "model": "",
            "cpu": "max",
            "config": config,
            "params": [],
            "test": "migration",
            "args": "working-set=2",
            "vcpus": vcpus,
            "iteration": None,
            "metric": metric,
            "unit": "1",
            "samples": [10 * (ratio if kernel == "series" else 1), 20 * (ratio if kernel == "series" else 1)],
        }
        for kernel in ("base", "series")
        for config in ("bitmap", "ring-1024")
        for vcpus in (1, 4)
        for metric in ("syncs", "migration_time", "guest_work_lost", "kicks")
    ]


def _results(ratio):
    return {"schema": 2, "host": {"cpu": "x"}, "runs": _runs(ratio)}


def test_table(capsys):
    report.print_table([_results(0.2)], Console(width=200, force_terminal=False))
    text = capsys.readouterr().out
    assert text.count("sync passes") == 1 or "sync" in text
    for row in ("bitmap: base", "bitmap: series/base", "ring-1024: series"):
        assert row in text
    assert "0.20" in text and text.count("Migrations: medians; 2 samples.") == 1
    assert s.IN_TURN in text and s.EMULATED not in text


def test_page(tmp_path):
    text = report.write_page([_results(0.25)], tmp_path / "page", []).read_text(encoding="utf-8")
    assert "4 vCPUs, ring-1024: length of the migration 15.0 s \u2192 3.75 s, 0.25 of base" in Checker(text).text
    assert text.count("<h2 id=") == 1 and "Dirty pages by" in text
    assert "KVM selftest" not in text and "Two QEMUs migrate a guest" in text and "lock_stat" not in text
    assert "no samples over time" in text
    assert [path.name for path in (tmp_path / "page").iterdir()] == ["index.html"]


def test_base_alone(tmp_path):
    data = _results(1)
    data["runs"] = [run for run in data["runs"] if run["kernel"] == "base"]
    assert report.write_page([data], tmp_path, []).exists()


def test_migrations_among_others_have_a_page_of_their_own(tmp_path):
    kernels = make_file(make_run(clock="virtual"))
    path = report.write_page([kernels, _results(0.25)], tmp_path / "page", ["x"])
    assert sorted(one.name for one in path.parent.iterdir()) == ["index.html", "migrations.html"]
    index, other = path.read_text(encoding="utf-8"), path.with_name("migrations.html").read_text(encoding="utf-8")
    assert 'href="migrations.html"' in index and "KVM selftest" in index and "sync passes" not in index
    assert 'href="index.html"' in other and "sync passes" in other and "KVM selftest" not in other
    # A file that has both.
    report.write_page([{**kernels, "runs": kernels["runs"] + _runs(0.5)}], tmp_path / "two", [])
    assert len(list((tmp_path / "two").iterdir())) == 2


def test_a_migration_that_did_not_complete_shows_and_pages_lost_are_added():
    data = _results(1)
    keys = {
        key: data["runs"][0][key] for key in data["runs"][0] if key not in ("kernel", "metric", "samples", "config")
    }
    for kernel, ends, lost in (("base", [1, 0], [0, 3]), ("series", [1, 1], [0, 0])):
        for metric, samples in (("completed", ends), ("pages_lost", lost)):
            data["runs"].append(
                {**keys, "kernel": kernel, "config": "bitmap", "vcpus": 4, "metric": metric, "samples": samples}
            )
    (family,) = own.summarise([data])
    assert migrating.highlights(family) == [
        "base: 1 of 2 migrations completed, 3 pages lost",
        "series: 2 of 2 migrations completed, 0 pages lost",
    ]
    sheet = migrating.sheet(family)
    cells = {label: [cell.text for cell in row[:2]] for label, row in dict(sheet.blocks)[4]}
    assert cells["bitmap: base"] == ["1 of 2", "3"] and cells["bitmap: series/base"] == ["\u2014"] * 2


def test_a_ratio_by_zero_is_left_out():
    data = _results(1)
    data["runs"] = [{**run, "samples": [0]} for run in data["runs"] if run["metric"] == "kicks"]
    (family,) = own.summarise([data])
    assert {
        cell.text for label, row in dict(migrating.sheet(family).blocks)[4] if label.endswith("/base") for cell in row
    } == {"\u2014"}


def test_arguments_are_told_with_units():
    assert migrating.words("working-set=2 rate=2000 bandwidth=2.6 downtime=300 limit=150") == (
        "working set 2 MiB, guest dirties 2000 pages/s, bandwidth 2.6 MB/s, downtime limit 300 ms, given up after 150 s"
    )
    assert migrating.words("working-set=8 rate=0 odd=1") == "working set 8 MiB, guest dirties as fast as it can, odd 1"


def _speeds(data, speeds):
    """`data` with the speeds of the guests: {vCPUs: (base's, the series')} in pages/s."""
    first = [run for run in data["runs"] if run["metric"] == "syncs"]
    data["runs"] += [
        {**run, "metric": "guest_speed", "samples": [speeds[run["vcpus"]][run["kernel"] == "series"]] * 2}
        for run in first
        if run["vcpus"] in speeds
    ]
    return data


def _clock(data):
    (family,) = own.summarise([data])
    return migrating.clock_text(family)


def test_the_clock_says_whether_the_guests_began_alike():
    text = _clock(_speeds(_results(1), {1: (2000, 1900), 4: (2000, 620)}))
    alike, _, others = text.partition("With 4 vCPUs")
    assert "With 1 vCPU the guests of the series wrote at 0.95 times the speed" in alike
    assert "So a ratio of times compares the two." in alike and "does not compare" not in alike
    assert "wrote at 0.31 times the speed" in others and "does not compare the two" in others
    assert "same pace" not in text and "as fast as they can" not in text and "given up" not in text


def test_the_clock_of_guests_alike_with_all_vcpu_counts():
    text = _clock(_speeds(_results(1), {1: (2000, 1900), 4: (2000, 2100)}))
    assert "With 1 and 4 vCPUs the guests of the series wrote at 0.95 to 1.05 times" in text and "does not" not in text


def test_the_clock_of_guests_that_no_rate_limits_compares_nothing():
    data = _speeds(_results(1), {1: (2000, 2000), 4: (2000, 2300)})
    data["runs"] = [{**run, "args": "working-set=8 rate=0 limit=60"} for run in data["runs"]]
    text = _clock(data)
    assert "as fast as they can" in text and "With 1 and 4 vCPUs" in text and "1.00 to 1.15 times" in text
    assert "does not compare the two" in text and "So a ratio of times compares the two." not in text


@pytest.mark.parametrize(
    "speeds, where", [({1: (9, 9), 4: (9, 3)}, "1 vCPU"), ({1: (9, 3), 4: (9, 3)}, "4 vCPUs"), ({}, "4 vCPUs")]
)
def test_the_first_line_is_of_guests_that_began_alike_if_there_are_some(speeds, where):
    (family,) = own.summarise([_speeds(_results(1), speeds)])
    assert verdict.of(family).head.startswith(f"{where}, ")


def test_the_clock_where_speeds_are_not_known():
    text = _clock(_speeds(_results(1), {1: (2000, 2000)}))
    assert "With 4 vCPUs the speed of the guests before the migration is not known." in text
    assert "With 1 vCPU the guests of the series wrote at 1.00 times" in text


def test_the_clock_of_base_alone_speaks_of_no_ratio():
    data = _results(1)
    data["runs"] = [run for run in data["runs"] if run["kernel"] == "base"]
    assert "ratio" not in _clock(data) and "emulated" in _clock(data)


def test_the_clock_says_that_a_migration_was_given_up():
    data = _results(1)
    data["runs"].append({**data["runs"][0], "metric": "completed", "samples": [1, 0]})
    assert "did not complete" in _clock(data)


def test_the_page_says_it_for_each_setting(tmp_path):
    paced, fast = _speeds(_results(1), {1: (9, 9), 4: (9, 9)}), _speeds(_results(1), {1: (9, 9), 4: (9, 9)})
    fast["runs"] = [{**run, "args": "working-set=8 rate=0"} for run in fast["runs"]]
    text = Checker(report.write_page([paced, fast], tmp_path, []).read_text(encoding="utf-8")).text
    assert text.count("does not compare the two") == 1 and text.count("So a ratio of times compares the two") == 1


def _mechanisms(samples, config="ring-1024"):
    """The cells of the Sheet of mechanisms: {label: {heading: Cell}}; samples: {metric: those of base}."""
    keys = {**_runs(1)[0], "config": config, "vcpus": 4}
    runs = [
        {**keys, "kernel": kernel, "metric": metric, "samples": [number * times for number in found]}
        for kernel, times in (("base", 1), ("upto:ring", 2))
        for metric, found in samples.items()
    ]
    (family,) = own.summarise([{"schema": 2, "host": {"cpu": "x"}, "runs": runs}])
    sheet = migrating.mechanisms(family)
    names = [column.full for column in sheet.columns]
    assert all(column.timed for column in sheet.columns)
    return {label: dict(zip(names, cells)) for label, cells in dict(sheet.blocks)[4]}


def test_each_mechanism_has_what_it_moves_with_the_spread_of_its_samples():
    rows = _mechanisms(
        {
            "syncs": [10, 10, 20],
            "flushes": [20, 10, 20],
            "kicks": [40, 80, 400],
            "ring_full_exits": [3, 5, 4],
            "guest_work": [1000, 1000, 2000],
            "reaped_pages": [500, 1500, 4000],
            "throttle_steps": [7, 8, 9],
        }
    )
    assert set(rows) == {"ring-1024: base", "ring-1024: upto:ring"}
    found = {name: (cell.text, cell.spread) for name, cell in rows["ring-1024: base"].items()}
    assert found == {
        "throttle: throttle steps": ("8", "7\u20139"),
        "ring: collections a sync": ("1.00", "1.00\u20132.00"),
        "reaper: ring-full exits for 1,000 pages written": ("3.00", "2.00\u20135.00"),
        "reaper: ring entries a page written": ("1.50", "0.50\u20132.00"),
        # By 4 vCPUs and by the syncs of the same sample.
        "kick: kicks a sync and vCPU": ("2.00", "1.00\u20135.00"),
    }
    # Twice all of it: what is divided stays.
    twice = rows["ring-1024: upto:ring"]
    assert twice["throttle: throttle steps"].text == "16" and twice["ring: collections a sync"].text == "1.00"


def test_the_bitmap_has_no_counters_of_rings_and_a_count_has_an_error():
    rows = _mechanisms(
        {"syncs": [10], "flushes": [0], "kicks": [0], "dirty_counted": [110], "dirty_true": [100]}, "bitmap"
    )
    assert {name: cell.text for name, cell in rows["bitmap: base"].items()} == {
        "count: error of the dirty count, %": "+10"
    }


def test_nothing_is_divided_by_nothing():
    rows = _mechanisms({"syncs": [0, 10], "kicks": [9, 40], "guest_work": [0, 0], "ring_full_exits": [1, 1]})
    assert {name: cell.text for name, cell in rows["ring-1024: base"].items()} == {
        "kick: kicks a sync and vCPU": "1.00"
    }


def test_mechanisms_are_printed_and_in_the_page(tmp_path, capsys):
    data = _results(0.2)
    report.print_table([data], Console(width=200, force_terminal=False))
    printed = capsys.readouterr().out
    assert "Mechanisms: medians" in printed
    assert "kick: kicks a sync and vCPU" in report.markdown_table([data])
    path = report.write_page([data], tmp_path, [])
    assert "milestone kick" in path.read_text(encoding="utf-8")
