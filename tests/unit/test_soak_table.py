"""What Documentation/method.md tells of the soaks is what their files have: the races of linux 7.3's, and the hours, parts and
counts of linux 5.10's."""

import collections
import json

from kvmseries.base import paths

# Words of the table -> count of a part of the soak.
RACES = {
    "aging lost to a change of attributes": "walks_that_age.lost",
    "aging lost to unmapping": "walks_that_age.unmapped",
    "aging lost to what replaced a block": "walks_that_age.replaced",
    "aging found an entry locked": "walks_that_age.locked",
    "aging found no page table": "walks_that_age.late",
    "a fault that undoes write-protection found W set already": "faults_that_undo.set",
    "it lost to another fault that sets W": "faults_that_undo.lost_set",
    "it lost to aging": "faults_that_undo.lost_aged",
    "it lost to an access": "faults_that_undo.lost_accessed",
    "it lost to unmapping": "faults_that_undo.lost_unmapped",
    "it found an entry locked": "faults_that_undo.found_locked",
    "its table was gone at its end": "faults_that_undo.table_gone",
    "the log was harvested between W and D": "faults_that_undo.wrprotected",
    "the page was unmapped between W and D": "faults_that_undo.unmapped",
}
CONFIGURATION = "arm64-debug"


def rows(parts):
    """Lines of the table: a column for each of the two sources that ran last, the newest first."""
    sums = collections.defaultdict(collections.Counter)
    for part in parts:
        if part["configuration"] == CONFIGURATION:
            sums[part["source"]].update({**part["counts"], "parts": 1, "seconds": part["seconds"]})
    newest, before = list(sums.values())[-1], list(sums.values())[-2]
    heads = [f"{found['parts']} parts, {found['seconds'] / 60:.0f} minutes" for found in (newest, before)]
    return [
        f"| | {heads[0]} | {heads[1]} |",
        "|---|--:|--:|",
        *(f"| {words} | {newest[name]:,} | {before[name]:,} |" for words, name in RACES.items()),
    ]


def test_method_md_has_the_races_of_the_soak():
    folder = paths.ROOT / "Documentation"
    parts = json.loads((folder / "results" / "soak-v7.3.json").read_text(encoding="utf-8"))["parts"]
    wanted = rows(parts)
    text = (folder / "method.md").read_text(encoding="utf-8")
    assert "\n".join(wanted) in text, "\n".join(wanted)


def test_a_part_of_another_configuration_does_not_count():
    parts = [
        {"configuration": name, "source": source, "seconds": 600, "counts": {"walks_that_age.lost": 1000}}
        for name, source in (
            (CONFIGURATION, "old"),
            (CONFIGURATION, "new"),
            (CONFIGURATION, "new"),
            ("arm64-kcsan", "new"),
        )
    ]
    head, _, lost, *others = rows(parts)
    assert head == "| | 2 parts, 20 minutes | 1 parts, 10 minutes |"
    assert lost == "| aging lost to a change of attributes | 2,000 | 1,000 |"
    assert len(others) == len(RACES) - 1


# Words of 5.10's table -> counts that are added up, by architecture; none: it has no such count.
COUNTS = {
    "aging lost to a change of the entry": (("walks_that_age.lost",), ("walks_that_age.lost",)),
    "aging lost to unmapping": (("walks_that_age.unmapped",), ("walks_that_age.zapped",)),
    "aging lost to what replaced a block, or found its table unlinked": (
        ("walks_that_age.replaced",),
        ("walks_that_age.unlinked",),
    ),
    "faults handled in parallel": (("kvm.stage2_faults_parallel",), ()),
    "they found the entry changed": (("kvm.stage2_races_lost",), ()),
    "they found the entry locked": (("kvm.stage2_entries_locked",), ()),
    "faults whose page changed after they looked it up": (("kvm.mmu_seq_retries",), ("kvm.mmu_seq_retries",)),
    "words that the guest read back": (("words_verified",), ("words_verified",)),
    "writes looked up in the dirty log": (("writes_verified_in_log",), ("writes_verified_in_log",)),
    "pages swapped out": (("swapped_out",), ("swapped_out",)),
}


def rows_of_5_10(parts, source):
    """Lines of the table of the parts of `source`, {arch: id}: a column for each architecture."""
    mine = {
        arch: [part for part in parts if part["arch"] == arch and part["source"] == source[arch]] for arch in source
    }

    def line(words, *cells):
        return "| " + " | ".join((words, *cells)) + " |"

    def count(arch, names):
        return f"{sum(part['counts'].get(name, 0) for part in mine[arch] for name in names):,}" if names else ""

    arches = ("arm64", "x86_64")
    return [
        "| | arm64 | x86-64 |",
        "|---|--:|--:|",
        line("hours", *(f"{sum(part['seconds'] for part in mine[arch]) / 3600:.1f}" for arch in arches)),
        line("parts", *(str(len(mine[arch])) for arch in arches)),
        line("parts that failed", *(str(sum(part["outcome"] != "ok" for part in mine[arch])) for arch in arches)),
        *(line(words, *map(count, arches, names)) for words, names in COUNTS.items()),
    ]


def test_method_md_has_the_hours_parts_and_counts_of_5_10():
    folder = paths.ROOT / "Documentation"
    data = json.loads((folder / "results" / "soak-v5.10.json").read_text(encoding="utf-8"))
    wanted = rows_of_5_10(data["parts"], data["source"])
    text = (folder / "method.md").read_text(encoding="utf-8")
    assert "\n".join(wanted) in text, "\n".join(wanted)


def test_a_part_of_another_source_does_not_count():
    parts = [
        {"arch": arch, "source": source, "seconds": 1800, "outcome": outcome, "counts": {"walks_that_age.lost": 1000}}
        for arch, source, outcome in (
            ("arm64", "old", "failed"),
            ("arm64", "new", "failed"),
            ("arm64", "new", "ok"),
            ("x86_64", "new", "ok"),
        )
    ]
    lines = rows_of_5_10(parts, {"arm64": "new", "x86_64": "new"})
    assert lines[2:6] == [
        "| hours | 1.0 | 0.5 |",
        "| parts | 2 | 1 |",
        "| parts that failed | 1 | 0 |",
        "| aging lost to a change of the entry | 2,000 | 1,000 |",
    ]
    assert len(lines) == 5 + len(COUNTS) and lines[8] == "| faults handled in parallel | 0 |  |"
