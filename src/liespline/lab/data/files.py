"""Files that are whole or absent, and errors that name the file and the row."""

import csv
import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import IO

from filelock import FileLock, Timeout

SHOWN = 20
NAMED = 5
# Deflate cannot shrink data more than 1,032-fold: a file that declares more is broken.
MOST_COMPRESSED = 1032
csv_line = csv.writer(SimpleNamespace(write=str), lineterminator="\n").writerow
"""The cells as a line of a CSV file."""
# Disks and folders that cannot be written to, as the kernel says it.
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EACCES, errno.EPERM)


class DataError(ValueError):
    """Data that cannot be used; `problems` says file by file and row by row why, and what to do."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        lines = grouped(self.problems)
        if len(lines) > SHOWN:
            lines = [*lines[:SHOWN], f"… and {len(lines) - SHOWN} more kinds of problems"]
        super().__init__("\n".join(lines))


def grouped(problems: Sequence[str]) -> list[str]:
    """One line for problems that differ in file and numbers alone: the first whole, the others by name."""
    kinds: dict[str, list[str]] = {}
    for problem in problems:
        _, _, what = problem.partition(": ")
        kinds.setdefault(re.sub(r"\d+", "#", what or problem), []).append(problem)
    lines = []
    for first, *others in kinds.values():
        names = [other.partition(": ")[0] for other in others]
        lines.append(first + (f" (and {len(names)} more like it: {some(names)})" if names else ""))
    return lines


def some(names: Sequence[str]) -> str:
    """The first few of many names."""
    return ", ".join(names[:NAMED]) + ", …" * (len(names) > NAMED)


def size_words(space: Sequence[int]) -> str:
    """Width by height for images, as people say it."""
    return "×".join(map(str, reversed(space) if len(space) == 2 else space))


@contextmanager
def collected(problems: list[str]) -> Iterator[None]:
    """Add what is wrong with data in the block to `problems`, and go on behind it."""
    try:
        yield
    except DataError as error:
        problems += error.problems


@contextmanager
def decoding(where: object, what: str, advice: str) -> Iterator[None]:
    """Turn whatever a decoder raises on a damaged file into a DataError: `what` failed, and what to do."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        if "imagecodecs" in str(error):
            raise DataError(f"{where}: its compression needs: pip install 'liespline[slides]'") from error
        said = " ".join(str(error).split())[:200]
        raise DataError(f"{where}: {what} ({said}); {advice}") from error


def existing(path: Path, what: str) -> Path:
    """The path itself, or a DataError that says what was expected there."""
    if not path.is_file():
        state = "is not a plain file" if path.exists() else "does not exist"
        raise DataError(f"{path}: {state}; expected {what}")
    return path


def check_declared_size(path: Path, declared: int, what: str) -> None:
    """Refuse a header that promises more bytes than the file can hold, before any memory is taken."""
    size = path.stat().st_size
    if declared > size * MOST_COMPRESSED:
        raise DataError(
            f"{path}: declares {what}, {declared:,} bytes, but has only {size:,} and cannot hold them; "
            "it is truncated or damaged: fetch it again"
        )


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write `path` so that it is either the old file or the complete new one, whatever kills us.

    The bytes go to `path.part`, are flushed to disk, then renamed. A killed writer leaves only the `.part`
    file, which the next one starts anew. One writer at a time: where others may write, hold `lock` around it.
    """
    with replaced(path) as part, open(part, "wb") as stream:
        yield stream


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """The same for callers that open the `.part` file themselves."""
    part = path.with_name(path.name + ".part")
    try:
        yield part
        with open(part, "r+b") as stream:  # Windows flushes only what it may write to
            os.fsync(stream.fileno())
        os.replace(part, path)
    except BaseException as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        # torch.save answers a full disk with an error of its own, and the kernel's behind it.
        if (cause := _kernel_error(error)) is not None and not isinstance(error, DataError):
            raise DataError(f"{path}: cannot be written ({cause.strerror}); nothing was replaced") from error
        raise


def _kernel_error(error: BaseException) -> OSError | None:
    """The error itself or the first one behind it that the kernel gave."""
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, OSError):
        seen = seen.__cause__ or seen.__context__
    return seen


def write_text(path: Path, text: str) -> None:
    """Write a small text file whole or not at all."""
    with replacing(path) as stream:
        stream.write(text.encode())


def write_lines(path: Path, lines: Iterable[str], append: bool = False) -> int:
    """Write a text file as its lines come, which are whole whatever stops us; how many there were.

    Without any line the file is left as it was; with `append`, lines come behind those that are there.
    """
    count, done = 0, path.stat().st_size if append else 0
    with ExitStack() as stack:
        for count, line in enumerate(lines, 1):
            data = line.encode()
            try:
                if count == 1:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    # No buffer: what a process that is killed has written ends with a line.
                    stream = stack.enter_context(open(path, "ab" if append else "wb", buffering=0))
                if stream.write(data) != len(data):
                    stream.truncate(done)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError as error:
                raise DataError(
                    f"{path}: cannot be written ({error.strerror}); its {count - 1:,} lines are whole"
                ) from error
            done += len(data)
    return count


@contextmanager
def lock(path: Path, wait: bool) -> Iterator[None]:
    """Hold `path` for this process until the block ends or the process dies.

    Without `wait` a second process is refused with the first one's number. A disk that is full or cannot be written
    to ends the block with a DataError that names the folder.
    """
    held = FileLock(path)
    try:
        held.acquire(blocking=wait)
    except Timeout:
        raise DataError(
            f"{path.parent}: process {_holder(path)} is working there; wait for it or choose another folder"
        ) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}); choose a folder you can write to") from error
    try:
        # Windows lets nobody write to a locked file; the second process then learns no number. No buffer: it would
        # try again to write to a full disk when it is closed.
        with suppress(PermissionError), open(path, "wb", buffering=0) as stream:
            stream.write(str(os.getpid()).encode())
        yield
    except Exception as error:
        cause = None if isinstance(error, DataError) else _kernel_error(error)
        if cause is None or cause.errno not in UNWRITABLE:
            raise
        raise DataError(
            f"{cause.filename or path.parent}: {cause.strerror}; make room or choose another folder, then go on. "
            "What was finished is as it was"
        ) from error
    finally:
        held.release()


def _holder(path: Path) -> str:
    try:
        return path.read_text()[:20].strip() or "unknown"
    except OSError:
        return "unknown"
