"""`liespline figures` and `liespline explore`: pictures, and a page to play with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..screen import Screen

figures_app = typer.Typer(no_args_is_help=True, help="Draw the paper's figures, light and dark, as SVG and PNG.")
console = Screen()

Target = Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write.", show_default=False)]


@figures_app.command("all")
def draw_all(out: Target) -> None:
    """Draw every figure that needs no run."""
    from ..figures import DRAWINGS

    for name in DRAWINGS:
        _draw(name, out)


@figures_app.command("one")
def draw_one(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `liespline figures names` lists.")], out: Target
) -> None:
    """Draw a single figure."""
    _draw(name, out)


@figures_app.command()
def names() -> None:
    """List the figures."""
    from ..figures import DRAWINGS

    for name, drawing in DRAWINGS.items():
        console.print(f"{name:9} {drawing.summary}")


@figures_app.command()
def results(
    runs: Annotated[Path, typer.Argument(metavar="RUNS", help="Folder with finished runs.", show_default=False)],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write.")] = Path("figures"),
) -> None:
    """Draw the scores of all finished runs below RUNS, and write results.md: which findings of the paper hold."""
    from ..figures import draw_results
    from ..paper.results_page import write_results_page
    from ..paper.seed_averages import read_runs

    for path in draw_results(runs, out):
        console.print(str(path))
    console.print(str(write_results_page(read_runs(runs), out)))


def explore(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The page to write.")] = Path("explore.html"),
) -> None:
    """Write one offline HTML page to play with: kernels on SE(2), R²⋊R⁺ and S², with sliders."""
    from ..explore import write_page

    console.print(f"{write_page(out)}: open it in a browser; it needs no server and no network")


def register(app: typer.Typer) -> None:
    """Add these commands to the `liespline` command."""
    app.add_typer(figures_app, name="figures")
    app.command()(explore)


def _draw(name: str, out: Path) -> None:
    from ..figures import draw

    for path in draw(name, out):
        console.print(str(path))
