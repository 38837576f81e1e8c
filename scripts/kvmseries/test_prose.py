"""What people read: README stays short, the index of results has each file with its command, and texts are in plain
English: words that are this project's own, or that make a reader stop, stay out of them."""

import argparse
import fnmatch
import os
import re
from pathlib import Path

import pytest

from kvmseries import cli
from kvmseries.base import paths
from kvmseries.conftest import committed
from kvmseries.figures import judge, text as texts

README = paths.ROOT / "README.md"
RESULTS = paths.ROOT / "Documentation" / "results"
LINES, WIDTH, FIGURES, PLOTS, FIRST = 120, 90, 20, 1, 25
# Lines and columns of a screen.
SCREEN = 50, 100
_UNIT = r"(?:ns|us|ms|s|%|times|MB|of (?:the time|base))(?![\w-])"


def prose(text):
    """Markdown with code blocks, code in backquotes and the targets of links blanked, at the same places."""
    for pattern in (r"^```.*?^```", r"^(?: {4}|\t).*$", r"`[^`\n]*`", r"(?<=\])\([^)\n]*\)"):
        text = re.sub(
            pattern,
            lambda found: re.sub(r"[^\n]", " ", found[0]),
            text,
            flags=re.M | re.S if "```" in pattern else re.M,
        )
    return text


def figures(text, places):
    """How many numbers of results a text has: those that figures.yaml places there, and others with a unit."""
    spans = {
        (place.begin + found.start(), place.begin + found.end())
        for place in places
        for found in re.finditer(texts.NUMBER, place.there)
    }
    listed = [(place.begin, place.end) for place in places]
    for found in re.finditer(rf"({texts.NUMBER})\s*{_UNIT}", prose(text)):
        if not any(begin <= found.start() < end for begin, end in listed):
            spans.add(found.span(1))
    return len(spans)


def too_much(text, places):
    """Lines about what a README has too much of."""
    lines = text.splitlines()
    wrong = [f"line {number} has {len(line)} characters" for number, line in enumerate(lines, 1) if len(line) > WIDTH]
    for what, count, most in (
        ("lines", len(lines), LINES),
        ("figures", figures(text, places), FIGURES),
        ("plots", text.count("!["), PLOTS),
    ):
        if count > most:
            wrong.append(f"{count} {what}, and at most {most} are to be there")
    return wrong


def test_readme_is_short():
    text = README.read_text(encoding="utf-8")
    places = texts.places(text, judge.load()["texts"]["README.md"]["entries"], "README.md")
    assert places
    assert too_much(text, places) == []


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("x\n" * 121, "121 lines"),
        ("x" * 91, "line 1 has 91"),
        ("![a](b)\n![c](d)\n", "2 plots"),
        ("it takes 1,234 us\n" * 21, "21 figures"),
        ("1.0 to 11.8 times\n" * 11 + "x 7 %\n" * 10, "21 figures"),
    ],
)
def test_negative_control_a_long_readme(text, wrong):
    assert [line for line in too_much(text, []) if wrong in line]


def test_figures_are_counted_once_and_not_in_code():
    text = "It takes 0.17 to 0.21 of base's, `5 us` and 4 GB.\n\n    7 us\n"
    place = texts.places(text, [{"text": "takes {a} of base's", "a": {}}], "x")
    assert figures(text, place) == 2 and figures(text, []) == 1


