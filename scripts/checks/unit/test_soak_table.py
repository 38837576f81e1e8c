"""The races of linux 7.3's soak that Documentation/method.md tells of are those of the results file."""

import collections
import json
import re

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
    found = re.findall(r"^\|.*\|$", (folder / "method.md").read_text(encoding="utf-8"), re.M)
    assert [line for line in found if line in wanted] == wanted, "\n".join(wanted)


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
