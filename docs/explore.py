"""One offline page to play with kernels on SE(2), R² ⋊ R⁺ and S²: `python docs/explore.py OUT.html`.

Its mathematics is tested against the library's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from liespline import Sphere, repulsion, uniform

_HERE = Path(__file__).with_suffix("")
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
    parts = {"/*SPLINE*/": "spline.js", "/*DRAW*/": "draw.js", "/*PAGE*/": "page.js"}
    for mark, name in parts.items():
        text = text.replace(mark, (_HERE / name).read_text(encoding="utf-8"))
    return text.replace("/*DATA*/", json.dumps(data, separators=(",", ":")))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