def test_the_readme_of_the_tool_fits_on_one_screen():
    lines = (paths.ROOT / "scripts" / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= SCREEN[0] and max(map(len, lines)) <= SCREEN[1]


def not_at_once(text):
    """What the first screen of a README, FIRST lines, does not say."""
    first = " ".join(" ".join(text.splitlines()[:FIRST]).split())
    return [
        words
        for words in (
            "patches/v5.10",
            "patches/qemu-10.0",
            "people who run",
            "reviewers",
            "of the time that it takes on base",
            "**Nothing was measured on hardware**",
            "make run",
            "scripts/series apply",
            "bench v5.10 --here",
            "Documentation/real-hardware.md",
        )
        if words not in first
    ]


def test_the_first_screen_says_what_it_is_for_whom_and_how_to_try_it():
    text = README.read_text(encoding="utf-8")
    assert not_at_once(text) == []
    assert "make run" in not_at_once("\n" + text.replace("make run", "make", 1))


def missing(text, results, files):
    """Names of files that an index does not link, and short names whose row lacks the file or the command."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    wrong = [name for name in files if f"]({name})" not in text]
    for name, entry in results.items():
        if not any(
            line.startswith(f"| `{name}` |") and f"]({entry['file']})" in line and f"`{entry['command']}`" in line
            for line in rows
        ):
            wrong.append(f"{name}: {entry['file']}, {entry['command']}")
    return wrong


def test_the_index_has_each_results_file_and_its_command():
    text = (RESULTS / "README.md").read_text(encoding="utf-8")
    files = [path.name for path in committed()]
    assert files
    assert missing(text, judge.load()["results"], files) == []


def test_negative_control_an_index_that_lacks_something():
    entry = {"a": {"file": "a.json", "command": "bench a"}}
    assert missing("| `a` | x | [a](a.json) | `bench a` |", entry, ["a.json"]) == []
    assert missing("| `a` | x | [a](a.json) | `bench b` |", entry, ["a.json"]) == ["a: a.json, bench a"]
    assert missing("| `a` | x | [a](a.json) | `bench a` |", entry, ["a.json", "b.json"]) == ["b.json"]


# Texts that people read, and words that are kept out of them: a pattern, and what to write instead.
TEXTS = (
    "README.md",
    "Documentation/*.md",
    "Documentation/results/README.md",
    "arch-*/*.md",
    "virt-kvm/README.md",
    "*/litmus/README.md",
    "*/litmus/*.litmus",
    "qemu-migration/*.md",
    "tools-testing-selftests-kvm/README.md",
    "tools-testing-selftests-kvm/*/README.md",
    "model/README.md",
    "scripts/README.md",
    "scripts/vtime/README.md",
    "scripts/vtime/*/README.md",
    "patches/*/0000-cover-letter.patch",
    "patches/*/letters/*.txt",
    "patches/*/README.md",
)
WORDS = {
    r"(?<!people )(?<!person )(?<!somebody )\b[Ww]ho\b": "a CPU, a fault, a reader that ...",
    r"\bbeside\b": "while, next to, with",
    r"\b(?:let|lets|letting) go of\b": "releases, drops",
    r"\b(?:goes|going) without\b": "does not need, has no",
    r"\b(?:lives|lived) on\b": "keeps running, stays",
    r"\bthe like of\b": "similar",
    r"(?<!random )\b[Ss]eeds? \d": "author and year, as in Zhang 2022",
    r"(?<![Cc]over )\b[Ll]etters?\b": "author and year, or cover letter",
    r"\b[Rr]ooms?\b(?! for)": "directory",
    r"\b[Tt]wins?\b": "variant",
    r"\b(?:series|ours|base|faulting|aging|median) by (?:base|idle|none|the)\b": "/, relative to, divided by",
    r"\bby (?:that|those) (?:of|with|without)\b": "/, relative to, divided by",
}


# Texts and messages that are not mended yet: words in them, and why they stay for now. Nothing else may be in them.
_RUNS = "checks that were run read all of the file"
LEFT = {
    "patches/instruments/v5.10/delays.patch": ("Those who unmap", _RUNS),
    "patches/instruments/v5.10/hold-times.patch": ("those who wait", _RUNS),
}


def message(text):
    """The message of a patch, without its head and without what git's "---" or a diff begins; "" if it has none."""
    head, _, body = text.partition("\n\n")
    return re.split(r"^(?:---$|diff --git )", body if head.startswith("From ") else text, maxsplit=1, flags=re.M)[0]


def left(where, text):
    """A text without the words of LEFT.  Fails if they are not there."""
    for pattern, (words, why) in LEFT.items():
        if fnmatch.fnmatch(where, pattern):
            # Words may be on two lines.
            text = " ".join(text.split()) if words not in text else text
            assert why and words in text, f"{where} has no '{words}': LEFT need not name it"
            text = text.replace(words, "", 1)
    return text


def complaints(text, where="x"):
    """Lines about words that are not to be in a text."""
    # In a patch: the cover letter's own words, without the list of patches.
    text = (
        re.split(r"^[^\n]+ \(\d+\):\n(?=  \S)", text.partition("\n\n")[2], maxsplit=1, flags=re.M)[0]
        if where.endswith(".patch")
        else prose(text)
    )
    text = " ".join(text.split())
    return [
        f"{where}: '{text[max(0, found.start() - 30) : found.end() + 30]}': {instead}"
        for pattern, instead in WORDS.items()
        for found in re.finditer(pattern, text)
    ]


def help_texts(parser):
    """{command: its -h} of a parser and of all parsers below it."""
    found = {parser.prog: parser.format_help()}
    for action in parser._actions:  # pylint: disable=protected-access
        if isinstance(action, argparse._SubParsersAction):  # pylint: disable=protected-access
            for below in action.choices.values():
                found.update(help_texts(below))
    return found


def test_texts_are_in_plain_english():
    paths_ = sorted({path for pattern in TEXTS for path in paths.ROOT.glob(pattern)})
    assert len(paths_) > 15
    wrong = []
    for path in paths_:
        where = str(path.relative_to(paths.ROOT))
        wrong += complaints(left(where, path.read_text(encoding="utf-8")), where)
    assert wrong == []


def messages(root):
    """{path below `root`: message} of all patches but cover letters."""
    return {
        str(path.relative_to(root)): message(path.read_text(encoding="utf-8"))
        for path in sorted(root.glob("patches/**/*.patch"))
        if not path.name.startswith("0000-")
    }


def test_messages_of_patches_are_in_plain_english():
    texts_ = messages(paths.ROOT)
    assert len(texts_) > 100 and all(texts_.values())
    assert [
        line for where, text in texts_.items() for line in complaints(left(where, text), where.replace(".patch", ""))
    ] == []


def test_negative_control_the_message_of_a_patch(tmp_path):
    text = "From 0\nSubject: [PATCH] x\n\nAges those\nwho fault.\n---\n x | 1 +\n+/* Who waits */\n"
    for name, words in (
        ("v5.10/0001-a", text),
        ("mutants/v5.10/b", "diff --git a/x b/x\n+/* who */\n\n+who\n"),
        ("instruments/v5.10/c", "For those\nwho test.\n\nIt waits.\n\ndiff --git a/x b/x\n+/* who */\n"),
        ("v5.10/0000-cover-letter", text),
    ):
        (tmp_path / "patches" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "patches" / f"{name}.patch").write_text(words, encoding="utf-8")
    assert messages(tmp_path) == {
        "patches/v5.10/0001-a.patch": "Ages those\nwho fault.\n",
        "patches/mutants/v5.10/b.patch": "",
        "patches/instruments/v5.10/c.patch": "For those\nwho test.\n\nIt waits.\n\n",
    }
    assert [len(complaints(text)) for text in messages(tmp_path).values()] == [1, 0, 1]


def test_negative_control_words_that_are_left():
    where = "patches/instruments/v5.10/delays.patch"
    assert complaints(left(where, "Those who\nunmap, and who waits"))[0].startswith("x: ', and who waits'")
    assert len(complaints(left(where, "Those who\nunmap, and those who meet there"))) == 1
    assert not complaints(left(where, "Those who unmap"))
    with pytest.raises(AssertionError, match="LEFT need not name it"):
        left(where, "Those that unmap")


def test_help_is_in_plain_english():
    texts_ = help_texts(cli.parser())
    assert len(texts_) > 10
    assert [line for where, text in texts_.items() for line in complaints(text, where)] == []


@pytest.mark.parametrize(
    "text",
    [
        "Who holds it lets it go.",
        "for\nwho ages",
        "a pass beside\nidle vCPUs",
        "it lets go of the lock",
        "it goes without",
        "it lived on",
        "the like of it",
        "seed 1's machine",
        "the letter says",
        "see the rooms",
        "its twin",
        "series by base",
        "time by that of 1 vCPU",
    ],
)
def test_negative_control_words_that_stop_a_reader(text):
    assert complaints(text)


@pytest.mark.parametrize(
    "text",
    [
        "people who run hosts",
        "the cover letter",
        "random seed 1",
        "`--case seed 1`",
        "    who\n",
        "room for two",
        "divided by base's time",
    ],
)
def test_words_that_are_plain(text):
    assert complaints(text) == []


def anchors(text):
    """The anchors of a Markdown text's headings, as GitHub and GitLab make them."""
    heads = re.findall(r"^#+ +(.*?) *$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def dead_links(path, text):
    """The targets of relative links of the Markdown file `path` that are not there: a file, or a heading in it."""
    found = []
    code = re.sub(r"^(?: {4}|\t).*$|`[^`\n]*`", "", text, flags=re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", code):
        name, _, anchor = target.partition("#")
        if re.match(r"\w+:", target):
            continue
        file = path.parent / name
        if (
            name
            and not file.exists()
            or anchor
            and anchor not in anchors(file.read_text(encoding="utf-8") if name else text)
        ):
            found.append(target)
    return found


def markdown(root):
    """The *.md below `root`, but for what is built: other processes make and remove files there meanwhile."""
    found = []
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if name not in ("out", ".git", "target")]
        found += [Path(folder, name) for name in names if name.endswith(".md")]
    return found


def test_markdown_of_what_is_built_is_not_looked_for(tmp_path):
    for name in ("a.md", "b/a.md", "out/a.md", "b/target/a.md", "b/a.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    assert {str(path.relative_to(tmp_path)) for path in markdown(tmp_path)} == {"a.md", "b/a.md"}


def test_links_lead_somewhere():
    files = markdown(paths.ROOT)
    assert len(files) > 15
    assert {
        str(path.relative_to(paths.ROOT)): dead
        for path in files
        if (dead := dead_links(path, path.read_text(encoding="utf-8")))
    } == {}


def test_negative_control_a_dead_link(tmp_path):
    path = tmp_path / "a.md"
    (tmp_path / "b.md").write_text("## What `it` is, and why\n", encoding="utf-8")
    text = (
        "# One\n[a](#one) [b](b.md#what-it-is-and-why) [c](https://x.y/z) `[d](gone.md)`\n"
        "[e](gone.md) [f](b.md#gone) [g](#gone)\n"
    )
    assert dead_links(path, text) == ["gone.md", "b.md#gone", "#gone"]
