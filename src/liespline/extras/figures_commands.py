"""`liespline figures`: the paper's figures."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from ..lab.screen import Screen
from ..lab.settings import ConfigError

figures_app = typer.Typer(no_args_is_help=True, help="Draw the paper's figures, light and dark, as SVG and PNG.")
console = Screen()

Target = Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write.", show_default=False)]


def drawings() -> ModuleType:
    """The figures, for which Matplotlib is needed."""
    try:
        from . import figures
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise ConfigError("figures are drawn with Matplotlib: pip install 'liespline[figures]'") from None
    return figures


@figures_app.command("all")
def draw_all(out: Target) -> None:
    """Draw every figure that needs no run."""
    for name in drawings().DRAWINGS:
        draw_one(name, out)


@figures_app.command("one")
def draw_one(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `liespline figures names` lists.")], out: Target
) -> None:
    """Draw a single figure."""
    for path in drawings().draw(name, out):
        console.print(str(path))


@figures_app.command()
def names() -> None:
    """List the figures."""
    for name, drawing in drawings().DRAWINGS.items():
        console.print(f"{name:9} {drawing.summary}")
