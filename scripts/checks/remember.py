"""What checks have in common is done once and remembered; of a check that is run again nothing is."""

import functools

# (memory, arguments) of what the check that runs has done, and others will use.
_MADE = []


def remembered(function):
    """A function of hashable arguments whose results are remembered, until forget()."""
    memory = {}

    @functools.wraps(function)
    def known(*arguments):
        if arguments not in memory:
            memory[arguments] = function(*arguments)
            _MADE.append((memory, arguments))
        return memory[arguments]

    return known


def begin():
    """A check begins."""
    _MADE.clear()


def forget():
    """The check that began last is run again: what it has done is to be done again."""
    for memory, arguments in _MADE:
        memory.pop(arguments, None)
    begin()
