"""Tests of the HTML page and of the plots; all numbers are made up."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

from kvmseries import report
from kvmseries.base.errors import Fail
from kvmseries.data import summary as s
from kvmseries.data.results import load
from kvmseries.data.shape import Run
from kvmseries.report import page, plots, style
from kvmseries.conftest import committed
from kvmseries.report.conftest import aging_results, full_results, make_file, make_run, virtual_results
from kvmseries.report.page import page_html

VOID = {"meta", "br", "use"}


class Checker(HTMLParser):
    """Checks that tags nest, and collects ids and the text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style",):
            self.text += data.replace("\u00a0", " ").replace("\u2011", "-")


def test_page_is_written_atomically(results, tmp_path):
    path = report.write_page(results, tmp_path / "new" / "report", ["make run"])
    assert path == tmp_path / "new" / "report" / "index.html"
    assert [file.name for file in path.parent.iterdir()] == ["index.html"]
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_page_is_self_contained_and_well_formed(results):
    text = page_html(results, ["make run", "scripts/series bench v5.10 > 'a & b'"])
    checker = Checker(text)
    assert "http" not in text and "<script" not in text and "xlink" not in text
    assert not re.search(r"@import|<link|<img|src=|url\((?!#)", text)
    assert len(checker.ids) == len(set(checker.ids))
    for reference in re.findall(r'(?:url\(|href=")#([^)"]*)', text):
        assert reference in checker.ids
    assert "&gt; 'a &amp; b'" in text or "&gt; &#39;a &amp; b&#39;" in text


def test_page_tells_what_it_must(results):
    text = Checker(page_html(results, ["make run"])).text
    for words in (
        s.EMULATED,
        "make run",
        "5.10.262-fixture-series",
        "Fixture CPU",
        "8.0 GiB",
        "QEMU emulator version 10.0.2",
        "3 samples",
        "series/base",
        "populate",
        "mmu_lock_write_acquisitions.dirty",
    ):
        assert words in text, words
    assert f"All raw runs, {len(results[0]['runs'])} runs" in text


def test_times_of_other_clocks_are_not_called_emulated():
    for keys, name in (({"clock": "virtual"}, s.VIRTUAL), ({"accel": "kvm"}, s.WALL)):
        text = page_html([full_results(**keys)], [])
        assert name in text and s.EMULATED not in text


def test_virtual_time_has_growth_counters_and_parameters():
    data = virtual_results(("base", "upto:fast-path", "series"), {"line*2": 1.25})
    text = page_html([data], ["scripts/series bench v5.10"])
    checker = Checker(text)
    assert len(checker.ids) == len(set(checker.ids))
    for words in (
        s.VIRTUAL,
        "published: Zhang 2022, base",
        "published: Zhang 2022, fast path",
        "sensitivity band",
        "1 variants of the model: line*2",
        "-7.5%",
        "base against Zhang 2022, base (fitted on it): worst error -7.5% at 4 vCPUs.",
        "instructions per fault",
        "foreign atomics",
        "moving a cache line",
        "invented, for a fixture",
        "slice_ns",
        "scripts/series bench v5.10",
        "time a page, ns",
        "time / time with 1 vCPU",
    ):
        assert words in checker.text, words
    assert "with vgic" not in checker.text
    assert re.search(r"All raw runs, \d+ runs, without \d+ with variants", checker.text)


def test_emulated_wall_clock_has_no_growth(results):
    assert "published" not in page_html(results, [])


def test_variants_alone_are_no_result():
    data = make_file(make_run(clock="virtual", model="line*2"))
    assert "Nothing of these runs is in a table" in Checker(page_html([data], [])).text
    for text in (report.ascii_table([data]), report.markdown_table([data])):
        assert s.VIRTUAL in text


@pytest.mark.parametrize(
    "vtime",
    (
        "text",
        [],
        {},
        {"parameters": []},
        {"parameters": {"a": 1}},
        {"parameters": {"a": {"ns": None, "source": "<b>"}}},
    ),
)
def test_any_model(vtime):
    text = page_html([make_file(make_run(clock="virtual"), vtime=vtime)], [])
    Checker(text)
    assert "<b>" not in text


def test_png_of_virtual_time(tmp_path):
    report.plot_png([virtual_results(), full_results()], tmp_path / "a.png")
    report.plot_png([full_results()], tmp_path / "b.png")
    with Image.open(tmp_path / "a.png") as image:
        assert image.size == (1200, 500)
    assert (tmp_path / "a.png").read_bytes() != (tmp_path / "b.png").read_bytes()


def test_everything_is_escaped():
    evil = "<script>alert('x')</script>&\"$\\frac"
    keys = {key: evil for key in ("series", "kernel", "arch", "cpu", "test", "args", "config")}
    runs = [
        make_run(**keys, params=[evil]),
        make_run(**{**keys, "config": "lockstat"}, metric="mmu_lock_write_acquisitions", unit="1"),
        make_run(**keys, metric=evil, unit=evil),
    ]
    file = make_file(*runs, cpu=evil, tools={evil: evil}, kernels={evil: evil})
    file["host"][evil] = {evil: [evil]}
    text = page_html([file], [evil])
    assert "<script" not in text
    Checker(text)


@pytest.mark.parametrize(
    "host", ({}, {"kernels": "text"}, {"kernels": None, "tools": ["a"]}, {"memory": "much", "cpus": None})
)
def test_any_host(host):
    Checker(page_html([{**make_file(make_run()), "host": host}], []))


