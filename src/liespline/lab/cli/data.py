"""`liespline data`: look at data before training, fetch and prepare official files, draw synthetic ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ..screen import Screen
from ..settings import ConfigError, one_of

data_app = typer.Typer(
    no_args_is_help=True, help="Check data before training, prepare official files, draw synthetic ones."
)
console = Screen()
Report = Callable[[str, int, int], None]

TaskArgument = Annotated[str, typer.Argument(metavar="TASK", show_default=False)]
Source = Annotated[Path, typer.Argument(metavar="SRC", help="Folder with the official files.", show_default=False)]
Target = Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write.", show_default=False)]


@data_app.command()
def check(
    task: TaskArgument,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The task's data.", show_default=False)],
    size: Annotated[str | None, typer.Option(help="As in `liespline train --size`.")] = None,
    labels: Annotated[Path | None, typer.Option(help="As in `liespline train --labels`.")] = None,
) -> None:
    """Report every problem that would stop training, file by file, and what to do about it."""
    from ..data import DataError
    from ..runs.data import look_over
    from ..tasks import find_task

    chosen = find_task(task)
    if chosen.data_help is None:
        raise ConfigError(f"task {task} brings its own data; there is nothing to check")
    config = chosen.defaults.updated(data=str(path), size=size, labels=None if labels is None else str(labels))
    if chosen.check is not None and (problems := chosen.check(path, config)):
        raise DataError(problems)
    splits, missing = {}, {}
    for name in ("train", "valid", "test"):
        try:
            splits[name] = chosen.load(config, name)
        except DataError as error:
            missing[name] = error.problems
    if not splits:
        raise DataError(list(dict.fromkeys(problem for found in missing.values() for problem in found)))
    for name, problems in missing.items():
        console.print(f"{name}: not there ({problems[0]})")
    look = look_over(config, splits)
    for name, found in look.surveys.items():
        shape, counts = "×".join(map(str, found.shape)), Counter(found.labels)
        classes = ", ".join(f"{label} {counts[label]:,}" for label in found.split.classes if label in counts)
        values = f"{found.dtype}, values {found.low:.3g} to {found.high:.3g}"
        console.print(
            f"{name}: {len(found.labels):,} of {shape}, {values}" + (f", classes {classes}" if classes else "")
        )
    for remark in look.remarks:
        console.print(remark)
    console.print("nothing here stops training", style="green")


@data_app.command()
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="pcam, mnist or adrenalmnist3d.", show_default=False)],
    out: Target,
) -> None:
    """Download official files from their official place and check them against the published sums."""
    from ..data.fetch import FILES
    from ..data.fetch import fetch as fetch_files

    one_of("data to fetch", name, list(FILES))
    with progress_bar() as report:
        paths = fetch_files(name, out, report)
    console.print(f"{out}: {', '.join(path.name for path in paths)}")


@data_app.command()
def prepare(
    task: TaskArgument,
    source: Source,
    out: Target,
    seed: Annotated[int, typer.Option(help="Seed of the choice of images.")] = 0,
) -> None:
    """Turn the official CelebA files into the paper's 128×128 set; if killed, it continues where it was."""
    one_of("task to prepare", task, ["celeba"])
    from ..data import celeba

    with progress_bar() as report:
        summary = celeba.prepare(source, out, seed, report)
    console.print_json(data=summary)


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
