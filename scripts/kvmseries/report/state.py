"""Of which state of the sources results are: a note below a table, never a mistake."""

from collections.abc import Iterable

from ..data import ids
from ..data.shape import Results

_WORDS = {"old": "old, patches/ make another source today", "unknown": "of an unknown state of the source"}


def notes(results: Iterable[Results], series: str, arch: str, test: str) -> list[str]:
    """Lines about the runs of `test` in `results`: none where all is there, and as patches/ are today."""
    lines: list[str] = []
    for data in results:
        runs = [run for run in data["runs"] if (run["series"], run["arch"], run["test"]) == (series, arch, test)]
        labels: dict[str, list[str]] = {}
        for label in dict.fromkeys(run["kernel"] for run in runs):
            labels.setdefault(of_label(data, label, series, arch), []).append(label)
        if not runs:
            continue
        lines += [f"{', '.join(labels[state])}: {words}." for state, words in _WORDS.items() if state in labels]
        changed = changes(data, series)
        if changed:
            lines.append(f"measured with another state of: {', '.join(changed)}.")
    return list(dict.fromkeys(lines))


def of_label(data: Results, label: str, series: str, arch: str) -> str:
    """ "new", "old" or "unknown": whether the kernel `label` in a results file is what patches/ are today."""
    there = data.get("made", {}).get("ids", {}).get("kernels", {}).get(label)
    today = ids.today(label, series, arch)
    return "unknown" if not there or not today else "new" if there == today else "old"


def changes(data: Results, series: str) -> list[str]:
    """What else of what `data` was measured with is another one today, as words; what has no id is not in it."""
    found = data.get("made", {}).get("ids", {})
    if series.startswith("qemu"):
        return []
    words = []
    tests = dict(found.get("tests") or {})
    if tests.pop("programs", None) not in (None, ids.programs()):
        words.append("the test programs")
    for name, there in tests.items():
        if there and ids.today("series", name, ids.TESTS) not in (None, there):
            words.append(f"{name}'s tests")
    if found.get("instrument") not in (None, ids.instrument()):
        words.append("the instrument")
    return words
