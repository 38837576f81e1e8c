"""Links of Markdown files lead somewhere: to a file, or to a heading in it."""

import os
import re
from pathlib import Path

from kvmseries.base import paths


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
        there = file.exists() if name else True
        if not there or anchor and anchor not in anchors(file.read_text(encoding="utf-8") if name else text):
            found.append(target)
    return found


def markdown(root):
    """The *.md below `root`, but for what is built: other processes make and remove files there meanwhile."""
    found = []
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if name not in ("out", ".git", "target")]
        found += [Path(folder, name) for name in names if name.endswith(".md")]
    return found


def test_links_lead_somewhere():
    files = markdown(paths.ROOT)
    assert len(files) > 15
    found = {str(path.relative_to(paths.ROOT)): dead_links(path, path.read_text(encoding="utf-8")) for path in files}
    assert {name: dead for name, dead in found.items() if dead} == {}


def test_negative_control_a_dead_link(tmp_path):
    path = tmp_path / "a.md"
    (tmp_path / "b.md").write_text("## What `it` is, and why\n", encoding="utf-8")
    text = (
        "# One\n[a](#one) [b](b.md#what-it-is-and-why) [c](https://x.y/z) `[d](gone.md)`\n"
        "[e](gone.md) [f](b.md#gone) [g](#gone)\n"
    )
    assert dead_links(path, text) == ["gone.md", "b.md#gone", "#gone"]
