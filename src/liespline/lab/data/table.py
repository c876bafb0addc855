"""Labels from a table: one row per file, with its class, tags or numbers, and if wanted its split and its group."""

import csv
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from .arrays import Array
from .files import DataError, existing
from .listing import Listing, Samples, below
from .split import SPLITS

MOST_CLASSES = 20  # a column of more different whole numbers may be a measurement
_OWN = ("file", "split", "group")


def labels_of(path: Path, folder: Path, what: Samples, kind: str | None) -> Listing:
    """The table `path` about samples in `folder`, with labels and a note on them."""
    table = read_table(path, folder, kind)
    if not table.labels:
        raise DataError(f"{path}: has no column besides file, split and group; add one with labels")
    if other := [file for file in table.files if not what.fits(file)]:
        raise DataError([f"{file}: is no {what.noun.removesuffix('s')}; expected {what.formats}" for file in other])
    words = {"classes": "one class each", "tags": "tags that go together in any way", "numbers": "numbers to predict"}
    groups = f", {len(set(table.groups))} groups that stay together" if table.groups else ""
    labels = f"labels {', '.join(table.labels)[:200]}: {words[table.kind]}"
    return replace(table, notes=(f"{len(table.files)} {what.noun} with {labels}{groups}",))


def read_table(path: Path, folder: Path, kind: str | None = None) -> Listing:
    """The table `path` about files in `folder`; DataError with every row that cannot be used.

    The columns `file`, `split` (train, valid or test) and `group` (patient, slide) have these names; all others are
    labels. Without `kind`: several columns of 0 and 1 are tags, columns of numbers with a decimal point are numbers,
    and one column of anything else is the class.
    """
    header, rows = _read(path)
    labels = [name for name in header if name not in _OWN]
    problems: list[str] = []
    files = tuple(folder / row["file"] for row in rows)
    seen: dict[Path, int] = {}
    for number, (row, file) in enumerate(zip(rows, files, strict=True), 2):
        where = f"{path}, row {number}"
        if not row["file"]:
            problems.append(f"{where}: names no file")
        elif not file.exists():
            problems.append(f"{where}: {row['file']!r} does not exist in {folder}")
        elif file in seen:
            problems.append(f"{where}: {row['file']!r} is in row {seen[file]} already")
        seen.setdefault(file, number)
        problems += [f"{where}: has no {name}" for name in labels if not row[name]]
    splits = _splits(path, rows, problems) if "split" in header else None
    groups = _groups(path, rows, splits, problems) if "group" in header else None
    if problems:
        raise DataError(problems)
    columns = {name: [row[name] for row in rows] for name in labels}
    chosen = kind or _kind(path, columns)
    return Listing(files, below(folder, files), chosen, *_targets(path, columns, chosen), splits, groups)


def _read(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    existing(path, "a table with the columns file and label, saved as CSV")
    try:
        text = path.read_text(encoding="utf-8-sig")
        dialect = ";" if text.partition("\n")[0].count(";") > text.partition("\n")[0].count(",") else ","
        header, *rows = [row for row in csv.reader(text.splitlines(), delimiter=dialect, strict=True) if any(row)]
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text; save it again as CSV in UTF-8") from error
    except (ValueError, csv.Error) as error:
        raise DataError(f"{path}: is no table ({error}); save it again as CSV") from error
    header = [name.strip() for name in header]
    if "file" not in header or len(set(header)) != len(header) or not all(header):
        raise DataError(f"{path}: has columns {header}; one must be named file, and no two the same")
    if not rows:
        raise DataError(f"{path}: has no rows")
    short = [number for number, row in enumerate(rows, 2) if len(row) != len(header)]
    if short:
        raise DataError([f"{path}, row {number}: has not {len(header)} columns as the first row" for number in short])
    return header, [dict(zip(header, map(str.strip, row), strict=True)) for row in rows]


def _splits(path: Path, rows: list[dict[str, str]], problems: list[str]) -> tuple[str, ...]:
    names = {"val": "valid", "validation": "valid"}
    splits = tuple(names.get(row["split"], row["split"]) for row in rows)
    for number, split in enumerate(splits, 2):
        if split not in SPLITS:
            problems.append(f"{path}, row {number}: split {split!r} is unknown; choose one of {', '.join(SPLITS)}")
    return splits


def _groups(
    path: Path, rows: list[dict[str, str]], splits: tuple[str, ...] | None, problems: list[str]
) -> tuple[str, ...]:
    groups = tuple(row["group"] for row in rows)
    problems += [f"{path}, row {number}: has no group" for number, group in enumerate(groups, 2) if not group]
    places = defaultdict(set)
    for group, split in zip(groups, splits or (), strict=splits is not None):
        places[group].add(split)
    for group, held in places.items():
        if group and len(held) > 1:
            order = [split for split in SPLITS if split in held]
            problems.append(f"{path}: group {group!r} is in {' and '.join(order)}; put all its rows in one split")
    return groups


def _kind(path: Path, columns: dict[str, list[str]]) -> str:
    values = [value for column in columns.values() for value in column]
    if len(columns) > 1 and set(values) <= {"0", "1"}:
        return "tags"
    numeric = all(_number(value) is not None for value in values)
    if columns and numeric and any("." in value or "e" in value.lower() for value in values):
        return "numbers"
    if len(columns) > 1:
        raise DataError(
            f"{path}: has the label columns {', '.join(columns)}; several columns are tags (0 and 1) or numbers with "
            "a decimal point; for whole numbers say --label-type numbers"
        )
    if numeric and len(set(values)) > MOST_CLASSES:
        raise DataError(
            f"{path}: {next(iter(columns))!r} has {len(set(values))} different whole numbers; say --label-type numbers "
            "if they measure something, --label-type classes if each is a class"
        )
    return "classes"


def _targets(path: Path, columns: dict[str, list[str]], kind: str) -> tuple[tuple[str, ...], Array]:
    """The labels, and the targets of each row."""
    if kind == "classes":
        return _classes(path, columns) if columns else ((), np.zeros(0, np.int64))
    wanted = "0 or 1" if kind == "tags" else "a number"
    problems = [
        f"{path}, row {row}: {name} is {value!r}; expected {wanted}"
        for name, column in columns.items()
        for row, value in enumerate(column, 2)
        if _number(value) is None or (kind == "tags" and _number(value) not in (0, 1))
    ]
    if problems or not columns:
        raise DataError(problems or f"{path}: has no label column")
    return tuple(columns), np.array([list(map(float, column)) for column in columns.values()], np.float32).T.copy()


def _classes(path: Path, columns: dict[str, list[str]]) -> tuple[tuple[str, ...], Array]:
    if len(columns) > 1:
        raise DataError(f"{path}: has the label columns {', '.join(columns)}; a class is one column")
    (values,) = columns.values()
    names = sorted(set(values), key=lambda name: (_number(name) is None, _number(name), name))
    if len(names) < 2:
        raise DataError(f"{path}: has one class only ({names[0]!r}); two or more are needed")
    number_of = {name: number for number, name in enumerate(names)}
    return tuple(names), np.array([number_of[value] for value in values], np.int64)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None
