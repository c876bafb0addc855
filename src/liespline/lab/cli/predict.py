"""`liespline predict`: classes, tags or numbers on the screen, masks in a folder."""

from __future__ import annotations

import json
import os
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
    from ..evaluation.kept import Kept
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
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="For segment: also write the probability of every class.")
    ] = False,
    largest: opt.Largest = False,
    truth: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="For segment: folder of true masks; OUT/cases.csv has the scores per case."),
    ] = None,
    tta: Annotated[bool, typer.Option("--tta", help="Average over reflected images and two grids.")] = False,
    part: Annotated[
        str | None, typer.Option(metavar="K/N", help="Only every N-th file, from the K-th: N calls share the work.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="So many parts side by side, then what they left over.", min=1)] = 1,
    engine: opt.Engine = "processes",
    quiet: opt.Quiet = False,
) -> None:
    """Predict class, confidence and the probability of every class; a network of task segment writes masks to --out.

    What an earlier call has written to --out is not predicted again. A file that cannot be read is left out and named
    at the end; the exit code is then 1.
    """
    # Else a kernel is kept in memory for each of up to 1,024 shapes, and volumes have as many.
    for cache in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(cache, "16")
    from ..evaluation.mask_files import Whole
    from ..evaluation.predict import predict_files

    if out is not None and out.suffix.lower() == ".csv" and as_json:
        raise ConfigError(f"--json prints, --out {out} writes CSV; leave one of them out")
    if jobs > 1 and part is not None:
        raise ConfigError(f"--jobs {jobs} with --part {part}: each shares the files out; say one of them")
    if jobs > 1:
        in_parts(jobs, engine, checkpoint, out)
    found = predict_files(
        checkpoint, images, opt.other_sizes(resize, any_size), out=out, tile=tile, level=level,
        how=Whole(probabilities, largest), tta=tta, part=part_of(part, out),
    )  # fmt: skip
    show(found.remarks)
    known, masks = len(found.remarks), found.masks is not None
    if truth is not None and not masks:
        raise ConfigError(f"--truth {truth}: is for masks; score a labelled folder with `liespline evaluate --data`")
    rows: Iterable[Row] = counted(found, hidden=quiet or (as_csv and out is None and sys.stdout.isatty()))
    rows = list(rows) if masks else rows
    if found.kept is not None:
        console.print(f"{found.kept.out}: {written(found.kept, rows):,} predictions")
    elif as_csv:
        for line in csv_lines(rows):
            typer.echo(line, nl=False)
    elif as_json:
        typer.echo(json.dumps(list(rows), indent=1))
    elif masks:
        for row in rows:
            console.print(f"{row['image']} → {row['mask']}")
    else:
        console.print(table_of(list(rows)))
    if truth is not None and out is not None:
        show(against(truth, found, rows, out))
    show(found.remarks[known:], style="yellow")
    if found.failures:
        show([f"{len(found.failures):,} of {len(found.files):,} files have no prediction:", *found.failures], "red")
        raise typer.Exit(1)


def part_of(text: str | None, out: Path | None) -> tuple[int, int] | None:
    """Which part of how many `K/N` is."""
    if text is None:
        return None
    number, slash, count = text.partition("/")
    if not (slash and number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)) or out is None:
        raise ConfigError(f"--part {text}: expected K/N with K from 1 to N, such as 2/4, and --out")
    return int(number), int(count)


def in_parts(jobs: int, engine: str, checkpoint: Path, out: Path | None) -> None:
    """Carry out this command in so many parts; what one of them could not do, the whole command meets again."""
    from ..runs.trained import load
    from ..sweep.jobs import Job, carried_out

    if out is None:
        raise ConfigError(f"--jobs {jobs}: predictions of several processes need --out")
    gpus, parts = int(load(checkpoint).config.training.accelerator != "cpu"), []
    for number in range(1, jobs + 1):
        words = (*sys.argv[1:], "--jobs", "1", "--part", f"{number}/{jobs}", "--quiet")
        parts.append(Job(f"part {number} of {jobs}", words, out.parent / "slurm", gpus=gpus))
    carried_out(parts, lambda name, what: show([f"{name}: {what}"]), engine, jobs)


def written(kept: Kept, rows: Iterable[Row]) -> int:
    """Write the rows behind those of an earlier call; how many there are now."""
    from ..data.files import write_lines

    def noted() -> Iterator[Row]:
        for row in rows:
            yield row
            kept.add(row["image"])  # the next one is asked for when this one is on disk

    write_lines(kept.out, csv_lines(noted(), head=not kept.count), append=kept.count > 0)
    return kept.count


def against(truth: Path, found: Predictions, rows: Iterable[Row], out: Path) -> list[str]:
    """Write the table of single cases; what it says in words."""
    from ..data.scans.read import stem
    from ..evaluation.cases import cases_of_files, write_cases

    masks = {stem(Path(row["image"])): Path(row["mask"]) for row in rows}
    cases = list(cases_of_files(masks, truth, found.trained.signature, found.failures))
    return write_cases(out / "cases.csv", cases) if cases else []


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


def cells(row: Row) -> tuple[dict[str, str], dict[str, float]]:
    """The words of a row and its numbers, by the names of their columns."""
    shares = {f"p({name})": share for name, share in row.get("probabilities", {}).items()}
    numbers = {name: value for name, value in row.items() if isinstance(value, float)}
    words = {name: value for name, value in row.items() if isinstance(value, str)}
    return words, {**numbers, **shares, **row.get("values", {})}


def csv_lines(rows: Iterable[Row], head: bool = True) -> Iterator[str]:
    """The head, if wanted, and one line per row, as they come."""
    from ..data.files import csv_line

    for number, row in enumerate(rows):
        words, numbers = cells(row)
        if head and number == 0:
            yield csv_line([*words, *numbers])
        yield csv_line([*words.values(), *(f"{value:.6g}" for value in numbers.values())])


def table_of(rows: Sequence[Row]) -> Table:
    """Rows for people: of many classes, the predicted one alone."""
    (words, numbers), shares, table = cells(rows[0]), "probabilities" in rows[0], Table()
    count = 1 if shares and len(numbers) > 1 + MOST_COLUMNS else len(numbers)
    for name in (*words, *list(numbers)[:count]):
        table.add_column(name, justify="left" if name in words else "right", overflow="fold")
    for row in rows:
        words, numbers = cells(row)
        said = (f"{100 * n:.1f} %" if shares else f"{n:.4g}" for n in list(numbers.values())[:count])
        table.add_row(*words.values(), *said)
    return table
