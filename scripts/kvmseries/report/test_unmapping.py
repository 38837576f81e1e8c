"""Tests of the report on memslot_unmap_perf_test; all numbers are made up."""

import pytest

from kvmseries import report
from kvmseries.data import parse, summary as s
from kvmseries.data.test_parse import UNMAP
from kvmseries.figures import judge
from kvmseries.report import compare, layout, own, unmapping, verdict
from kvmseries.report.conftest import aging_results, full_results, make_file, make_run, merging_results, only
from kvmseries.report.page import page_html
from kvmseries.report.test_aging import texts
from kvmseries.report.test_page import Checker
from kvmseries.report.test_table import printed

ARGS = "-i 2 -S 256G -n 16 -b 4M"
# vCPUs -> us on base; the series takes half, but for what is WORSE.
TIMES = {
    "sparse_delete_time": {1: 207, 4: 210},
    "sparse_create_time": {1: 11.68, 4: 12},
    "discard_time.host": {4: 80},
    "discard_time.idle": {4: 900},
    "discard_time.writing": {4: 4000},
    "delete_time.idle": {4: 600},
    "log_on_time.writing": {4: 700},
    "write_p50.nothing": {4: 3},
    "write_p99.discard": {4: 3900},
    "write_max.delete": {4: 500},
}
WORSE = {"write_max.delete": 3}


def of_kernel(metric, kernel):
    return 1 if kernel == "base" else WORSE.get(metric, 0.5)


def unmapping_results(kernels=("base", "series"), out=(), **keys):
    """A results file: two iterations, the first other than the last; out: (kernel, vCPUs that had written to all)."""
    keys = {"clock": "virtual", "test": unmapping.TEST, "args": ARGS, **keys}
    runs = [
        make_run(
            **keys,
            kernel=kernel,
            vcpus=vcpus,
            metric=metric,
            iteration=iteration,
            samples=[us * of_kernel(metric, kernel) * 1e-6 * (1 if iteration == 2 else 7)] * 3,
        )
        for kernel in kernels
        for metric, times in TIMES.items()
        for vcpus, us in times.items()
        for iteration in (1, 2)
    ]
    runs += [
        make_run(**keys, kernel=kernel, vcpus=4, metric="vcpus_out.delete", iteration=2, unit="1", samples=[number] * 3)
        for kernel, number in out
    ]
    return make_file(*runs)


def without(data, *metrics):
    return make_file(*(run for run in data["runs"] if run["metric"] not in metrics))


def test_only_this_test_has_the_table():
    assert own.of(only([unmapping_results()])) is unmapping
    assert unmapping not in (own.of(only([other])) for other in (full_results(), aging_results(), merging_results()))


def test_every_time_of_the_parser_has_a_column():
    """And no column is for what the test never prints."""
    times = {measure.metric for measure in parse.parse(unmapping.TEST, UNMAP) if measure.unit == "s"}
    assert times == set(unmapping.METRICS) and len(unmapping.METRICS) == len(times)


def test_times_are_of_the_last_iteration_and_relative_to_base():
    rows = texts(unmapping.sheet(only([unmapping_results()])))
    assert [label for vcpus, label in rows if vcpus == 4] == ["base", "series", "series/base"]
    assert rows[1, "base"]["large memslot: delete (us)"] == "207"
    assert rows[1, "base"]["large memslot: create (us)"] == "11.7"
    assert rows[4, "series"]["mapped memslot: discard, vCPUs writing (us)"] == "2,000"
    assert rows[4, "series/base"]["mapped memslot: discard, vCPUs writing (us)"] == "0.50"
    assert rows[4, "base"]["first write meanwhile, p99: discard (us)"] == "3,900"
    assert rows[4, "series/base"]["first write meanwhile, max: delete (us)"] == "3.00"
    assert rows[1, "base"]["mapped memslot: discard, host only (us)"] == layout.MISSING
    # No column without a figure.
    assert len(rows[4, "base"]) == len(TIMES)


def test_the_first_iteration_does_not_stand_in_for_the_last():
    data = unmapping_results()
    data["runs"] = [
        run
        for run in data["runs"]
        if (run["metric"], run["iteration"], run["kernel"]) != (unmapping.DELETE, 2, "series")
    ]
    rows = texts(unmapping.sheet(only([data])))
    assert (
        rows[1, "series"]["large memslot: delete (us)"]
        == rows[1, "series/base"]["large memslot: delete (us)"]
        == layout.MISSING
    )


@pytest.mark.parametrize(
    "seconds, text", [(6.88e-6, "6.9"), (99.94e-6, "99.9"), (99.96e-6, "100"), (3.210448e-3, "3,210"), (0, "0.0")]
)
def test_micros(seconds, text):
    assert unmapping.micros(seconds) == text


