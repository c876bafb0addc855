"""One offline page to play with kernels on SE(2), R² ⋊ R⁺ and S²; its mathematics is tested against the library's."""

from __future__ import annotations

import json
from pathlib import Path

from ...grids import repulsion, uniform
from ...groups import Sphere
from ...lab.data.files import write_text

_HERE = Path(__file__).parent
_COUNTS = (12, 50, 200)
_QUADRATURE = 400


def page() -> str:
    """Return the page: one file, with its style, its scripts and the library's grids on the sphere inside."""
    grids = {n: uniform(Sphere(), n) if n == 12 else repulsion(Sphere(), n) for n in _COUNTS}
    quadrature = repulsion(Sphere(), _QUADRATURE)
    data = {
        "grids": {
            n: {"spacing": grid.spacing, "points": [[round(v, 6) for v in p] for p in grid.elements.tolist()]}
            for n, grid in grids.items()
        },
        "quadrature": {
            "points": [[round(v, 6) for v in p] for p in quadrature.elements.tolist()],
            "weights": [round(w, 8) for w in quadrature.weights.tolist()],
        },
    }
    text = (_HERE / "page.html").read_text(encoding="utf-8")
    parts = {"/*STYLE*/": "page.css", "/*SPLINE*/": "spline.js", "/*DRAW*/": "draw.js", "/*PAGE*/": "page.js"}
    for mark, name in parts.items():
        text = text.replace(mark, (_HERE / name).read_text(encoding="utf-8"))
    return text.replace("/*DATA*/", json.dumps(data, separators=(",", ":")))


def write_page(path: Path) -> Path:
    """Write the page; a folder gets it as explore.html."""
    target = path / "explore.html" if path.is_dir() else path
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, page())
    return target
