"""`liespline predict`: classes, tags or numbers on the screen, masks in a folder."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import MofNCompleteColumn, Progress
from rich.table import Table

from ..screen import Screen
from ..settings import ConfigError
from . import options as opt

if TYPE_CHECKING:
    from ..evaluation.predict import Predictions

Row = dict[str, Any]
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
    out: Annotated[
        Path | None, typer.Option(help="CSV file, written row by row; for segment, the folder that masks go to.")
    ] = None,
    resize: opt.Resize = False,
    any_size: opt.AnySize = False,
    tile: Annotated[int | None, typer.Option(help="For segment: side of the tiles in samples.", min=16)] = None,
    level: Annotated[int, typer.Option(help="For segment: level of a pyramid, 0 is the finest.", min=0)] = 0,
    quiet: opt.Quiet = False,
) -> None:
    """Predict class, confidence and the probability of every class; a network of task segment writes masks to --out.

    A file that cannot be read is left out and named at the end; the exit code is then 1.
    """
    from ..data.files import write_lines
    from ..evaluation.predict import predict_files, task_of

    sizes = opt.other_sizes(resize, any_size)
    if task_of(checkpoint) == "segment":
        if sizes != "refuse":
            raise ConfigError("--resize and --any-size are not for masks, which are made for images of any size")
        write_masks(checkpoint, images, out, tile, level, as_json, quiet)
        return
    if tile is not None or level:
        raise ConfigError(f"--tile and --level are for masks; {checkpoint} is of task {task_of(checkpoint)}")
    if out is not None and as_json:
        raise ConfigError(f"--json prints, --out {out} writes CSV; leave one of them out")
    if out is not None and out.suffix.lower() != ".csv":
        raise ConfigError(f"--out {out}: only masks go to a folder; name a file such as {out / 'predictions.csv'}")

    found = predict_files(checkpoint, images, sizes)
    show(found.remarks)
    known = len(found.remarks)
    rows = counted(found, hidden=quiet or (as_csv and out is None and sys.stdout.isatty()))
    if out is not None:
        console.print(f"{out}: {write_lines(out, csv_lines(rows)) - 1:,} predictions")
    elif as_csv:
        for line in csv_lines(rows):
            typer.echo(line, nl=False)
    elif as_json:
        typer.echo(json.dumps(list(rows), indent=1))
    else:
        console.print(table_of(list(rows)))
    show(found.remarks[known:], style="yellow")
    if found.failures:
        show([f"{len(found.failures):,} of {len(found.files):,} files could not be answered:", *found.failures], "red")
        raise typer.Exit(1)


def show(lines: Iterable[str], style: str | None = None) -> None:
    """Remarks, beside what is printed for programs."""
    for line in lines:
        Screen(stderr=True).print(line, style=style, soft_wrap=True)


def counted(found: Predictions, hidden: bool) -> Iterator[Row]:
    """The rows as they are made, with a bar that counts files where somebody looks."""
    with bar_on_stderr(hidden) as bar:
        task = bar.add_task("files", total=len(found.files))
        for row in found:
            bar.update(task, completed=found.read)
            yield row


def bar_on_stderr(hidden: bool) -> Progress:
    """A bar that leaves the output alone: none if it is not wanted, or if the errors do not go to a terminal."""
    screen = Screen(stderr=True)
    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    hidden = hidden or not screen.is_terminal
    return Progress(*columns, console=screen, transient=True, redirect_stdout=False, disable=hidden)


def head_of(row: Row) -> list[str]:
    """The names of the columns."""
    if "values" in row:  # tags or numbers
        return ["image", *row["values"]]
    return ["image", "class", "confidence", *(f"p({name})" for name in row["probabilities"])]


def csv_lines(rows: Iterable[Row]) -> Iterator[str]:
    """The head and one line per row, as they come."""
    for number, row in enumerate(rows):
        if number == 0:
            yield csv_line(head_of(row))
        if "values" in row:
            yield csv_line([row["image"], *(f"{value:.6g}" for value in row["values"].values())])
        else:
            shares = [row["confidence"], *row["probabilities"].values()]
            yield csv_line([row["image"], row["class"], *(f"{share:.6g}" for share in shares)])


def csv_line(cells: Sequence[str]) -> str:
    """One line of a CSV file."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def table_of(rows: Sequence[Row]) -> Table:
    """Rows for people: of many classes, the predicted one alone."""
    head = head_of(rows[0])
    if "values" in rows[0]:
        table = Table(*head)
        for row in rows:
            table.add_row(str(row["image"]), *(f"{value:.4g}" for value in row["values"].values()))
        return table
    shown = head if len(rows[0]["probabilities"]) <= MOST_COLUMNS else head[:3]
    table = Table()
    for name in shown:
        table.add_column(name, justify="left" if name in ("image", "class") else "right", overflow="fold")
    for row in rows:
        shares = [row["confidence"], *row["probabilities"].values()]
        table.add_row(str(row["image"]), str(row["class"]), *(f"{100 * v:.1f} %" for v in shares[: len(shown) - 2]))
    return table


def write_masks(
    checkpoint: Path, paths: list[Path], out: Path | None, tile: int | None, level: int, as_json: bool, quiet: bool
) -> None:
    """Masks of images and volumes, with a bar; what could not be used is named at the end, and the status is 1."""
    from ..data.files import grouped
    from ..evaluation.predict_masks import predict_masks

    if out is None:
        raise ConfigError("--out is missing: name the folder that the masks go to")
    with bar_on_stderr(hidden=quiet) as bar:
        task = bar.add_task("", total=None)

        def told(name: str, done: int, total: int) -> None:
            bar.update(task, description=name, completed=done, total=total)

        done = predict_masks(checkpoint, paths, out, side=tile, level=level, progress=told)
    if as_json:
        typer.echo(json.dumps(done.rows, indent=1))
    else:
        for row in done.rows:
            console.print(f"{row['image']} → {row['mask']}")
    show(grouped(done.remarks), "yellow")
    if done.problems:
        show([f"{out}: holds {len(done.rows)} masks. There are none of", *done.problems], "red")
        raise typer.Exit(1)
