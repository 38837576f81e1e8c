"""What is wrong with the figures of texts: they differ, are not listed, stand on too little; what got worse and is
not said; and what would measure again what is old."""

from __future__ import annotations

import re
import statistics
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base import files, paths
from ..base.errors import Fail
from ..data import schema, summary as s
from ..data.shape import Run
from ..report import compare, migrating
from . import compute, text as texts

FILE = paths.ROOT / "Documentation" / "figures.yaml"
FORMAT = paths.ROOT / "Documentation" / "figures.schema.json"
# The generated paragraph of a text that quotes what is old, or measured too seldom, begins so; in texts that are
# mailed, whose readers do not have this tool, in the second way.
NOTICES = ("Generated: of the ", "Of the ")
_MAILED = "patches/"
# By how much a metric may be worse than base without being mentioned.
WORSE = 1.1
_HIGHER = ("completed", "guest_speed", "passes", "pages_merged")

# figures.yaml, see load().
Data = dict[str, Any]
# By the other keys of a run: the runs of base and series, their medians.
Pairs = Mapping[tuple[str, ...], Mapping[str, Run]]
Medians = Mapping[tuple[str, ...], tuple[float, float]]


@dataclass
class Row:
    """A figure in a text: where, what stands there, what the results say (None if they say nothing), and why it
    is not to be quoted as it is (of compute.shortcomings())."""

    where: str
    place: texts.Place
    wanted: str | None
    names: tuple[str, ...] = ()  # short names of its results
    reasons: frozenset[str] = frozenset()


@dataclass
class Judged:
    """All of a text: rows; problems, one line each; the text as it should be."""

    where: str
    rows: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    better: str = ""


def load(path: Path | None = None) -> Data:
    """The entries of figures.yaml: {"results", "texts", "worse", "pictures"}.  Raises Fail with one line."""
    return {"worse": [], "pictures": [], **schema.read(path or FILE, FORMAT)}


def judge(data: Data, files: compute.Files, where: str, root: Path | None = None, strict: bool = False) -> Judged:
    """The Judged of the text `where`.  strict: what is old or measured too seldom is a problem."""
    entry = data["texts"][where]
    found = Judged(where)
    try:
        text = found.better = file_of(where, root).read_text(encoding="utf-8")
    except OSError as error:
        found.problems.append(f"cannot read {where}: {error.strerror}")
        return found
    except Fail as error:
        found.problems.append(str(error))
        return found
    places = []
    for one in entry["entries"]:
        try:
            places += texts.places(text, [one], where)
        except Fail as error:
            found.problems.append(str(error))
    for place in places:
        _row(files, found, place)
    if entry.get("tables"):
        found.problems += texts.unlisted(text, entry["entries"], places, where)
    changes = [
        (row.place, row.wanted) for row in found.rows if row.wanted is not None and row.wanted != row.place.there
    ]
    wanted = notice(files, found.rows, entry.get("width"), where.startswith(_MAILED)) if "notice" in entry else ""
    found.better = with_notice(texts.replace(text, changes), wanted, entry.get("notice"), where)
    if "notice" in entry and with_notice(text, wanted, entry["notice"], where) != text:
        found.problems.append(
            f"{where}: what it says of its results' state is not true: it should have '{' '.join(wanted.split())}'"
            if wanted
            else f"{where}: the paragraph about its results' state is out of date"
        )
    if strict:
        found.problems += _weak(files, found.rows, where)
    return found


def file_of(where: str, root: Path | None = None) -> Path:
    """The file of a text; `where` may have a * for a patch's number.  Raises Fail unless it is one file."""
    root = root or paths.ROOT
    if "*" not in where:
        return root / where
    found = sorted(root.glob(where))
    if len(found) != 1:
        raise Fail(f"{where} is {len(found)} files, not one")
    return found[0]


