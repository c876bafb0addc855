"""Which files a user means who names files and folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..data import DataError
from ..data.files import NAMED


def by_suffix(suffixes: tuple[str, ...]) -> Callable[[Path], bool]:
    """Whether a path is a file with such a name."""
    return lambda path: path.is_file() and path.suffix.lower() in suffixes


def find_files(paths: Sequence[Path], fits: Callable[[Path], bool], formats: str) -> tuple[list[Path], list[str]]:
    """The files that are named, those in named folders that fit, and a remark on what of these is left out.

    A folder that fits, as one of DICOM slices does, counts as a file.
    """
    files: list[Path] = []
    others: list[Path] = []

    def sort(path: Path) -> None:
        if fits(path):
            files.append(path)
        elif path.is_dir():
            for entry in sorted(path.iterdir()):
                if not entry.name.startswith("."):
                    sort(entry)
        else:
            others.append(path)

    if missing := [path for path in paths if not path.exists()]:
        raise DataError([f"{path}: does not exist" for path in missing])
    for path in paths:
        before = len(files)
        sort(path) if path.is_dir() else files.append(path)
        if len(files) == before:
            raise DataError(f"{path}: has no {formats} files in it")
    if not others:
        return files, []
    count = "1 file is" if len(others) == 1 else f"{len(others)} files are"
    names = ", ".join(map(str, others[:NAMED])) + ", …" * (len(others) > NAMED)
    return files, [f"{count} left out, not {formats}: {names}"]
