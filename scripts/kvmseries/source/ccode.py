"""Definitions in C, as the kernel's files have them: by name, in a text."""

from __future__ import annotations

import re


def find(text: str, kind: str, name: str) -> re.Match[str] | None:
    """The match of the first definition of `name` in `text`, whole lines; None if there is none.

    kind: "define", "enum", "struct", "typedef", "variable" (a struct with its initial values), "function", or "head" for a
    function's lines before its body.
    """
    function = rf"^(?:[a-z][^;{{}}()#]*[\s*])?{name}\((?:[^;{{}}])*\)\n"
    pattern = {
        "variable": rf"^\w[^\n(]*\b{name} = \{{\n(?:.*\n)*?\}};\n",
        "define": rf"^#define {name}\b(?:.*\\\n)*.*\n",
        "typedef": rf"^typedef [^;]*\b{name}\b[^;]*;\n",
        "function": rf"{function}\{{\n(?:.*\n)*?\}}\n",
        "head": rf"{function}(?=\{{\n)",
    }.get(kind, rf"^{kind} {name} \{{\n(?:.*\n)*?\}};\n")
    return re.search(pattern, text, re.M)
