"""Of which state of the sources results are: lines that say which kernels are old, or not known."""

from __future__ import annotations

from collections.abc import Iterable

from ..data import ids
from ..data.shape import Results


def notes(results: Iterable[Results]) -> list[str]:
    """Lines about `results` (what load() returns, a list): none where all is there, and as patches/ are today."""
    lines = []
    for data in results:
        rest = data.get("made", {}).get("unfinished")
        if rest:
            lines.append(
                f"unfinished: {len(rest['parts'])} boots of {len(rest['parts']) + rest['left']}; the same command "
                "goes on."
            )
        lines += _of(data)
    return list(dict.fromkeys(lines))


def _of(data: Results) -> list[str]:
    found: dict[tuple[str, str], dict[str, None]] = {}
    for run in data["runs"]:
        found.setdefault((run["series"], run["arch"]), {})[run["kernel"]] = None
    lines = []
    for (series, arch), labels in found.items():
        tests = dict.fromkeys(run["test"] for run in data["runs"] if (run["series"], run["arch"]) == (series, arch))
        where = f"{series} {arch}, {', '.join(tests)}"
        states = {label: of_label(data, label, series, arch) for label in labels}
        for state, text in (
            ("old", "old: patches/ make another source today"),
            ("unknown", "of an unknown state of the source"),
        ):
            names = [label for label in labels if states[label] == state]
            if names:
                lines.append(f"{where}: {', '.join(names)}: {text}.")
        changed = changes(data, series, arch)
        if changed:
            lines.append(f"{where}: measured with another state of: {', '.join(changed)}.")
    return lines


def old(results: Iterable[Results], series: str, arch: str) -> set[str]:
    """The labels of the kernels of `series` on `arch` that are old in one of `results`."""
    found = set()
    for data in results:
        labels = {run["kernel"] for run in data["runs"] if (run["series"], run["arch"]) == (series, arch)}
        found |= {label for label in labels if of_label(data, label, series, arch) == "old"}
    return found


def of_label(data: Results, label: str, series: str, arch: str) -> str:
    """ "new", "old" or "unknown": whether the kernel `label` in a results file is what patches/ are today."""
    there = data.get("made", {}).get("ids", {}).get("kernels", {}).get(label)
    today = ids.today(label, series, arch)
    return "unknown" if not there or not today else "new" if there == today else "old"


def changes(data: Results, series: str, arch: str) -> list[str]:
    """What else of what `data` was measured with is another one today, as words; what has no id is not in it."""
    found = data.get("made", {}).get("ids", {})
    words: list[str] = []
    if series.startswith("qemu"):
        return words
    for name, there in (found.get("tests") or {}).items():
        # Another series' base runs the tests that came with it: bench._suite().
        if there and ids.today("series" if name == series else "base", name, ids.TESTS) not in (None, there):
            words.append(f"{name}'s tests")
    if found.get("guest") not in (None, ids.guest()):
        words.append("the guest")
    words += [name for name, there in (found.get("own") or {}).items() if there != ids.own(name)]
    clock = found.get("instrument")
    if clock is not None and clock != ids.instrument():
        words.append("the virtual clock")
    if any(there != ids.model(arch, name) for name, there in (found.get("models") or {}).items()):
        words.append("its model")
    return words
