"""The file of results that a sweep appends to: one line per finished run, each run once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..runs.line import append, line_of, read
from ..settings import Config, ConfigError
from ..training.start import differing
from .plan import MAY_DIFFER, Planned
from .study import Found


@dataclass(frozen=True)
class Results:
    """Where the runs of a study are kept, and whether those of a source with uncommitted changes are."""

    path: Path
    found: Found
    uncommitted: bool = False

    def without(self, planned: Iterable[Planned]) -> list[Planned]:
        """The runs that the file lacks; one that it has with other settings is refused."""
        lines = read(self.path) if self.path.exists() else []
        there = {(line["network"], line["seed"]): line["config"] for line in lines if line.get("finished")}
        missing = []
        for entry in planned:
            stored = there.get((entry.run.path.parent.name, entry.config.seed))
            if stored is None:
                missing.append(entry)
            elif words := differing(Config.from_dict(stored, str(self.path)), entry.config, MAY_DIFFER):
                raise ConfigError(f"{self.path}: has {entry.name} with {words}; name another file with --results")
        return missing

    def add(self, entry: Planned) -> None:
        """Append a finished run; a new file begins with what the study is."""
        line = line_of(entry.run, self.found.name)
        if not self.path.exists():
            append(self.path, {"study": self.found.name, "about": self.found.study.about})
        append(self.path, line, self.uncommitted)
