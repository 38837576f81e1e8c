"""Texts are made from data: each file of Documentation/texts is a Jinja template of the text with the same path.

Of a patch and of a cover letter, which `export` writes, it is the message; a patch is named without its number.  A template
may call

  fig(of, metric, kernel, vcpus=None, form="x.0", by=, per=, over=, op=, published=, compare=, part=, plain=, width=, ...)
      a figure of the results `of`, a short name of figures.yaml; metric: "NAME", "NAME/ITERATION", or "NAME+NAME/ITERATION", a
      sum; further words are keys of a run.
      form       UNIT.DIGITS, see query.unit()
      by         what it is divided by: a kernel, a number of vCPUs, or keys;  per: what both are counted by, a metric
      over, op   {key: values}, and min, max or range of what comes of them
      op="rounds"  the least and the greatest of its rounds: for a time that does not repeat, whose median is refused
      published  a column of published.yaml that its growth, or with compare="page" its time a page, is divided by
      part       0 or 1: one end of a range;  plain: no comma in thousands;  width: of a column that is aligned by blanks
  notice(width=)   a paragraph that says which of the quoted results are old, or nothing

and set `slower`: how the paragraphs begin that say what gets slower; tables=false: its tables may have other numbers.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2

from ..base import files as writing, paths
from ..base.errors import Fail
from ..data import schema
from . import query, slower
from .query import Files, Query

FILE = paths.ROOT / "Documentation" / "figures.yaml"
FORMAT = paths.ROOT / "Documentation" / "figures.schema.yaml"
FOLDER = paths.ROOT / "Documentation" / "texts"
# Around a figure while tables are looked at, and for notice(): no text has these.
_BEGIN, _END, _NOTE = "\ue000", "\ue001", "\ue002"
_NUMBER = r"[-+]?(?:\d[\d,]*\d|\d)(?:\.\d+)?"
_WEAK = (
    (
        "unknown",
        "does not record which version of the source it measured",
        "do not record which version of the source they measured",
    ),
    ("old", "is of an older version of the source", "are of an older version of the source"),
    ("rounds", f"has fewer than {query.ROUNDS} rounds", f"have fewer than {query.ROUNDS} rounds"),
)

# figures.yaml, see load().
Data = dict[str, Any]


def load(path: Path | None = None) -> Data:
    """The entries of figures.yaml: {"results", "worse", "pictures"}.  Raises Fail with one line."""
    return {"worse": [], "pictures": [], **schema.read(path or FILE, FORMAT)}


@dataclass
class Text:
    """A text that was made.  where: its path; made: all of it; there: what stands there; weak: the results that it
    quotes, by their short names, with reasons not to quote them as they are; steps: the upto: kernels of its figures; slower:
    beginnings of paragraphs; loose: lines of its tables with numbers that are no figures."""

    where: str
    made: str = ""
    there: str = ""
    steps: set[str] = field(default_factory=set)
    weak: dict[str, set[str]] = field(default_factory=dict)
    slower: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    words: str = ""  # what the template makes, without its figures

    @property
    def kernels(self) -> dict[str, list[str]]:
        """{short name of results that it quotes: the kernels that are held against base there}: the series, and the
        upto: kernels of which any figure says something."""
        return {name: ["series", *sorted(self.steps)] for name in sorted(self.weak)}

    def write(self) -> bool:
        """Write it, whole or not at all; whether it has changed."""
        if self.made != self.there:
            writing.write(paths.ROOT / self.where, self.made)
        return self.made != self.there


def names() -> list[str]:
    """The templates, as their paths in FOLDER."""
    return sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.in"))


def make(files: Files, name: str) -> Text:
    """The Text of the template `name`.  Raises Fail with one line."""
    text = Text(_place(name))
    try:
        text.there = (paths.ROOT / text.where).read_text(encoding="utf-8")
    except OSError as error:
        raise Fail(f"cannot read {text.where}: {error.strerror}") from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )

    def fig(of: str, metric: str, kernel: str, vcpus: int | None = None, **more: Any) -> str:
        return _figure(files, text, of, metric, kernel, vcpus, more)

    try:
        module = environment.get_template(name).make_module(
            {"fig": fig, "notice": lambda width=0: f"{_NOTE}{width}{_NOTE}"}
        )
    except (jinja2.TemplateError, TypeError) as error:
        where = f"line {error.lineno}: " if isinstance(error, jinja2.TemplateSyntaxError) else ""
        raise Fail(f"Documentation/texts/{name}: {where}{' '.join(str(error).split())}") from None
    except Fail as error:
        raise Fail(f"Documentation/texts/{name}: {error}") from None
    # What is quoted is known when all is made.
    marked = re.sub(f"{_NOTE}(.*){_NOTE}", lambda found: _notice(text, int(found[1])), str(module))
    text.words = re.sub(f"{_BEGIN}.*?{_END}", "", marked)
    text.slower = list(getattr(module, "slower", ()))
    if getattr(module, "tables", True):
        text.loose = list(_loose(marked))
    text.made = _around(text.where, text.there, re.sub(f"[{_BEGIN}{_END}]", "", marked))
    return text


def _place(name: str) -> str:
    """The path of the text of a template: a patch is found by its name behind its number."""
    where = Path(name.removesuffix(".in"))
    if where.suffix != ".patch" or where.name.startswith("0000-"):
        return str(where)
    found = sorted((paths.ROOT / where.parent).glob(f"[0-9]*-{where.name}"))
    if len(found) != 1:
        raise Fail(f"Documentation/texts/{name}: {where.parent} has {len(found)} patches *-{where.name}, not one")
    return str(found[0].relative_to(paths.ROOT))


def _around(where: str, there: str, made: str) -> str:
    """`made`, of a patch or a cover letter with what `export` writes around it: headers, and the list of patches or the diff."""
    if not where.endswith(".patch"):
        return made
    begin = there.index("\n\n") + 2
    end = re.compile(r"^---$|^\S.* \(\d+\):$", re.M).search(there, begin)
    return there[:begin] + made + (there[end.start() :] if end else "")


def _figure(
    files: Files, text: Text, of: str, metric: str, kernel: str, vcpus: int | None, more: dict[str, Any]
) -> str:
    part, plain, width = (more.pop(key, None) for key in ("part", "plain", "width"))
    names, _, iteration = metric.partition("/")
    own = {
        key: more.pop(key) for key in list(more) if key in Query.__annotations__ and key not in ("of", "metric", "keys")
    }
    keys = {"kernel": kernel, "iteration": int(iteration) if iteration else None, **more}
    asked = Query(of, names, keys if vcpus is None else {**keys, "vcpus": vcpus}, **own)
    numbers, used = query.compute(files, asked)
    text.steps |= {kernel} if kernel.startswith("upto:") else set()
    for one in used:
        text.weak.setdefault(one.name, set()).update(query.shortcomings(files, one))
    words = list(dict.fromkeys(query.write(number, asked.form) for number in numbers))
    found = words[min(part, len(words) - 1)] if part is not None else " to ".join(words)
    if plain:
        found = found.replace(",", "")
    # Two blanks stay between columns.
    blanks = " " * max(width - len(found), 2) if width else ""
    return f"{blanks}{_BEGIN}{found}{_END}"


def _notice(text: Text, width: int) -> str:
    """The paragraph about results that are old, or were measured too seldom, with the empty line behind it; "" if none is."""
    counts = {reason: sum(reason in reasons for reasons in text.weak.values()) for reason, _, _ in _WEAK}
    words = [
        f"{counts[reason]} {one if counts[reason] == 1 else more}" for reason, one, more in _WEAK if counts[reason]
    ]
    if not words:
        return ""
    of = f"{len(text.weak)} results that are" if len(text.weak) > 1 else "1 result that is"
    found = f"Of the {of} quoted here, {' and '.join(words)}."
    return ("\n".join(textwrap.wrap(found, width)) if width else found) + "\n\n"


def _loose(marked: str) -> Iterator[str]:
    """Lines of tables with a number that is no figure: behind a figure, or in a table without any but its head."""
    for table in re.finditer(r"(?:^\|.*\|\s*\n|^  \S.*?\S {2,}.*[\d\ue001]\s*\n)+", marked, re.M):
        lines = table[0].splitlines()
        for line in lines:
            label, begin, rest = line.partition(_BEGIN)
            if begin and re.search(_NUMBER, re.sub(f"{_BEGIN}?[^{_BEGIN}]*{_END}", "", begin + rest)):
                yield " ".join(re.sub(f"[{_BEGIN}{_END}]", "", line).split())


def problems(data: Data, files: Files, text: Text) -> list[str]:
    """Lines about what is wrong with a Text: it differs, a table has another number, what got worse is not said."""
    found = [f"{text.where}: a table has a number that is no figure: '{line}'" for line in text.loose]
    if text.made != text.there:
        lines = zip(text.made.splitlines(), text.there.splitlines())
        first = next(
            (f"it says '{there}', the results say '{made}'" for made, there in lines if made != there), "its end"
        )
        found.append(f"{text.where} is not what Documentation/texts and the results make: {first}")
    return found + slower.unsaid(data, files, text)


def old(data: Data, files: Files, made: list[Text]) -> list[str]:
    """Lines: the commands that measure again what texts quote and is old, or of too few rounds, and how long they take."""
    weak: dict[str, set[str]] = {}
    for text in made:
        for name, reasons in text.weak.items():
            weak.setdefault(name, set()).update(reasons)
    lines, total = [], 0
    for name, entry in data["results"].items():
        if weak.get(name):
            minutes = round(files.data(name)["made"]["seconds"] / 60)
            total += minutes
            lines.append(f"# {entry['file']}: {', '.join(sorted(weak[name]))}; {minutes} min")
            lines.append(f"{entry['command']} --json Documentation/results/{entry['file']}")
    if not lines:
        return ["Nothing is old, and all was measured in enough rounds."]
    pictures = [f"scripts/series report --table none {entry}" for entry in data["pictures"]]
    return [*lines, *pictures, "scripts/series report --texts", f"# {total} minutes in all"]