def _row(files: compute.Files, found: Judged, place: texts.Place) -> None:
    try:
        number = compute.compute(files, place.figure)
        wanted = compute.text(number, place.figure.get("form", "x.0"))
        if re.search(r"\d{4}", place.there) and "," not in place.there:
            wanted = wanted.replace(",", "")  # a text that writes thousands so
    except Fail as error:
        found.problems.append(f"{found.where}: '{place.there}' of '{place.what}': {error}")
        found.rows.append(Row(found.where, place, None))
        return
    found.rows.append(
        Row(
            found.where,
            place,
            wanted,
            tuple(dict.fromkeys(name for name, _ in number.runs)),
            frozenset(compute.shortcomings(files, number)),
        )
    )
    if wanted != place.there:
        found.problems.append(f"{found.where}: '{place.what}' says {place.there}, the results say {wanted}")


def weaknesses(files: compute.Files, rows: Iterable[Row]) -> dict[str, set[str]]:
    """{short name: set of reasons} of the results that `rows` quote and that are not to be quoted as they are.
    A label's state and a time's rounds are those of what is quoted, not of all of a file."""
    found: dict[str, set[str]] = {}
    for row in rows:
        for name in row.names:
            found.setdefault(name, set()).update(row.reasons)
    return {name: reasons for name, reasons in found.items() if reasons}


def notice(files: compute.Files, rows: Sequence[Row], width: int | None = None, mailed: bool = False) -> str:
    """The paragraph that a text must have about the results that it quotes; "" if there is nothing to say.
    mailed: its readers do not have the results files."""
    weak = weaknesses(files, rows)
    if not weak:
        return ""
    all_ = {name for row in rows for name in row.names}
    words = []
    for reason, one, more in (
        (
            "unknown",
            "does not record which version of the source it measured",
            "do not record which version of the source they measured",
        ),
        ("old", "is of an older version of the source", "are of an older version of the source"),
        ("rounds", f"has fewer than {compute.ROUNDS} rounds", f"have fewer than {compute.ROUNDS} rounds"),
    ):
        count = sum(reason in reasons for reasons in weak.values())
        if count:
            words.append(f"{count} {one if count == 1 else more}")
    what = "result" if mailed else "results file"
    noun = f"{what}s that are" if len(all_) > 1 else f"{what} that is"
    hint = "" if mailed else " (`scripts/series figures --measure`)"
    text = f"{NOTICES[mailed]}{len(all_)} {noun} quoted here, {' and '.join(words)}{hint}."
    return "\n".join(textwrap.wrap(text, width)) if width else text


def with_notice(text: str, wanted: str, after: str, where: str) -> str:
    """`text` with the paragraph `wanted` in the place of the one that it has, or after the paragraph that has
    the words `after`; without one if `wanted` is ""."""
    there = re.search(rf"^(?:{'|'.join(NOTICES)})\d+ results? .*?\n(?=\n|\Z)\n?", text, re.M | re.S)
    if there:
        return text[: there.start()] + (f"{wanted}\n\n" if wanted else "") + text[there.end() :]
    if not wanted:
        return text
    found = re.search(texts.words(after), text)
    if not found:
        raise Fail(f"{where}: '{after}', behind which a notice is to stand, is not there")
    end = text.find("\n\n", found.start())
    end = len(text) if end < 0 else end + 2
    return text[:end] + f"{wanted}\n\n" + text[end:]


def _weak(files: compute.Files, rows: Sequence[Row], where: str) -> list[str]:
    said = {
        "unknown": "does not record which version of the source it measured",
        "old": "is of an older version of the source",
        "rounds": f"has fewer than {compute.ROUNDS} rounds",
    }
    return [
        f"{where}: {files.entries[name]['file']} {' and '.join(said[reason] for reason in sorted(reasons))}"
        for name, reasons in weaknesses(files, rows).items()
    ]


def lower_is_better(run: Run) -> bool | None:
    """Whether less of a run's metric is better; None where that cannot be said, or is by chance."""
    metric = run["metric"].partition(".")[0]
    if s.clock_name(run["accel"], run["clock"]) == s.EMULATED and "contentions" in metric:
        return None
    if metric in _HIGHER:
        return False
    if metric in (*compare.LOWER_IS_BETTER, *migrating.LOWER_IS_BETTER) or run["unit"] == "s":
        return True
    return None


