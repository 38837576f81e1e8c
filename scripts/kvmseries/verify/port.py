"""A port of a series: `port` of patches/<series>/base names that, and port.yaml says how patches differ from those with the
same subjects."""

import re
from collections.abc import Iterator, Mapping
from difflib import unified_diff

from ..base.errors import Fail
from ..source import catalog

# Lines that a patch adds and removes, by its subject.
Changes = Mapping[str, list[str]]


def check(series: catalog.Series) -> None:
    """Raise Fail if port.yaml does not say of each patch that differs how, or says it of one that does not."""
    if series.port:
        file = series.path / "port.yaml"
        wrong = list(complaints(_changes(series), _changes(catalog.load(series.port)), catalog.mapping(file)))
        if wrong:
            raise Fail(f"{file}: {len(wrong)} complaints, the first: {wrong[0]}")


def complaints(ours: Changes, theirs: Changes, said: Mapping[str, str]) -> Iterator[str]:
    """What `said`, of port.yaml, lacks, or says of patches that do not differ."""
    for subject in sorted(ours.keys() | said.keys()):
        sentence, new = said.get(subject, ""), subject not in theirs
        if subject not in ours:
            yield f"{subject}: no such patch"
        elif new != sentence.startswith("new: "):
            yield f"{subject}: {'is' if new else 'is not'} new"
        elif not new and (ours[subject] == theirs[subject]) == bool(sentence):
            first = "; ".join(list(unified_diff(theirs[subject], ours[subject], lineterm="", n=0))[2:6])
            yield f"{subject}: {'does not differ' if sentence else f'differs, and nothing says how: {first}'}"


def _changes(series: catalog.Series) -> Changes:
    """Of all patches, without empty lines and without where."""
    texts = {catalog.subject(patch): patch.read_text(encoding="utf-8") for patch in series.patches}
    return {
        subject: re.findall(r"^[-+](?![-+]{2} ).+", text.partition("\ndiff --git ")[2], re.M)
        for subject, text in texts.items()
    }
