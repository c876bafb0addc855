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
    """The rows as they are made, with a bar that counts files, or the tiles of an image, where somebody looks.

    The bar leaves the output alone: there is none if it is not wanted, or if the errors do not go to a terminal.
    """
    screen = Screen(stderr=True)
    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    hidden = hidden or not screen.is_terminal
    with Progress(*columns, console=screen, transient=True, redirect_stdout=False, disable=hidden) as bar:
        task = bar.add_task("files", total=len(found.files))
        found.told = lambda what, done, total: bar.update(task, description=what, completed=done, total=total)
        yield from found


def words_of(row: Row) -> dict[str, str]:
    """The words of a row, by the names of their columns."""
    return {name: str(row[name]) for name in ("image", "mask", "class") if name in row}


def numbers_of(row: Row) -> dict[str, float]:
    """The numbers of a row, by the names of their columns: of tags or numbers, or the confidence and probabilities."""
    confidence = {"confidence": row["confidence"]} if "confidence" in row else {}
    return row.get("values") or confidence | {f"p({name})": p for name, p in row.get("probabilities", {}).items()}


def csv_lines(rows: Iterable[Row]) -> Iterator[str]:
    """The head and one line per row, as they come."""
    for number, row in enumerate(rows):
        words, numbers = words_of(row), numbers_of(row)
        if number == 0:
            yield csv_line([*words, *numbers])
        yield csv_line([*words.values(), *(f"{value:.6g}" for value in numbers.values())])


def csv_line(cells: Sequence[str]) -> str:
    """One line of a CSV file."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def table_of(rows: Sequence[Row]) -> Table:
    """Rows for people: of many classes, the predicted one alone."""
    names, shares, table = list(numbers_of(rows[0])), "probabilities" in rows[0], Table()
    if shares and len(rows[0]["probabilities"]) > MOST_COLUMNS:
        names = names[:1]
    for name in words_of(rows[0]):
        table.add_column(name, overflow="fold")
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
    for row in rows:
        numbers = [numbers_of(row)[name] for name in names]
        table.add_row(*words_of(row).values(), *(f"{100 * n:.1f} %" if shares else f"{n:.4g}" for n in numbers))
    return table
