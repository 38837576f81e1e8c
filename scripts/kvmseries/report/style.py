"""Colours of the report, for light, dark and paper.

The colours of the plots are of Okabe and Ito's palette, made lighter or darker where it would not
stand out from the background; they can be told apart by colour-blind readers, and the parts of a
stack differ in lightness too.
"""

from __future__ import annotations

# Role -> (light, dark).  The light ones are unique: plots.py draws with them, and replaces them
# in the SVG by var(--role).
PALETTE = {
    "paper": ("#ffffff", "#16191d"),
    "panel": ("#f5f6f8", "#1f242a"),
    "ink": ("#1b2026", "#e4e7ea"),
    "muted": ("#59636e", "#9aa5b1"),
    "line": ("#d4d9de", "#39414a"),
    "link": ("#0b5cad", "#79b8f3"),
    "notice": ("#fdf3dc", "#33290f"),
    "notice-line": ("#b97a00", "#d69a2d"),
    "kernel-base": ("#555f6a", "#b3bcc6"),
    "kernel-series": ("#0072b2", "#4fb0ea"),
    "kernel-1": ("#cc5c00", "#f0954a"),
    "kernel-2": ("#008f6b", "#35c79c"),
    "kernel-3": ("#b0588c", "#dd94bd"),
}


def light(role: str) -> str:
    """The light colour of a role, "#rrggbb"."""
    return PALETTE[role][0]


def _variables(number: int) -> str:
    return "".join(f"--{role}:{colours[number]};" for role, colours in PALETTE.items())


def variables() -> str:
    """CSS variables of all roles, for light and dark; templates/style.css has the rest."""
    return (
        f":root{{color-scheme:light dark;{_variables(0)}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{_variables(1)}}}}}\n"
    )
