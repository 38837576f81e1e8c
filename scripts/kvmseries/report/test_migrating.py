"""Tests of the report of live migrations."""

from rich.console import Console

from kvmseries import report


def _runs(ratio):
    """Two QEMUs, two ways to track pages, two vCPU counts; the series has `ratio` of base's figures."""
    return [{"series": "qemu-10.0", "kernel": kernel, "arch": "arm64", "accel": "tcg", "clock": "wall",
             "model": "", "cpu": "max", "config": config, "params": [], "test": "migration",
             "args": "working-set=2", "vcpus": vcpus, "iteration": None, "metric": metric, "unit": "1",
             "samples": [10 * (ratio if kernel == "series" else 1), 20 * (ratio if kernel == "series" else 1)]}
            for kernel in ("base", "series") for config in ("bitmap", "ring-1024") for vcpus in (1, 4)
            for metric in ("syncs", "migration_time", "guest_work_lost", "kicks")]


def _results(ratio):
    return {"schema": 2, "host": {"cpu": "x"}, "runs": _runs(ratio)}


def test_table(capsys):
    report.print_table([_results(0.2)], Console(width=200, force_terminal=False))
    text = capsys.readouterr().out
    assert "config bitmap" in text and "config ring-1024" in text
    assert "0.20" in text and "Migrations (ring-1024)" in text


def test_page(tmp_path):
    text = report.write_page([_results(0.25)], tmp_path, []).read_text(encoding="utf-8")
    assert "4 vCPUs, ring-1024, series by base: time 0.25, syncs 0.25, guest work lost 0.25" in text


def test_base_alone(tmp_path):
    data = _results(1)
    data["runs"] = [run for run in data["runs"] if run["kernel"] == "base"]
    assert report.write_page([data], tmp_path, []).exists()