def test_no_runs(tmp_path):
    assert "no runs" in page_html([], [])
    assert "no runs" in page_html([make_file()], [])
    report.plot_png([], tmp_path / "x.png")


def test_every_metric_may_be_missing():
    whole = full_results(vcpus=(1, 2))
    metrics = sorted({run["metric"] for run in whole["runs"] if "." not in run["metric"]})
    for metric in metrics:
        Checker(page_html([make_file(*(run for run in whole["runs"] if not run["metric"].startswith(metric)))], []))
        Checker(page_html([make_file(*(run for run in whole["runs"] if run["metric"] == metric))], []))


def test_several_groups_and_hosts():
    text = page_html(
        [
            full_results(),
            full_results(clock="virtual", kernels=("upto:x", "base")),
            make_file(make_run(), cpu="Another CPU"),
        ],
        [],
    )
    checker = Checker(text)
    assert len(checker.ids) == len(set(checker.ids))
    assert "Host 2" in checker.text and "x/base" in checker.text
    assert "file 3 of 3" in checker.text


@pytest.mark.parametrize("vcpus", (0, -1))
def test_strange_vcpu_counts(vcpus):
    Checker(page_html([make_file(make_run(vcpus=vcpus))], []))


def test_failures_are_one_line(results, tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(Fail, match="cannot write .*index.html: .*/file is not a directory"):
        report.write_page(results, file, [])
    with pytest.raises(Fail, match="cannot write"):
        report.plot_png(results, file / "plot.png")
    assert file.read_text() == "x"


def test_png(results, tmp_path):
    path = tmp_path / "plot.png"
    report.plot_png(results, path)
    with Image.open(path) as image:
        assert image.size == (1200, 672)
    first = path.read_bytes()
    report.plot_png(results, path)
    assert path.read_bytes() == first


def test_page_is_reproducible(results):
    assert page_html(results, ["x"]) == page_html(results, ["x"])


def test_the_example_of_the_documentation_is_a_results_file(tmp_path):
    text = (Path(__file__).parents[3] / "Documentation" / "results.md").read_text(encoding="utf-8")
    example = tmp_path / "example.json"
    example.write_text(re.search(r"```json\n(.*?)```", text, re.S).group(1), encoding="utf-8")
    Checker(page_html([load(example)], []))
    for name in [*Run.__annotations__, *s.MAIN_TIMES, *s.PHASES]:
        assert f"`{name}`" in text, name


@pytest.mark.parametrize(
    "text, tight",
    [
        ("2 vCPUs: 19.7 us \u2192 575 ns a page", "2\u00a0vCPUs: 19.7\u00a0us \u2192 575\u00a0ns a page"),
        ("8 vCPUs, ring-1024: 8.8 MB, 6 sync passes", "8\u00a0vCPUs, ring\u20111024: 8.8\u00a0MB, 6 sync passes"),
    ],
)
def test_a_number_and_its_unit_stay_on_one_line(text, tight):
    assert page._tight(text) == tight


def test_svg_colours_are_variables():
    (summary,) = s.summarise([virtual_results()])
    text = plots.svg(lambda: plots.growth_figure(summary), "name", "label")
    assert "var(--kernel-base)" in text and "var(--kernel-1)" in text
    assert not re.search(r"#[0-9a-f]{6}", text)


def test_palette_can_be_told_apart():
    lights = [light for light, _ in style.PALETTE.values()]
    assert len(lights) == len(set(lights))


def test_aging_is_drawn_beside_what_was_published(tmp_path):
    data = [aging_results(), aging_results(alone=True)]
    text = Checker(page_html(data, [])).text
    assert "published, lockless: x86, TDP" in text and "vCPUs: faulting: aging/no aging" in text
    report.plot_png(data, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        assert image.size == (1200, 672)


def test_migrations_over_time():
    keys = {"series": "qemu-10.0", "config": "bitmap", "args": "rate=1"}
    runs = [
        make_run(**keys, test="migration", kernel=kernel, vcpus=2, metric="migration_time", samples=[9])
        for kernel in ("base", "series")
    ]
    rows = [[0, 4e6, 0, 0, 0], [0.1, 2e6, 20, 2e6, 1], [0.2, 0, 20, 4e6, 1]]
    traces = [{**keys, "kernel": kernel, "vcpus": 2, "rows": rows} for kernel in ("base", "series")]
    text = Checker(page_html([{**make_file(*runs), "traces": traces}], [])).text
    assert "Over time" in text and "left to send; | is a sync pass" in text and s.IN_TURN in text
    assert "With 2 vCPUs the guests did not begin alike, or it is not known" in " ".join(text.split())
    assert "Over time" not in Checker(page_html([make_file(*runs)], [])).text


@pytest.mark.slow
@pytest.mark.parametrize("path", committed("v*.json") + committed("qemu*.json"), ids=lambda path: path.name)
def test_every_committed_file_has_a_page(path):
    Checker(page_html([load(path)], []))


@pytest.mark.parametrize(
    "name",
    ["v5.10-x86_64-aging-tdp", "v5.10-arm64-merging", "v5.10-arm64-unmap-64m", "v7.3-arm64-holds", "v7.3-arm64-killed"],
)
def test_a_committed_file_of_each_test_has_a_page(name):
    (path,) = committed(f"{name}.json")
    text = Checker(page_html([load(path)], [])).text
    assert "series" in text and "Nothing of these runs is in a table" not in text
