"""patches/v6.12 against patches/v7.3: port.yaml says of each patch that differs how; and a mistake that 6.12 alone allows.
The RFC beside it applies and is clean."""

from dataclasses import replace

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.source import am, catalog, trees
from kvmseries.source.git import git
from kvmseries.verify import check, port
from tests import extra, stage2traces
from tests.lab import Lab


def test_each_difference_has_a_sentence():
    series = catalog.load("v6.12")
    assert len(series.patches) > 30 and series.port == "v7.3"
    port.check(series)


def test_negative_control_what_is_not_said_is_noticed(monkeypatch):
    theirs = {"a": ["+x"], "b": ["+y"]}
    assert not list(port.complaints({"a": ["+x"], "b": ["+z"], "c": []}, theirs, {"b": "z.", "c": "new: c."}))
    assert len(list(port.complaints({"a": ["+x"], "b": ["+z"], "c": []}, theirs, {"a": "x.", "d": "d."}))) == 4
    monkeypatch.setattr(catalog, "mapping", lambda file: {})
    with pytest.raises(Fail, match="port.yaml: .* complaints, the first: KVM: .* is new$"):
        port.check(catalog.load("v6.12"))


def test_the_rfc_applies_and_is_clean(tmp_path):
    series = catalog.load("v6.12")
    rfc = replace(series, patches=tuple(sorted((paths.PATCHES / "v6.12/rfc-aging-x86").glob("000[1-9]-*.patch"))))
    tree = trees.worktree(series, len(series.patches), extra.own_base(series))
    git(tmp_path, "clone", "-q", "--shared", str(tree.path), "linux")
    am.apply(tmp_path / "linux", rfc.patches, own=True)
    check.checkpatch(rfc, extra.own_base(series))


@pytest.mark.boot
@pytest.mark.slow
def test_negative_control_an_ipa_that_is_not_shifted_is_found():
    """7.3 leaves the shift to the TLBI, and a port that takes its lines invalidates another page."""
    mutant, patches = "tlb-ipa-unshifted", ("mutants", "tlb-mutants")
    lab = Lab("v6.12", params=("series.hugepages=64",), patches=patches, mutant=mutant)
    command = "/tests/dirty_log_perf_test -v 2 -b 2M -m 3 -i 3 -s anonymous_hugetlb_2mb -g".split()
    stage2traces.finds(lab, command, ("forget", "kvm_pgtable_stage2_undo_wrprotect.*no TLBI for it came"))
