#!/usr/bin/env python3
"""Draws docs/concepts.svg: `python3 scripts/concepts.py > docs/concepts.svg`."""

WIDTH, HEIGHT = 960, 420
BLUE, ORANGE, GREEN, GREY = "#dbe9f6", "#fbe3d2", "#dcefdc", "#eeeeee"

# x, y, width, height, fill, title, lines below it
BOXES = [
    (20, 150, 150, 110, BLUE, "scenario", ["objects, tasks, steps", "as a TOML file"]),
    (250, 20, 170, 76, GREY, "machine", ["CPUs, caches, costs"]),
    (250, 120, 170, 56, ORANGE, "lab", ["simulated tasks"]),
    (250, 190, 170, 56, ORANGE, "guest", ["a kernel in QEMU"]),
    (250, 260, 170, 56, ORANGE, "host", ["this machine"]),
    (250, 340, 170, 60, GREY, "scheduler", ["who runs next, and where"]),
    (500, 165, 140, 80, GREEN, "records", ["switch, wakeup,", "migration, ..."]),
    (720, 40, 210, 76, GREEN, "figures", ["shares, waits, work,", "misses; claims judge them"]),
    (720, 165, 210, 80, BLUE, "law", ["bounds for figures of a", "scenario: holds, broken, ..."]),
    (720, 295, 210, 80, BLUE, "diagnosis", ["verdict: who starves, who", "ran instead, and why"]),
]

# From and to.
ARROWS = [
    ((170, 205), (250, 148)),
    ((170, 205), (250, 218)),
    ((170, 205), (250, 288)),
    ((335, 96), (335, 120)),
    ((335, 340), (335, 316)),
    ((420, 148), (500, 205)),
    ((420, 218), (500, 205)),
    ((420, 288), (500, 205)),
    ((640, 205), (720, 78)),
    ((825, 116), (825, 165)),
    ((640, 205), (720, 335)),
]


def box(x, y, width, height, fill, title, lines):
    middle = x + width / 2
    top = y + height / 2 - 9 * len(lines) + 5
    yield f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" stroke="#555"/>'
    yield f'<text x="{middle}" y="{top:g}" class="title">{title}</text>'
    for at, line in enumerate(lines, 1):
        yield f'<text x="{middle}" y="{top + 18 * at:g}">{line}</text>'


def arrow(start, end):
    (x1, y1), (x2, y2) = start, end
    yield f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#555" marker-end="url(#head)"/>'


print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">')
print("<title>A scenario is played in a world, on a machine and under a scheduler; the world gives")
print("records, of which figures, verdicts of laws and diagnoses are made</title>")
print("<style>text { font: 14px sans-serif; text-anchor: middle; fill: #222 }")
print(".title { font-weight: bold; font-size: 16px }</style>")
print('<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8"')
print('orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>')
print(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>')
print('<rect x="235" y="108" width="200" height="220" rx="8" fill="none" stroke="#999" stroke-dasharray="5 4"/>')
print('<text x="228" y="324" style="text-anchor: end">world</text>')
for drawn in [arrow(*ends) for ends in ARROWS] + [box(*parts) for parts in BOXES]:
    print("\n".join(drawn))
print("</svg>")
