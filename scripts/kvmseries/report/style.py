"""Colours and CSS of the report, for light, dark and paper.

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
    "write": ("#c8500a", "#e8833f"),
    "read": ("#5fb4e5", "#8fd0f7"),
    "all": ("#848d97", "#8b95a0"),
    "kernel-base": ("#555f6a", "#b3bcc6"),
    "kernel-series": ("#0072b2", "#4fb0ea"),
    "kernel-1": ("#cc5c00", "#f0954a"),
    "kernel-2": ("#008f6b", "#35c79c"),
    "kernel-3": ("#b0588c", "#dd94bd"),
    "phase-setup": ("#8a6a45", "#b8946a"),
    "phase-populate": ("#9aa2ab", "#737d88"),
    "phase-enable": ("#d8c21f", "#f0e04a"),
    "phase-dirty": ("#d55e00", "#f08236"),
    "phase-get": ("#56b4e9", "#8fd2fb"),
    "phase-clear": ("#00609a", "#3c9fdd"),
    "phase-disable": ("#cc79a7", "#df9bc1"),
    "phase-exit": ("#009e73", "#22bd90"),
}


def light(role: str) -> str:
    """The light colour of a role, "#rrggbb"."""
    return PALETTE[role][0]


def _variables(number: int) -> str:
    return "".join(f"--{role}:{colours[number]};" for role, colours in PALETTE.items())


STYLE = (
    ":root{color-scheme:light dark;" + _variables(0) + "}\n"
    "@media screen and (prefers-color-scheme:dark){:root{"
    + _variables(1)
    + "}}\n"
    + """
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.55 system-ui,-apple-system,
 "Segoe UI",Roboto,"Noto Sans","Liberation Sans",Arial,sans-serif}
main{max-width:70rem;margin:0 auto;padding:2.2rem 1.25rem 4rem}
h1{font-size:1.75rem;line-height:1.25;margin:0 0 .4rem}
h2{font-size:1.25rem;line-height:1.3;margin:3rem 0 .6rem;padding-top:1.2rem;
 border-top:1px solid var(--line);overflow-wrap:anywhere}
h3{font-size:1rem;margin:2rem 0 .5rem}
p{margin:.5rem 0;max-width:48rem}
h4{font-size:.9rem;margin:.6rem 0 .2rem}
.lead,.note,figcaption,.empty{color:var(--muted)}
.verdict{font-size:1.15rem;font-weight:600;max-width:none}
.sides{display:grid;grid-template-columns:1fr;gap:0 2rem}
.glance{border-left:4px solid var(--line);padding-left:1rem;margin:1.6rem 0}
.glance h3{margin:0 0 .3rem}
.note,figcaption{font-size:.85rem;max-width:48rem;margin:.5rem 0}
a{color:var(--link)}
ul{padding-left:1.2rem;margin:.5rem 0}
.notice{background:var(--notice);border-left:4px solid var(--notice-line);padding:.6rem .9rem;
 margin:1rem 0;max-width:48rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.25rem;margin:.8rem 0;
 font-size:.9rem}
dt{color:var(--muted)}
dd{margin:0;overflow-wrap:anywhere}
code,pre,.code{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;
 font-size:.85em}
pre{background:var(--panel);border:1px solid var(--line);border-radius:4px;padding:.75rem .9rem;
 overflow-x:auto;margin:.6rem 0}
.scroll{overflow-x:auto;margin:.8rem 0}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums lining-nums}
th,td{padding:.22rem .55rem;text-align:right;vertical-align:baseline;white-space:nowrap}
thead th{font-weight:600;vertical-align:bottom;white-space:normal;line-height:1.3}
thead th.wrap{min-width:9rem}
thead th.label{text-align:left}
thead th.pair{text-align:center}
.plain thead th{white-space:nowrap}
thead th.head{text-align:center;border-bottom:1px solid var(--line)}
thead tr:last-child th{border-bottom:1.5px solid var(--ink)}
tbody th{font-weight:400;text-align:left}
tbody th.block{text-align:right;font-weight:600;white-space:nowrap}
tbody th[scope=row]{position:sticky;left:0;background:var(--paper)}
tbody{border-bottom:1px solid var(--line)}
tbody:last-child{border-bottom:1.5px solid var(--ink)}
tr.ratio td,tr.ratio th[scope=row]{background:var(--panel);font-weight:600}
td.spread{color:var(--muted);text-align:left;padding-left:0;font-size:.92em}
tr.ratio td.spread{font-weight:400}
.first{border-left:1px solid var(--line)}
table.plain td,table.plain th{text-align:left}
table.plain td.number{text-align:right}
.prose td:not(.number){white-space:normal;min-width:6rem}
figure{margin:1.6rem 0}
figure svg{display:block;width:100%;height:auto}
details{margin:.8rem 0}
summary{cursor:pointer;padding:.3rem 0}
footer{margin-top:3rem;color:var(--muted);font-size:.85rem}
@media (min-width:48rem){dl.facts{grid-template-columns:max-content 1fr max-content 1fr}
 .sides{grid-template-columns:1fr 1fr}}
@media (max-width:40rem){main{padding:1.2rem .8rem 3rem}
 figure{overflow-x:auto}figure svg{min-width:40rem}}
@media print{@page{margin:14mm}body{font-size:10pt}main{max-width:none;padding:0}
 table{font-size:7.5pt}th,td{padding:.15rem .35rem}.scroll{overflow:visible}
 pre{white-space:pre-wrap;overflow-wrap:anywhere}h2,h3{break-after:avoid}
 figure,tbody,tr,.notice{break-inside:avoid}.raw{display:none}}
"""
)
