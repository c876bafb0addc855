"""Draw the paper's figures and ours, light and dark, as SVG and PNG: `python -m studies.figures OUT [NAME…]`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..command import Target, console, run
from . import DRAWINGS, draw

ABOUT = "All of them, or some: " + "; ".join(f"{name}, {one.summary}" for name, one in DRAWINGS.items()) + "."


def main(out: Target, names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help=ABOUT)] = None) -> None:
    """Draw the paper's figures, light and dark, as SVG and PNG."""
    for name in names or DRAWINGS:
        for path in draw(name, out):
            console.print(str(path))


if __name__ == "__main__":
    run(main)
