"""Drawing many pictures on several processes, each from its own seed: the number of processes changes nothing."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

from liespline.lab.data.files import DataError, write_text

from ..journal import Progress

Item = TypeVar("Item")
Drawn = TypeVar("Drawn")


def draw_all(
    draw: Callable[[Item], Drawn], items: Sequence[Item], jobs: int, progress: Progress | None, what: str
) -> Iterator[Drawn]:
    """`draw(item)` for each item, in order."""
    if jobs < 1:
        raise ValueError(f"jobs is {jobs}; at least 1 process is needed")
    if jobs == 1:
        yield from _reported(map(draw, items), len(items), progress, what)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        yield from _reported(pool.map(draw, items, chunksize=16), len(items), progress, what)


def _reported(drawn: Iterator[Drawn], total: int, progress: Progress | None, what: str) -> Iterator[Drawn]:
    for done, item in enumerate(drawn, 1):
        yield item
        if progress and (done % 100 == 0 or done == total):
            progress(what, done, total)


def synthetic_folder(out: Path, text: str, files: Sequence[str]) -> None:
    """Make the folder and say in it, before anything else is there, that its pictures are drawn.

    A folder that says the same is continued. One that has any of `files` from elsewhere is refused: they may be
    the real ones.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{out}: cannot be made ({error.strerror}); choose a folder you can write to") from error
    said = f"{text}\nNo real data: every picture here is drawn by a program.\n"
    note = out / "SYNTHETIC.txt"
    if note.is_file() and note.read_bytes() == said.encode():
        return
    for name in files:
        if (out / name).exists():
            raise DataError(f"{out / name}: is not of this drawing ({text}) and would be lost; choose an empty folder")
    write_text(note, said)
