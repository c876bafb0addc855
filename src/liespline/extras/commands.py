"""`liespline data synthesize` and `liespline figures`, put beside the commands of the lab."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..lab.cli.data import progress_bar
from ..lab.screen import Screen
from ..lab.settings import one_of
from .figures_commands import figures_app

console = Screen()


def synthesize(
    task: Annotated[str, typer.Argument(metavar="TASK", show_default=False)],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write.", show_default=False)],
    seed: Annotated[int, typer.Option(help="Seed of the drawing.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes that draw.")] = 1,
    count: Annotated[
        int | None,
        typer.Option(help="pcam: training patches (a quarter as many again to validate, and to test); celeba: people."),
    ] = None,
) -> None:
    """Draw synthetic tissue (pcam) or faces (celeba) in the official files' format."""
    one_of("task to synthesize", task, ["pcam", "celeba"])
    from .synthetic import faces, tissue

    with progress_bar() as report:
        if task == "pcam":
            sizes = {} if count is None else {"train": count, "valid": count // 4, "test": count // 4}
            tissue.synthesize(out, **sizes, seed=seed, jobs=jobs, progress=report)
        else:
            sizes = {} if count is None else {"identities": count}
            faces.synthesize(out, **sizes, seed=seed, jobs=jobs, progress=report)
    console.print(f"{out}: synthetic {task} files")


def register(app: typer.Typer, data: typer.Typer) -> None:
    """Add these commands to the `liespline` command."""
    app.add_typer(figures_app, name="figures")
    data.command()(synthesize)