def worse(
    files: compute.Files, name: str, kernels: Iterable[str] = (s.SERIES,)
) -> dict[tuple[str, str], tuple[float, int, str]]:
    """{(metric, kernel): (ratio to base, vCPUs, model)}, the greatest ratio, of what one of `kernels` does worse than
    base by more than WORSE in the results `name`, in any variant of the model."""
    found: dict[tuple[str, str], tuple[float, int, str]] = {}
    for kernel in kernels:
        for metric, worst in _worse(files.data(name)["runs"], kernel).items():
            found[metric, kernel] = worst
    return found


def _worse(all_runs: Iterable[Run], kernel: str) -> dict[str, tuple[float, int, str]]:
    runs: dict[tuple[str, ...], dict[str, Run]] = {}
    found: dict[str, tuple[float, int, str]] = {}
    for run in all_runs:
        if run["kernel"] in (s.BASE, kernel):
            keys: Mapping[str, object] = run
            key = tuple(str(keys[name]) for name in compare.KEY if name != "kernel")
            runs.setdefault(key, {})[run["kernel"]] = run
    medians: dict[tuple[str, ...], tuple[float, float]] = {}
    for key, pair in runs.items():
        if len(pair) == 2:
            medians[key] = statistics.median(pair[s.BASE]["samples"]), statistics.median(pair[kernel]["samples"])
    for key, (base, patched) in medians.items():
        run = runs[key][s.BASE]
        better = lower_is_better(run)
        if better is None or min(base, patched) < 0 or _traded(runs, medians, key):
            continue
        before, after = (base, patched) if better else (patched, base)
        # A count may differ by one for each CPU of the machine.
        if after <= WORSE * before or (run["unit"] == "1" and after - before <= run["vcpus"] + 1):
            continue
        ratio = after / before if before else float("inf")
        metric = run["metric"]
        found[metric] = max(found.get(metric, (0, 0, "")), (ratio, run["vcpus"], run["model"] or s.NOMINAL))
    return found


def _traded(runs: Pairs, medians: Medians, key: tuple[str, ...]) -> bool:
    """Whether the metric of `key` is the cheaper operation that took a dearer one's place."""
    metric, _, phase = runs[key][s.BASE]["metric"].partition(".")
    if metric not in compare.INSTEAD:
        return False
    number = [name for name in compare.KEY if name != "kernel"].index("metric")
    other = key[:number] + (".".join(filter(None, (compare.INSTEAD[metric], phase))),) + key[number + 1 :]
    if other not in medians:
        return False
    return (
        medians[key][1] - medians[key][0]
        <= 1.05 * (medians[other][0] - medians[other][1]) + runs[key][s.BASE]["vcpus"] + 1
    )


def slower_section(text: str, begin: str) -> str | None:
    """The paragraph of a text that begins with `begin`, its blanks single; None if there is none."""
    found = re.search(rf"^{re.escape(begin)}.*?(?=\n\s*\n|\Z)", text, re.M | re.S)
    return " ".join(found[0].split()) if found else None


def quoted(rows: Iterable[Row]) -> dict[str, list[str]]:
    """{short name of results that `rows` quote: the kernels that are held against base there}: the series, and the
    upto: kernels of which any of the rows says something."""
    names: set[str] = set()
    steps: set[str] = set()
    for row in rows:
        names.update(row.names)
        kernel = row.place.figure.get("kernel")
        if isinstance(kernel, str) and kernel.startswith(s.UPTO):
            steps.add(kernel)
    return {name: [s.SERIES, *sorted(steps)] for name in sorted(names)}


