"""`liespline data`: look at data before training."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ..screen import Screen
from ..settings import ConfigError
from . import options as opt

if TYPE_CHECKING:
    from ..symmetry import Findings

data_app = typer.Typer(no_args_is_help=True, help="Look at data before training: check files, find symmetries.")
console = Screen()


@data_app.command()
def check(
    task: Annotated[str, typer.Argument(metavar="TASK", show_default=False)],
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


@data_app.command()
def symmetry(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="Images, volumes, or either with masks.", show_default=False)
    ],
    labels: Annotated[Path | None, typer.Option(help="As in `liespline train --labels`: splits and groups.")] = None,
    size: Annotated[str | None, typer.Option(help="As in `liespline train --size`.")] = None,
    task: Annotated[str | None, typer.Option(help="Of data that only a task of yours reads: module:NAME.")] = None,
    picture: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw what was found, as SVG.")] = None,
    as_json: opt.Json = False,
) -> None:
    """Which rotations and reflections leave the data as they are? A small network tries to tell them, on the CPU.

    It learns to say by which of the 8 symmetries of the square, or 48 of the cube, an image was transformed, and is
    asked about images of the other splits. What it cannot tell, an equivariant network may as well not tell.
    """
    from ..session import Session
    from ..symmetry import look
    from ..symmetry.picture import draw
    from ..tasks import find_task

    chosen = find_task(task or kind_of(path))
    given = {"size": size, "labels": None if labels is None else str(labels)}
    session = Session(chosen.configured(chosen.defaults, data=str(path), **{k: v for k, v in given.items() if v}))
    splits = session.load(*session.names)
    status = Screen(stderr=True)
    found = look(splits.pop("train"), list(splits.values()), lambda text: status.print(f"training on {text} …"))
    if picture is not None:
        draw(found, picture, str(path))
    if as_json:
        typer.echo(json.dumps(found.as_dict, indent=1))
        return
    show(found)


def kind_of(path: Path) -> str:
    """The task that reads what is there."""
    from ..data.pictures import SUFFIXES

    if path.is_file():
        return "volumes"
    if any((folder / "images").is_dir() for folder in (path, path / "train")):
        return "segment"
    pictures = (file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES)
    return "images" if next(pictures, None) else "volumes"


def show(found: Findings) -> None:
    """What was found, for people."""
    table = Table("how often the right transformation is named", f"chance {100 * found.chance:.1f} %")
    table.add_row("the data as they are", found.pose.words)
    table.add_row("rotated and reflected at random: must be chance", found.at_random.words)
    table.add_row("the same with a weak ramp: must be seen", found.with_ramp.words)
    console.print(table)
    table = Table("transformation", "told from none (chance 50 %)", "")
    for element in sorted(found.elements, key=lambda e: -e.told.value):
        table.add_row(element.name, element.told.words, "seen" if element.seen else "not seen")
    console.print(table)
    console.print(f"{found.images:,} images to train on, {found.held_out:,} others to look at. {found.sentence}")
