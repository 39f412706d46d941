#!/usr/bin/env python3
"""Draws the plots of this directory from figures.toml: horizontal bars, readable on dark and on light ground, the same with every font.

    docs/benchmarks/plot.py            writes the plots
    docs/benchmarks/plot.py --check    fails if one is not what would be written
"""

import pathlib
import sys
import tomllib
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
# In pixels: a line, the names on the left, the longest bar, the room for figures, a character.
LINE, NAMES, BARS, FIGURES, CHARACTER = 26, 260, 360, 90, 7
STYLE = """
  svg { --ground: #ffffff; --text: #1f2328; --edge: #d1d9e0; --ours: #0969da; --theirs: #8c959f }
  @media (prefers-color-scheme: dark) {
    svg { --ground: #0d1117; --text: #e6edf3; --edge: #3d444d; --ours: #4493f8; --theirs: #656c76 }
  }
  text { font: 13px system-ui, sans-serif; fill: var(--text) }
  .title { font-weight: bold }
  .ground { fill: var(--ground); stroke: var(--edge) }
  .ours { fill: var(--ours) }
  .theirs { fill: var(--theirs) }
"""


def written(text, x, y, style=""):
    """A text of a width that does not depend on the font."""
    size = len(text) * CHARACTER
    return f'<text{style} x="{x}" y="{y}" textLength="{size}" lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'


def draw(plot):
    """An SVG of one plot."""
    width, height = NAMES + BARS + FIGURES, LINE * (len(plot["bars"]) + 2)
    longest = max(bar[1] for bar in plot["bars"])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
        written(f"{plot['title']} ({plot['unit']})", 16, LINE, ' class="title"'),
    ]
    for line, (name, value, *ours) in enumerate(plot["bars"]):
        y = LINE * (line + 2)
        length = round(BARS * value / longest, 1)
        parts.append(written(name, NAMES - 10, y, ' text-anchor="end"'))
        parts.append(f'<rect class="{"ours" if ours else "theirs"}" x="{NAMES}" y="{y - 13}" width="{length:g}" height="17"/>')
        parts.append(written(f"{value:g}", NAMES + length + 6, y))
    return "\n".join([*parts, "</svg>", ""])


def main():
    plots = tomllib.loads((HERE / "figures.toml").read_text())["plot"]
    for plot in plots:
        file, drawn = HERE / f"{plot['file']}.svg", draw(plot)
        if "--check" not in sys.argv:
            file.write_text(drawn)
        elif not file.exists() or file.read_text() != drawn:
            sys.exit(f"{file} is not what figures.toml gives: run docs/benchmarks/plot.py")


main()
