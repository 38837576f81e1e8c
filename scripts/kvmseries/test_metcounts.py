"""metcounts: what a run has met, and the file of it."""

import json

import pytest

from kvmseries.checks import metcounts
from kvmseries.errors import Fail

TEXT = """4 vCPUs, 8 MiB of anonymous_thp, 1000000 of everything within 12 s, seed 3
Dirty log: clear
17.7 s, 267 accesses by vCPUs, 1782 exits, 59 by EFAULT, 4 by MMIO
Verified with the vCPUs stopped: 3 times, 425 words, 120 writes in the dirty log of 9 harvests
Verified by vCPUs: 204277 words executed, 4 writes to the read-only memslot
Host: log 1 slots 5 exec 7
KVM: stage2_blocks_split 1 stage2_races_lost 0
"""
WHERE = ("arm64", "max", (), ())


def test_sums_over_all_vms():
    assert metcounts.parse(2 * TEXT) == {
        "log": 2, "slots": 10, "exec": 14, "stage2_blocks_split": 2, "stage2_races_lost": 0, "words": 850,
        "dirty": 240, "executed": 408554, "exiting": 8}


def test_of_a_kernel_without_counters():
    met = metcounts.parse(TEXT.replace("KVM: stage2_blocks_split 1 stage2_races_lost 0", "KVM: no counters"))
    assert "stage2_blocks_split" not in met and met["log"] == 1


def test_is_kept_where_asked_for(monkeypatch, tmp_path):
    target = tmp_path / "counts.json"
    monkeypatch.delenv("SERIES_COUNTS", raising=False)
    metcounts.keep("rally", WHERE, ("test",), 1, {"log": 1})
    assert not target.exists()
    monkeypatch.setenv("SERIES_COUNTS", str(target))
    for _ in range(2):
        metcounts.keep("rally", WHERE, ("test", "-t", 5), 1.4, {"log": 1})
    first, second = json.loads(target.read_text())["runs"]
    assert first == second and first["met"] == {"log": 1} and first["command"] == "test -t 5"
    assert first["patches"]


@pytest.mark.parametrize("text", ("{", "[]", "{}"))
def test_another_file_is_left_alone(monkeypatch, tmp_path, text):
    target = tmp_path / "counts.json"
    target.write_text(text)
    monkeypatch.setenv("SERIES_COUNTS", str(target))
    with pytest.raises(Fail, match="is no file of counts"):
        metcounts.keep("rally", WHERE, ("test",), 1, {})
    assert target.read_text() == text
