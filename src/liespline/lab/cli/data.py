"""`liespline data`: look at data before training."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from ..screen import Screen
from ..settings import ConfigError

data_app = typer.Typer(no_args_is_help=True, help="Check data before training.")
console = Screen()

TaskArgument = Annotated[str, typer.Argument(metavar="TASK", show_default=False)]


@data_app.command()
def check(
    task: TaskArgument,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The task's data.", show_default=False)],
    size: Annotated[str | None, typer.Option(help="As in `liespline train --size`.")] = None,
    labels: Annotated[Path | None, typer.Option(help="As in `liespline train --labels`.")] = None,
) -> None:
    """Report every problem that would stop training, file by file, and what to do about it."""
    from ..data.manifest import value_limits
    from ..session import Session
    from ..tasks import find_task

    chosen = find_task(task)
    if chosen.data_help is None:
        raise ConfigError(f"task {task} brings its own data; there is nothing to check")
    config = chosen.defaults.updated(data=str(path), size=size, labels=None if labels is None else str(labels))
    session = Session(config)
    remarks = session.validate()
    for name, split in session.loaded.items():
        shape, counts = "×".join(map(str, (split.in_channels, *split.space))), Counter(split.labels)
        classes = ", ".join(f"{label} {counts[label]:,}" for label in split.classes if label in counts)
        low, high = value_limits(split)
        values = f"{split.seen.dtype}, values {low:.3g} to {high:.3g}"
        console.print(f"{name}: {len(split):,} of {shape}, {values}" + (f", classes {classes}" if classes else ""))
    for remark in remarks:
        console.print(remark)
    console.print("nothing here stops training", style="green")
