"""`liespline predict`: classes, tags or numbers on the screen, masks in a folder."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ..screen import Screen
from ..settings import ConfigError
from . import options as opt

console = Screen()
MOST_COLUMNS = 6


def predict(
    checkpoint: opt.Checkpoint,
    images: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH…",
            help="PNG, JPEG or TIFF files; NIfTI, .npy or .npz volumes, folders of DICOM slices; or folders of them.",
            show_default=False,
        ),
    ],
    as_json: opt.Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")] = False,
    out: Annotated[Path | None, typer.Option(help="For segment: the folder that masks go to.")] = None,
    tile: Annotated[int | None, typer.Option(help="For segment: side of the tiles in samples.", min=16)] = None,
    level: Annotated[int, typer.Option(help="For segment: level of a pyramid, 0 is the finest.", min=0)] = 0,
) -> None:
    """Print class, confidence and the probability of every class; a network of task segment writes masks to --out."""
    from ..evaluation.predict import predict_files, task_of

    if task_of(checkpoint) == "segment":
        write_masks(checkpoint, images, out, tile, level, as_json)
        return
    if out is not None or tile is not None or level:
        raise ConfigError(f"--out, --tile and --level are for masks; {checkpoint} is of task {task_of(checkpoint)}")

    rows, remarks = predict_files(checkpoint, images)
    for remark in remarks:
        Screen(stderr=True).print(remark)
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    if "values" in rows[0]:  # tags or numbers
        show_values(rows, as_csv)
        return
    classes = list(rows[0]["probabilities"])
    head = ["image", "class", "confidence", *(f"p({name})" for name in classes)]
    if as_csv:
        lines = csv.writer(sys.stdout, lineterminator="\n")
        lines.writerow(head)
        for row in rows:
            shares = [row["confidence"], *row["probabilities"].values()]
            lines.writerow([row["image"], row["class"], *(f"{share:.6g}" for share in shares)])
        return
    shown = head if len(classes) <= MOST_COLUMNS else head[:3]
    table = Table()
    for name in shown:
        table.add_column(name, justify="left" if name in ("image", "class") else "right", overflow="fold")
    for row in rows:
        shares = [row["confidence"], *row["probabilities"].values()]
        table.add_row(str(row["image"]), str(row["class"]), *(f"{100 * v:.1f} %" for v in shares[: len(shown) - 2]))
    console.print(table)


def show_values(rows: list[dict[str, Any]], as_csv: bool) -> None:
    """The probability of every tag, or every number."""
    names = list(rows[0]["values"])
    if as_csv:
        lines = csv.writer(sys.stdout, lineterminator="\n")
        lines.writerow(["image", *names])
        lines.writerows([row["image"], *(f"{v:.6g}" for v in row["values"].values())] for row in rows)
        return
    table = Table("image", *names)
    for row in rows:
        table.add_row(str(row["image"]), *(f"{value:.4g}" for value in row["values"].values()))
    console.print(table)


def write_masks(
    checkpoint: Path, paths: list[Path], out: Path | None, tile: int | None, level: int, as_json: bool
) -> None:
    """Masks of images and volumes, with a bar; what could not be used is named at the end, and the status is 1."""
    from rich.progress import Progress

    from ..data.files import grouped
    from ..evaluation.predict_masks import predict_masks

    if out is None:
        raise ConfigError("--out is missing: name the folder that the masks go to")
    with Progress(console=Screen(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def told(name: str, done: int, total: int) -> None:
            bar.update(task, description=name, completed=done, total=total)

        done = predict_masks(checkpoint, paths, out, side=tile, level=level, progress=told)
    if as_json:
        typer.echo(json.dumps(done.rows, indent=1))
    else:
        for row in done.rows:
            console.print(f"{row['image']} → {row['mask']}")
    errors = Screen(stderr=True)
    for remark in grouped(done.remarks):
        errors.print(remark, style="yellow")
    if done.problems:
        errors.print(f"{out}: holds {len(done.rows)} masks. There are none of", style="red")
        for problem in done.problems:
            errors.print(problem, style="red")
        raise typer.Exit(1)
