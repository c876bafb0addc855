"""CelebA's official text files, read line by line and held against each other."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from liespline.lab.data.files import DataError, existing

IMAGES, LANDMARKS_FILE, IDENTITY_FILE = "img_celeba", "list_landmarks_celeba.txt", "identity_CelebA.txt"
LANDMARKS = ("left eye", "right eye", "nose", "left mouth", "right mouth")
# Far above anything real: a hostile file costs bounded time and memory.
_LONGEST_LINE, _MOST_LINES, _MOST_PROBLEMS = 400, 5_000_000, 1000
# No separators and no leading dot: a name can only ever be a file of the image folder itself.
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_NUMBER = re.compile(r"-?[0-9]{1,6}")


@dataclass(frozen=True)
class Source:
    """What the text files say of each image: row i of all three fields is the same image."""

    folder: Path
    names: list[str]
    landmarks: NDArray[np.int64]  # (N, 5, 2) in (x, y), as in the file
    identities: NDArray[np.int64]

    def image(self, row: int) -> Path:
        return self.folder / IMAGES / self.names[row]

    def place(self, row: int) -> str:
        """Where the reader can look the row up."""
        return f"{self.image(row)} (row {row + 1} of {LANDMARKS_FILE})"


def read_source(folder: Path) -> Source:
    """Both text files; raises DataError with all that is wrong in them, by file and row."""
    landmarks_path = existing(folder / LANDMARKS_FILE, "the in-the-wild landmarks (not the _align_ file)")
    identity_path = existing(folder / IDENTITY_FILE, "one line per image: its name and identity number")
    if not (folder / IMAGES).is_dir():
        raise DataError(f"{folder / IMAGES}: is no folder; unpack the in-the-wild images there")
    problems: list[str] = []
    points = _read_table(landmarks_path, 2 * len(LANDMARKS), problems, has_header=True)
    people = _read_table(identity_path, 1, problems, has_header=False)
    if problems:
        raise DataError(problems)
    if len(points) != len(people):
        problems.append(
            f"{identity_path}: has {len(people):,} rows but {landmarks_path.name} has {len(points):,}; fetch both again"
        )
    pairs = ((points, landmarks_path, people, identity_path), (people, identity_path, points, landmarks_path))
    for names_in, path, names_out, other_path in pairs:
        for row, name in enumerate(names_in, 1):
            if name not in names_out:
                problems.append(f"{other_path}: says nothing of {name}, row {row} of {path.name}; fetch both again")
    if problems:
        raise DataError(problems)
    names = list(points)
    return Source(
        folder,
        names,
        np.array([points[n] for n in names], np.int64).reshape(-1, len(LANDMARKS), 2),
        np.array([people[n][0] for n in names], np.int64),
    )


def listed_and_present(source: Source) -> tuple[set[str], list[str]]:
    """Names of image files that are there, and those among them that no landmarks are given for."""
    with os.scandir(source.folder / IMAGES) as entries:
        present = {entry.name for entry in entries if entry.is_file()}
    return present, sorted(present - set(source.names))


def _read_table(path: Path, columns: int, problems: list[str], has_header: bool) -> dict[str, list[int]]:
    """Lines `name number…` as name -> numbers, in the file's order; what is wrong goes to `problems`."""
    table: dict[str, list[int]] = {}
    declared = None
    for row, line in _lines(path, problems):
        fields = line.split()
        if has_header and row <= 2:
            # The official file begins with the number of rows, then a line of column names.
            if row == 1 and len(fields) == 1 and _NUMBER.fullmatch(fields[0]):
                declared = int(fields[0])
            elif row == 1:
                problems.append(f"{path}, line 1: is {line[:60]!r}; expected the number of images")
            continue
        if not fields:
            continue
        if len(fields) != 1 + columns or not all(_NUMBER.fullmatch(f) for f in fields[1:]):
            problems.append(f"{path}, line {row}: is {line[:60]!r}; expected a file name and {columns} whole numbers")
        elif not _NAME.fullmatch(fields[0]):
            problems.append(f"{path}, line {row}: {fields[0][:60]!r} is no plain file name")
        elif fields[0] in table:
            problems.append(f"{path}, line {row}: {fields[0]} is listed twice")
        else:
            table[fields[0]] = [int(f) for f in fields[1:]]
    if declared is not None and declared != len(table) and not problems:
        problems.append(
            f"{path}: announces {declared:,} images but lists {len(table):,}; it is truncated: fetch it again"
        )
    if not table and not problems:
        problems.append(f"{path}: lists no images; fetch it again")
    return table


def _lines(path: Path, problems: list[str]) -> Iterator[tuple[int, str]]:
    """Numbered lines; stops with a problem at one that no text file of this kind has."""
    with open(path, "rb") as stream:
        row = 0
        while raw := stream.readline(_LONGEST_LINE + 1):
            row += 1
            if len(raw) > _LONGEST_LINE or not raw.isascii():
                problems.append(f"{path}, line {row}: is no text line of at most {_LONGEST_LINE} plain characters")
                return
            if row > _MOST_LINES or len(problems) > _MOST_PROBLEMS:
                problems.append(f"{path}, line {row}: not read further; is this the official file?")
                return
            yield row, raw.decode("ascii").rstrip("\r\n")