def test_notes_are_of_what_was_measured():
    (note,) = unmapping.sheet(only([unmapping_results()])).notes
    assert note.startswith("Unmapping: medians; 3 samples; iteration 2. Large memslot")
    assert "host only" in note and "First write" in note
    sparse = without(unmapping_results(), *(metric for metric in TIMES if not metric.startswith("sparse")))
    (note,) = unmapping.sheet(only([sparse])).notes
    assert "Large memslot" in note and "Mapped" not in note and "First write" not in note


def test_vcpus_that_had_no_more_to_write_are_noted():
    _, note = unmapping.sheet(only([unmapping_results(out=(("base", 4), ("series", 0)))])).notes
    assert note == "These vCPUs had written to all of their pages before it was over: delete, 4 of 4 vCPUs on base."


def test_verdict():
    found = verdict.of(only([unmapping_results()]))
    assert found.head.startswith(
        "4 vCPUs: discard (mapped memslot, vCPUs writing) 4.00 ms \u2192 2.00 ms, 0.50 of base; "
        "worse: first write (max, during delete) 3.00 times base"
    )
    assert found.worse == ["first write (max, during delete) 3.00 times base (4 vCPUs: 500 us \u2192 1.50 ms)"]
    assert len(found.better) == len(TIMES) - 1
    for words in (
        "delete (large memslot) ",
        "first write (p50, nothing is unmapped)",
        "discard (mapped memslot, host only)",
    ):
        assert any(line.startswith(words) for line in found.better), words


def test_verdict_of_the_large_memslot_alone():
    data = without(unmapping_results(), *(metric for metric in TIMES if metric != unmapping.DELETE))
    assert verdict.of(only([data])).head == "4 vCPUs: delete (large memslot) 210 us \u2192 105 us, 0.50 of base"


def test_highlights_are_of_the_most_vcpus_that_have_them():
    assert unmapping.highlights(only([unmapping_results()])) == [
        "4 vCPUs, discard (mapped memslot, vCPUs writing): 4.00 ms on base, 2.00 ms on series",
        "4 vCPUs, delete (large memslot): 210 us on base, 105 us on series",
    ]


@pytest.mark.parametrize("metric", unmapping.METRICS)
def test_less_is_better(metric):
    """For compare, and for figures, which wants it said in the texts."""
    before, after = (
        make_file(make_run(clock="virtual", test=unmapping.TEST, metric=metric, samples=[number] * 3))
        for number in (1e-4, 1.2e-4)
    )
    assert compare.compare(before, after).changes[0].verdict == compare.WORSE
    assert compare.compare(after, before).changes[0].verdict == compare.BETTER
    assert judge.lower_is_better(before["runs"][0]) is True
    assert metric.partition(".")[0] in compare.LOWER_IS_BETTER


@pytest.mark.parametrize("metric", ["writes.discard", "vcpus_out.delete"])
def test_how_many_writes_are_neither(metric):
    before, after = (
        make_file(make_run(clock="virtual", test=unmapping.TEST, metric=metric, unit="1", samples=[number] * 3))
        for number in (100, 200)
    )
    assert compare.compare(before, after).changes[0].verdict == compare.CHANGED
    assert judge.lower_is_better(before["runs"][0]) is None


def test_any_figure_may_be_missing():
    full = unmapping_results()
    for metric in TIMES:
        for data in (without(full, metric), without(full, *set(TIMES) - {metric})):
            Checker(page_html([data], []))
            assert printed([data]) and report.ascii_table([data]) and report.markdown_table([data])
    nothing = without(unmapping_results(out=(("base", 1),)), *TIMES)
    assert not unmapping.sheet(only([nothing])) and unmapping.highlights(only([nothing])) == []
    assert "No time of unmapping was measured." in Checker(page_html([nothing], [])).text


@pytest.mark.parametrize("kernel", ("base", "series"))
def test_one_kernel_only(kernel):
    data = [unmapping_results((kernel,))]
    assert [label for _, label in texts(unmapping.sheet(only(data)))] == [kernel] * 2
    assert unmapping.highlights(only(data))[0].endswith(f" on {kernel}")
    Checker(page_html(data, []))


def test_the_wall_clock_of_an_emulator_has_a_table_but_no_verdict():
    data = [unmapping_results(clock="wall")]
    assert unmapping.measures(only(data)) == [] == unmapping.highlights(only(data))
    assert verdict.of(only(data)).lines() == []
    assert s.EMULATED in printed(data, 200) and "4,000" in printed(data, 200)


@pytest.mark.parametrize(
    "make",
    [
        lambda data: printed(data, 80),
        lambda data: printed(data, 250),
        report.ascii_table,
        report.markdown_table,
        lambda data: Checker(page_html(data, [])).text,
    ],
)
def test_every_output_has_the_table_and_nothing_of_the_dirty_log(make):
    text = make([unmapping_results()])
    for words in ("4,000", "2,000", "207", "11.7", "series/base"):
        assert words in text, words
    for words in ("No lock counts", "dirty memory", "main table"):
        assert words not in text, words
