"""Programs of this folder: options by Typer, mistakes of users in words, a bar for long work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from liespline.lab.screen import Screen, clear_messages, ended_in_order

Report = Callable[[str, int, int], None]
Target = Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write.", show_default=False)]
console = Screen()


def run(command: Callable[..., None]) -> None:
    """Call a function with the arguments of the command line."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(command)
    with ended_in_order(), clear_messages():
        app()


@contextmanager
def progress_bar() -> Iterator[Report]:
    """One bar per kind of work, moved by `report(what, done, total)`."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bars:
        known: dict[str, TaskID] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in known:
                known[what] = bars.add_task(what, total=total)
            bars.update(known[what], completed=done, total=total)

        yield report
