"""patches/v6.12 against patches/v7.3: port.yaml says of each patch that differs how."""

import re
from difflib import unified_diff
from email.parser import HeaderParser

import yaml

from kvmseries.base import paths

PORT = paths.ROOT / "patches/v6.12/port.yaml"


def _changes(series):
    """{subject: the lines that a patch adds and removes, without empty ones and without where}"""
    found = {}
    for file in sorted((paths.ROOT / "patches" / series).glob("0*.patch"))[1:]:
        text = file.read_text(encoding="utf-8")
        subject = " ".join(HeaderParser().parsestr(text)["Subject"].split()).removeprefix("[PATCH] ")
        found[subject] = re.findall(r"^[-+](?![-+]{2} ).+", text.partition("\ndiff --git ")[2], re.M)
    return found


def complaints(ours, theirs, said):
    """What PORT lacks, or says of patches that do not differ."""
    for subject in ours.keys() | said.keys():
        sentence, new = said.get(subject), subject not in theirs
        if subject not in ours:
            yield f"{subject}: no such patch"
        elif new != (sentence or "").startswith("new: "):
            yield f"{subject}: {'is' if new else 'is not'} new"
        elif not new and (ours[subject] == theirs[subject]) == bool(sentence):
            lines = "\n".join(list(unified_diff(theirs[subject], ours[subject], lineterm="", n=0))[:20])
            yield f"{subject}: {'does not differ' if sentence else 'differs, and nothing says how'}\n{lines}"


def test_each_difference_has_a_sentence():
    ours, theirs = _changes("v6.12"), _changes("v7.3")
    assert len(ours) > 30
    assert not list(complaints(ours, theirs, yaml.safe_load(PORT.read_text(encoding="utf-8"))))


def test_negative_control_what_is_not_said_is_noticed():
    theirs = {"a": ["+x"], "b": ["+y"]}
    assert not list(complaints({"a": ["+x"], "b": ["+z"], "c": []}, theirs, {"b": "z.", "c": "new: c."}))
    assert len(list(complaints({"a": ["+x"], "b": ["+z"], "c": []}, theirs, {"a": "x.", "d": "d."}))) == 4
