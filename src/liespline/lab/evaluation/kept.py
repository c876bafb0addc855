"""What an earlier call with the same network and options has predicted already, and need not again."""

import csv
from collections.abc import Iterator, Sequence
from glob import escape
from pathlib import Path

from ..data.files import csv_line, write_text
from ..data.store import digest, file_key

NOTES = ".predicted"


class Kept:
    """A key per prediction, in a hidden file beside them; it changes with the file, the network and the options.

    Of a CSV file the k-th line of the notes is for the k-th row, of a folder of masks their order does not matter.
    `part` = (k, n): of n calls that share the files between them, the k-th has a CSV file and notes of its own, which
    the next call without `part` takes up.
    """

    def __init__(self, out: Path, made: str, files: Sequence[Path], part: tuple[int, int] | None = None) -> None:
        end = "" if part is None else f"-{part[0]}-of-{part[1]}"
        self.keys = {str(file): digest(f"{made} {file} {file_key(file)}") for file in files}
        self.whole, self.out, self.count = out, out, 0
        if out.suffix.lower() == ".csv":
            self.out = out.with_name(f"{out.stem}{end}{out.suffix}")
            self.notes = _notes_of(self.out)
        else:
            self.notes = out / f"{NOTES}{end}"

    def add(self, name: str) -> None:
        """Note that the prediction of an image is on disk; one of several in its file is made again next time."""
        with open(self.notes, "a", encoding="ascii") as stream:
            stream.write(self.keys.get(name, "-") + "\n")
        self.count += 1

    def masks(self) -> set[str]:
        """The files whose masks have been written."""
        known = {key for file in self.whole.glob(f"{NOTES}*") for key in file.read_text("ascii").split()}
        return {name for name, key in self.keys.items() if key in known}

    def rows(self) -> set[str]:
        """The files whose rows have been written; of those in `out`, it now holds these rows and no others."""
        parts = []
        if self.out == self.whole:
            parts = sorted(self.out.parent.glob(f"{escape(self.out.stem)}-*-of-*{self.out.suffix}"))
        kept = {row[0]: (head, row) for file in (self.out, *parts) for head, row in self._fitting(file)}
        self.count = len(kept)
        if kept:
            head, _ = next(iter(kept.values()))
            write_text(self.out, "".join(map(csv_line, (head, *(row for _, row in kept.values())))))
        self.notes.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.notes, "".join(f"{self.keys[name]}\n" for name in kept))
        for part in parts:
            part.unlink()
            _notes_of(part).unlink(missing_ok=True)
        return {*kept, *(row[0] for _, row in self._fitting(self.whole))}

    def _fitting(self, table: Path) -> Iterator[tuple[list[str], list[str]]]:
        """The head and each row of a CSV file whose key is that of its file now."""
        if table.is_file() and (notes := _notes_of(table)).is_file():
            with open(table, newline="", encoding="utf-8") as rows:
                head, *found = csv.reader(rows)
            for row, key in zip(found, notes.read_text("ascii").splitlines(), strict=False):
                if self.keys.get(row[0]) == key:
                    yield head, row


def _notes_of(table: Path) -> Path:
    return table.with_name(f".{table.name}{NOTES}")
