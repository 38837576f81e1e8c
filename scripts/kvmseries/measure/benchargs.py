"""The default arguments of a benchmark, which depend on the kernel that its program comes from:
selftests of another version number their guest modes otherwise."""

from __future__ import annotations

from ..base.errors import Usage
from ..data import benchmarks


def defaults(test: str, arch: str, kernel: str) -> dict[str, str | int | None]:
    """The options of `test` (a key of bench.yaml) for `arch` and selftests of `kernel` ("7.3.4").

    Returns a dict of option to value, None for an option without one, in the order of the command
    line: `args`, then what `since` has for this kernel or an earlier one, the latest last.
    Raises Usage for an unknown test, Fail if bench.yaml is not of its form.
    """
    known = benchmarks.load()
    if test not in known:
        raise Usage(f"unknown test '{test}': bench.yaml has {', '.join(sorted(known))}")
    entry = known[test]
    found = dict(entry["args"].get(arch, {}))
    since = {version(text): args for text, args in entry.get("since", {}).items()}
    for first in sorted(since):
        if first <= version(kernel):
            found.update(since[first].get(arch, {}))
    return found


def version(text: str) -> tuple[int, int]:
    """(major, minor) of a kernel's version, "7.3.4" or "7.3"."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)
