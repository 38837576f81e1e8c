"""The default arguments of a benchmark, which depend on the kernel that its program comes from:
selftests of another version number their guest modes otherwise."""

from __future__ import annotations

import yaml

from ..base import paths
from ..base.errors import Fail, Usage


def defaults(test: str, arch: str, kernel: str) -> dict[str, str | int | None]:
    """The options of `test` (a key of bench.yaml) for `arch` and selftests of `kernel` ("7.3.4").

    Returns a dict of option to value, None for an option without one, in the order of the command
    line: `args`, then what `since` has for this kernel or an earlier one, the latest last.
    Raises Usage for an unknown test, Fail for a version in bench.yaml that is none.
    """
    known = yaml.safe_load((paths.TESTS / "bench.yaml").read_text(encoding="utf-8"))
    if test not in known:
        raise Usage(f"unknown test '{test}': bench.yaml has {', '.join(sorted(known))}")
    entry = known[test]
    found = dict(entry["args"].get(arch, {}))
    since = {version(text, test): args for text, args in entry.get("since", {}).items()}
    for first in sorted(since):
        if first <= version(kernel, test):
            found.update(since[first].get(arch, {}))
    return found


def version(text: object, test: str) -> tuple[int, int]:
    """(major, minor) of "7.3.4" or "7.3".  YAML reads a version without quotes as a number, and
    6.10 as 6.1."""
    words = text.split(".") if isinstance(text, str) else []
    if len(words) < 2 or not all(word.isdecimal() for word in words[:2]):
        raise Fail(f'bench.yaml: {test}: {text!r} is not a kernel version in quotes, such as "7.0"')
    return int(words[0]), int(words[1])
