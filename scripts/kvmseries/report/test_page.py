"""Tests of the HTML page and of the plots; all numbers are made up."""

import base64
import re
from html.parser import HTMLParser

import pytest
from PIL import Image

from kvmseries.base.errors import Fail
from kvmseries.conftest import committed
from kvmseries.data import summary as s
from kvmseries.data.results import load
from kvmseries.report import page, plots
from kvmseries.report.conftest import aging_results, full_results, make_file, make_run, virtual_results
from kvmseries.report.page import page_html

VOID = {"meta", "img"}


class Checker(HTMLParser):
    """Checks that tags nest and ids are unique, and collects the text, that of the plots, too."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert not self.open and len(self.ids) == len(set(self.ids))
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        if tag == "img":
            assert found["alt"]
            drawing = base64.b64decode(found["src"].removeprefix("data:image/svg+xml;base64,")).decode()
            self.text += found["alt"] + re.sub(r"<[^>]*>", " ", drawing)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text += data


def text_of(*results, commands=()):
    return Checker(page_html(results, commands)).text


def test_page_is_written_atomically_and_is_the_same_each_time(results, tmp_path):
    path = page.write_page(results, tmp_path / "new" / "report", ["make run"])
    assert path == tmp_path / "new" / "report" / "index.html"
    assert [file.name for file in path.parent.iterdir()] == ["index.html"]
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") and text == page_html(results, ["make run"])


def test_page_is_self_contained_and_says_what_it_must(results):
    html = page_html(results, ["make run", "scripts/series bench v5.10 > 'a & b'"])
    assert "http" not in html and "<script" not in html
    assert not re.search(r"@import|<link|src=\"(?!data:)|url\(", html)
    assert "&gt; &#39;a &amp; b&#39;" in html
    text = Checker(html).text
    for reference in re.findall(r'href="#([^"]*)', html):
        assert f'id="{reference}"' in html
    for words in (
        s.EMULATED,
        "make run",
        "5.10.262-fixture-series",
        "Fixture CPU",
        f"memory: {8 * 2**30}",
        "QEMU emulator version 10.0.2",
        "3 samples",
        "series/base",
        "populate",
        "mmu_lock_write_acquisitions.dirty",
        f"All raw runs, {len(results[0]['runs'])} runs",
    ):
        assert words in text, words
    assert "published" not in text  # growth of an emulator's wall clock


def test_virtual_time_has_growth_counters_and_parameters():
    text = text_of(virtual_results(("base", "upto:fast-path", "series"), {"line*2": 1.25}))
    for words in (
        s.VIRTUAL,
        "published: Zhang 2022, base",
        "published: Zhang 2022, fast path",
        "sensitivity band",
        "Variants of the model line*2",
        "-7.5%",
        "base against Zhang 2022, base (fitted on it): worst error -7.5% at 4 vCPUs.",
        "instructions per fault",
        "foreign atomics",
        "moving a cache line",
        "invented, for a fixture",
        "slice_ns",
        "time a page, ns",
        "time / time with 1 vCPU",
    ):
        assert words in text, words
    assert "with vgic" not in text and s.EMULATED not in text
    assert re.search(r"All raw runs, \d+ runs, without \d+ with variants", text)


def test_variants_alone_are_no_result():
    text = text_of(make_file(make_run(clock="virtual", model="line*2")))
    assert "Nothing of these runs is in a table" in text and s.VIRTUAL in text


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
    html = page_html([file], [evil])
    assert "<script" not in html
    Checker(html)


@pytest.mark.parametrize("keys", [{"clock": "virtual"}, {"vcpus": 0}, {"vcpus": -1}])
def test_a_host_of_which_nothing_is_known_and_any_vcpu_count(keys):
    assert "Unknown" in text_of() and "unknown (host 1 below)" in text_of({**make_file(make_run(**keys)), "host": {}})


def test_no_runs(tmp_path):
    assert "no runs" in text_of() and "no runs" in text_of(make_file())
    plots.plot_png([], tmp_path / "x.png")
    assert (tmp_path / "x.png").exists()


def test_several_groups_and_hosts():
    virtual = full_results(clock="virtual", kernels=("upto:x", "base"))
    text = text_of(full_results(), virtual, make_file(make_run(), cpu="Another CPU"))
    for words in ("Host 2", "x/base", "file 3 of 3", "Another CPU (host 2 below)"):
        assert words in text


def test_failures_are_one_line(results, tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(Fail, match="cannot write .*index.html: .*/file is not a directory"):
        page.write_page(results, file, [])
    with pytest.raises(Fail, match="cannot write"):
        plots.plot_png(results, file / "plot.png")
    assert file.read_text() == "x"


@pytest.mark.parametrize(
    "results, size",
    [
        ([full_results()], (1200, 672)),
        ([virtual_results(), full_results()], (1200, 500)),
        ([aging_results(), aging_results(alone=True)], (1200, 672)),
    ],
)
def test_pictures(results, size, tmp_path):
    for name in "ab":
        plots.plot_png(results, tmp_path / name)
    with Image.open(tmp_path / "a") as image:
        assert image.size == size
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_aging_is_drawn_beside_what_was_published():
    text = text_of(aging_results(), aging_results(alone=True))
    assert "published, lockless: x86, TDP" in text and "vCPUs: faulting: aging/no aging" in text


def test_what_is_drawn_of_growth():
    data = virtual_results(("base", "upto:fast-path"), {"line*2": 1.25})
    (summary,) = s.summarise([data])
    time, growth = plots.growth_figure(summary, [s.DIRTY]).axes
    (base,) = [line for line in growth.lines if line.get_label() == "base"]
    assert list(base.get_xdata()) == [1, 2, 4, 8, 16]
    assert list(base.get_ydata()) == pytest.approx([1, 1.2, 2.5, 5.5, 12])
    (base,) = [line for line in time.lines if line.get_label() == "base"]
    assert base.get_ydata()[-1] == pytest.approx(36000)
    colours = {line.get_label(): line.get_color() for line in growth.lines}
    assert colours["base"] == colours["published: Zhang 2022, base"] != colours["upto:fast-path"]
    assert [int(tick) for tick in growth.get_xticks()][:5] == [1, 2, 4, 8, 16]


def test_migrations_over_time():
    keys = {"series": "qemu-10.0", "config": "bitmap", "args": "rate=1"}
    runs = [
        make_run(**keys, test="migration", kernel=kernel, vcpus=2, metric="migration_time", samples=[9])
        for kernel in ("base", "series")
    ]
    rows = [[0, 4e6, 0, 0, 0], [0.1, 2e6, 20, 2e6, 1], [0.2, 0, 20, 4e6, 1]]
    traces = [{**keys, "kernel": kernel, "vcpus": 2, "rows": rows} for kernel in ("base", "series")]
    text = text_of({**make_file(*runs), "traces": traces})
    for words in ("Over time", "left to send; | is a sync pass", "throttle of the vCPUs", "bandwidth used", s.IN_TURN):
        assert words in text
    assert "With 2 vCPUs the guests did not begin alike, or it is not known" in text
    assert "Over time" not in text_of(make_file(*runs))


def test_the_rate_of_a_guest_that_is_migrated():
    keys = {"test": "migration_area_test", "vcpus": 2}
    rates = [
        make_run(**keys, kernel=kernel, metric="guest_rate", unit="1", iteration=number, samples=[rate])
        for kernel, values in (("base", (1, 0.5, 0)), ("series", (1, 0.9, 0)))
        for number, rate in enumerate(values, 1)
    ]
    times = [
        make_run(**keys, kernel=kernel, metric=metric, iteration=None, samples=[0.00025])
        for kernel in ("base", "series")
        for metric in ("slice_time", "lost_work")
    ]
    (summary,) = s.summarise([make_file(*rates, *times)])
    (axes,) = plots.rate_figure(summary, 2).axes
    drawn = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    assert drawn == {"base": [1, 0.5, 0], "series": [1, 0.9, 0]}
    assert list(axes.lines[0].get_xdata()) == [0.25, 0.5, 0.75]
    assert "Rate of the guest" in text_of(make_file(*rates, *times)) and plots.rate_figure(summary, 4) is None


# One of each test is in every run of the tests.
ONE_OF_EACH = ("x86_64-aging-tdp", "arm64-merging", "arm64-unmap-64m", "arm64-holds", "arm64-killed")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.name, marks=() if path.stem.partition("-")[2] in ONE_OF_EACH else pytest.mark.slow)
        for path in committed("v*.json") + committed("qemu*.json")
    ],
)
def test_every_committed_file_has_a_page(path):
    text = text_of(load(path))
    assert "series" in text and "Nothing of these runs is in a table" not in text
