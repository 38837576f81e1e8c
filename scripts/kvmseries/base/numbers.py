"""Lists of numbers of the command line."""

import re

from .errors import Usage


def numbers(option: str, text: str, low: int, high: int, else_: str = "") -> tuple[int, ...]:
    """Different whole numbers from `low` to `high`, in the order of `text`, such as "1,2,4"; Usage if it is none.
    else_: what a number out of range is answered with."""
    if not re.fullmatch(r"\d{1,9}(,\d{1,9})*", text, re.A):
        raise Usage(f"{option} '{text}' is not a list of numbers such as 1,2,4")
    found = tuple(int(word) for word in text.split(","))
    for number in found:
        if not low <= number <= high:
            raise Usage(f"{option} {number}: {else_ or f'from {low} to {high}'}")
    if len(set(found)) != len(found):
        raise Usage(f"{option} {text} names a number twice")
    return found


def vcpus(text: str) -> tuple[int, ...]:
    """Numbers of vCPUs, the value of --vcpus."""
    return numbers("--vcpus", text, 1, 64, "a guest has 1 to 64 vCPUs")
