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
    from ..evaluation.predict import predict_files

    if out is not None and out.suffix.lower() == ".csv" and as_json:
        raise ConfigError(f"--json prints, --out {out} writes CSV; leave one of them out")
    found = predict_files(checkpoint, images, opt.other_sizes(resize, any_size), out=out, tile=tile, level=level)
    show(found.remarks)
    known, masks = len(found.remarks), found.masks is not None
    rows = counted(found, hidden=quiet or (as_csv and out is None and sys.stdout.isatty()))
    if out is not None and not masks:
        console.print(f"{out}: {write_lines(out, csv_lines(rows)) - 1:,} predictions")
    elif as_csv:
        for line in csv_lines(rows):
            typer.echo(line, nl=False)
    elif as_json:
        typer.echo(json.dumps(list(rows), indent=1))
    elif masks:
        for row in list(rows):
            console.print(f"{row['image']} → {row['mask']}")
    else:
        console.print(table_of(list(rows)))
    show(found.remarks[known:], style="yellow")
    if found.failures:
        show([f"{len(found.failures):,} of {len(found.files):,} files have no prediction:", *found.failures], "red")
        raise typer.Exit(1)


def show(lines: Iterable[str], style: str | None = None) -> None:
    """Remarks, beside what is printed for programs."""
    for line in lines:
        Screen(stderr=True).print(line, style=style, soft_wrap=True)


def counted(found: Predictions, hidden: bool) -> Iterator[Row]:
    """The rows as they are made, with a bar that counts files, or the tiles of an image, where somebody looks."""
    with bar_on_stderr(hidden) as bar:
        task = bar.add_task("files", total=len(found.files))
        found.told = lambda what, done, total: bar.update(task, description=what, completed=done, total=total)
        yield from found


def bar_on_stderr(hidden: bool) -> Progress:
    """A bar that leaves the output alone: none if it is not wanted, or if the errors do not go to a terminal."""
    screen = Screen(stderr=True)
    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    hidden = hidden or not screen.is_terminal
    return Progress(*columns, console=screen, transient=True, redirect_stdout=False, disable=hidden)


def head_of(row: Row) -> list[str]:
    """The names of the columns."""
    if "mask" in row:
        return ["image", "mask"]
    if "values" in row:  # tags or numbers
        return ["image", *row["values"]]
    return ["image", "class", "confidence", *(f"p({name})" for name in row["probabilities"])]


def csv_lines(rows: Iterable[Row]) -> Iterator[str]:
    """The head and one line per row, as they come."""
    for number, row in enumerate(rows):
        if number == 0:
            yield csv_line(head_of(row))
        numbers = row.get("values") or row.get("probabilities", {})
        shares = ([row["confidence"]] if "confidence" in row else []) + list(numbers.values())
        words = [row[name] for name in ("image", "mask", "class") if name in row]
        yield csv_line([*words, *(f"{share:.6g}" for share in shares)])


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
