"""The paper's CelebA set as `prepare` leaves it: landmarks to be found on 128×128 images."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from liespline.lab.data.files import DataError, existing
from liespline.lab.data.split import SPLITS, Split
from liespline.lab.settings import one_of

from .celeba_prepare import COLUMNS, FORMAT, INDEX, MARKER, PICTURES, SIDE, prepare
from .celeba_source import LANDMARKS, LANDMARKS_FILE, listed_and_present, read_source
from .npy import npy_rows

__all__ = ["BLUR", "LANDMARKS", "SIDE", "check", "load", "prepare"]

# σ of the blur before the argmax of `landmarks.locate`, by preset; `augment.Zoom` knows the presets itself.
BLUR = {"paper": 0.0, "released": 1.0}
_POINTS = COLUMNS.index("left_eye_row")


def check(path: Path) -> list[str]:
    """Every problem of a prepared folder, or of the official files when `path` holds those."""
    path = Path(path)
    try:
        if (path / LANDMARKS_FILE).exists():
            source = read_source(path)
            present, unlisted = listed_and_present(source)
            absent = [row for row, name in enumerate(source.names) if name not in present]
            problems = [f"{source.place(row)}: does not exist; it would be left out" for row in absent]
            return problems + [f"{path / name}: has no landmarks; it would be left out" for name in unlisted]
        for split in SPLITS:
            load(path, split)
    except DataError as error:
        return error.problems
    return []


def load(path: Path, split: str) -> Split:
    """A split: uint8 images (B, 3, 128, 128), targets (B, 5, 2) landmarks in (row, column) pixels."""
    path, split = Path(path), one_of("split", split, SPLITS)
    summary = _summary(path)
    images = npy_rows(existing(path / PICTURES, "the prepared images"))
    if images.shape[1:] != (SIDE, SIDE, 3) or images.dtype != np.uint8:
        raise DataError(
            f"{path / PICTURES}: has {images.dtype} rows {images.shape[1:]}; expected uint8 ({SIDE}, {SIDE}, 3)"
        )
    table = _index(path / INDEX)
    if len(table) != len(images):
        raise DataError(f"{path / INDEX}: has {len(table)} rows for {len(images)} images; prepare the set again")
    points = np.array([row[_POINTS:] for row in table], np.float32).reshape(-1, len(LANDMARKS), 2)
    outside = np.flatnonzero(~((points > -1) & (points < SIDE)).all((1, 2)))
    if outside.size:
        raise DataError(f"{path / INDEX}, row {outside[0] + 1}: a landmark lies outside the image; prepare it again")
    rows = np.flatnonzero([row[COLUMNS.index("split")] == split for row in table])
    if not rows.size:
        raise DataError(f"{path / INDEX}: has no row of split {split!r}; prepare the set again")
    synthetic = bool(summary.get("synthetic"))
    return Split(images, points[rows], LANDMARKS, rows=rows, channels_last=True, synthetic=synthetic, kind="points")


def _summary(path: Path) -> dict[str, Any]:
    marker = existing(path / MARKER, "a finished set; run: python -m studies.data.celeba_prepare SRC " + str(path))
    try:
        summary = json.loads(marker.read_text())
    except (ValueError, RecursionError) as error:
        raise DataError(f"{marker}: is no JSON ({error}); prepare the set again") from error
    if not isinstance(summary, dict) or summary.get("format") != FORMAT:
        raise DataError(f"{marker}: is of another format than {FORMAT}; prepare the set again")
    return summary


def _index(path: Path) -> list[list[str]]:
    existing(path, "the landmarks of the prepared images")
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            header, *table = csv.reader(stream, strict=True)
    except (ValueError, csv.Error) as error:
        raise DataError(f"{path}: is no table ({error}); prepare the set again") from error
    if header != list(COLUMNS):
        raise DataError(f"{path}: has columns {header[:9]}; prepare the set again")
    for number, row in enumerate(table, 1):
        try:
            fits = len(row) == len(COLUMNS) and np.isfinite([float(value) for value in row[_POINTS - 1 :]]).all()
        except ValueError:
            fits = False
        if not fits or row[COLUMNS.index("split")] not in SPLITS:
            raise DataError(f"{path}, row {number}: is {','.join(row)[:80]!r}; prepare the set again")
    return table
