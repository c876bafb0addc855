"""The picture of what was found: how often each transformation is told from none, with its interval."""

from html import escape
from pathlib import Path

from ..data.files import write_text
from .findings import Findings

_ROW, _LEFT, _WIDTH = 18, 190, 400
_SEEN, _NOT, _TEXT = "#c0392b", "#2a7f8e", "#555"


def draw(found: Findings, path: Path, title: str) -> None:
    """Write the picture as SVG, which browsers show."""

    def across(told: float) -> float:
        return round(_LEFT + _WIDTH * max(0.0, 2 * told - 1), 1)

    rows = sorted(found.elements, key=lambda e: -e.told.value)
    height = _ROW * (len(rows) + 4)
    lines = [f'<text x="{_LEFT}" y="{_ROW}" font-weight="bold">{escape(title)}</text>']
    for told in (0.5, 0.75, 1.0):
        x = across(told)
        lines.append(f'<path d="M{x} {1.6 * _ROW:.0f}V{height - 1.6 * _ROW:.0f}" stroke="#bbb"/>')
        lines.append(f'<text x="{x}" y="{height - _ROW}" text-anchor="middle">{100 * told:.0f} %</text>')
    for number, element in enumerate(rows, 2):
        y, colour = number * _ROW + 6, _SEEN if element.seen else _NOT
        low, middle, high = map(across, (element.told.low, element.told.value, element.told.high))
        lines.append(f'<text x="{_LEFT - 10}" y="{y + 4}" text-anchor="end">{element.name}</text>')
        lines.append(f'<path d="M{low} {y}H{high}" stroke="{colour}" stroke-width="2"/>')
        lines.append(
            f'<circle cx="{middle}" cy="{y}" r="4" fill="{colour}"><title>{element.told.words}</title></circle>'
        )
    below = "told from the image as it is; 50 % is chance; red: seen, after Holm's correction"
    lines.append(f'<text x="{_LEFT}" y="{height - 4}">{below}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 60} {height}"'
    style = f' font-family="sans-serif" font-size="12" fill="{_TEXT}">'
    write_text(path, head + style + "\n".join(lines) + "</svg>\n")