def unsaid(data: Data, files: compute.Files, judged: Judged, root: Path | None = None) -> list[str]:
    """Lines about what got worse in the results that a text quotes and its section of that does not say."""
    begin = data["texts"][judged.where].get("slower")
    if not begin:
        return []
    text, sections = file_of(judged.where, root).read_text(encoding="utf-8"), []
    for words in begin if isinstance(begin, list) else [begin]:
        section = slower_section(text, words)
        if section is None:
            return [f"{judged.where}: no paragraph begins with '{words}'"]
        sections.append(section)
    said_there, wrong = " ".join(sections), []
    for name, kernels in quoted(judged.rows).items():
        for (metric, kernel), (ratio, vcpus, model) in worse(files, name, kernels).items():
            entries = [
                entry
                for entry in data["worse"]
                if re.fullmatch(entry["metric"], metric)
                and (entry["of"] == "all" or name in entry["of"])
                and entry.get("kernel", kernel) == kernel
            ]
            said = [entry for entry in entries if "why" in entry or entry["says"] in said_there]
            if not said:
                of = "" if kernel == s.SERIES else f" of {kernel}"
                variant = "" if model == s.NOMINAL else f", model {model}"
                wrong.append(
                    f"{judged.where}: what gets slower does not say that {metric}{of} is {ratio:.2f} times "
                    f"base's with {vcpus} vCPUs ({files.entries[name]['file']}{variant})"
                    + (f": it should have '{entries[0]['says']}'" if entries else "")
                )
    return wrong


def to_measure(data: Data, files: compute.Files, judged: Sequence[Judged]) -> list[tuple[str, list[str], str, int]]:
    """[(short name, reasons, command, minutes)] of the results that are not to be quoted as they are, in the order of
    figures.yaml."""
    rows = [row for one in judged for row in one.rows]
    weak = weaknesses(files, rows)
    found = []
    for name, entry in data["results"].items():
        reasons = sorted(weak.get(name, ()))
        changed = compute.changed_instrument(files, name) if name in {n for row in rows for n in row.names} else []
        if reasons or changed:
            made = files.data(name)["made"]
            command = entry.get("command") or made["command"] or "(no command is known)"
            minutes = round(made["seconds"] / 60) or entry.get("minutes", 0)
            found.append((name, reasons + changed, f"{command} --json Documentation/results/{entry['file']}", minutes))
    return found


def plan(data: Data, files: compute.Files, judged: Sequence[Judged]) -> list[str]:
    """Lines of --measure."""
    found = to_measure(data, files, judged)
    if not found:
        return ["Nothing is old, and all was measured in enough rounds."]
    lines, total = [], 0
    for name, reasons, command, minutes in found:
        total += minutes
        lines += [f"# {data['results'][name]['file']}: {', '.join(reasons)}; {minutes or '?'} min", command]
    pictures = [f"scripts/series report --table none {entry}" for entry in data["pictures"]]
    return [*lines, *pictures, "scripts/series figures --write", f"# {total} minutes in all"]


def write(judged: Judged) -> None:
    """Write a text as it should be, whole or not at all."""
    if not judged.better:
        return
    path = file_of(judged.where)
    if judged.better == path.read_text(encoding="utf-8"):
        return
    files.write(path, judged.better)


def reading(judged: Iterable[Judged]) -> list[str]:
    """Lines: sentences in which a figure has changed, which somebody must read; how many cells of tables have."""
    lines = []
    for one in judged:
        changed = [row for row in one.rows if row.wanted not in (None, row.place.there)]
        words = [row for row in changed if "{" in row.place.what]
        if changed:
            lines.append(
                f"{one.where}: {len(changed) - len(words)} cells of tables and {len(words)} figures of "
                "sentences are new"
            )
        lines += [f"{one.where}: read '{row.place.what}': {row.place.there} -> {row.wanted}" for row in words]
    return lines


def table(judged: Iterable[Judged]) -> list[str]:
    """Lines with all figures: for each text what stands there, what the results say, of which results, their state."""
    lines = []
    for one in judged:
        lines += [one.where, f"  {'there':>14} {'results':>14}  {'of':<14} {'state':<15} where"]
        for row in one.rows:
            wanted = "?" if row.wanted is None else "same" if row.wanted == row.place.there else row.wanted
            lines.append(
                f"  {row.place.there:>14} {wanted:>14}  {' '.join(row.names):<14} "
                f"{' '.join(sorted(row.reasons)):<15} {row.place.what[:60]}".rstrip()
            )
        lines.append("")
    return lines
