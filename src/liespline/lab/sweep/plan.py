"""The runs of a sweep: which there are, which are left to do, who does them, and the file of their results."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..data import DataError
from ..runs.folder import Run, check_same_settings, differing
from ..runs.line import append, line_of, read
from ..session import Session
from ..settings import SETTINGS, Config, ConfigError
from ..training.train import preflight
from .jobs import Job, Report, carried_out, find_engine
from .study import Found, Study

MAY_DIFFER = [name for name, setting in SETTINGS.items() if setting.later and name not in ("epochs", "patience")]
"""What a sweep that is resumed may change: where data are, and what the machine is like."""


class Planned(NamedTuple):
    """One run of a sweep: its name and seed, what it is, and where it goes."""

    name: str
    config: Config
    run: Run

    @property
    def job(self) -> Job:
        """The command that resumes the run, on the cores and GPUs that it trains on."""
        training, folder = self.config.training, self.run.path
        return Job(
            self.name,
            ("train", "--resume", str(folder.resolve()), "--quiet"),
            folder / "slurm",
            cpus=1 + training.workers,
            gpus=training.devices if training.accelerator != "cpu" else 0,
            begins="resumes" if self.run.last_checkpoint.exists() else "begins",
        )


def plan(study: Study, out: Path, seeds: int, changes: Mapping[str, Any]) -> list[Planned]:
    """All runs of a study, seed by seed, so that every network has one run before any has two.

    Those that are there must have been begun with the same settings.
    """
    planned = [
        Planned(f"{name} seed {seed}", config.updated(seed=seed), Run(out / "runs" / name / f"seed-{seed}"))
        for seed in range(seeds)
        for name, config in study.configs(changes).items()
    ]
    for entry in planned:
        if entry.run.config_file.is_file():
            check_same_settings(entry.run.path, entry.config, MAY_DIFFER)
    return planned


def sweep(planned: list[Planned], report: Report, jobs: int | None = None, engine: str = "processes") -> list[str]:
    """Do what is left of the runs, `jobs` at a time; the names of those that failed."""
    find_engine(engine)
    left = [entry for entry in planned if not entry.run.complete]
    for entry in planned:
        if entry.run.complete:
            report(entry.name, "done before")
    if left:
        preflight(Session(left[0].config))
    ready = [entry for entry in left if begun(entry, report)]
    at_once = jobs or (1 if engine == "processes" else len(planned))
    failed = carried_out([entry.job for entry in ready], report, engine, at_once)
    failed |= {entry.name for entry in left} - {entry.name for entry in ready}
    return [entry.name for entry in planned if entry.name in failed]


def begun(entry: Planned, report: Report) -> bool:
    """Whether the run has its folder, now if not before."""
    try:
        if not entry.run.config_file.exists():
            with entry.run.locked():
                Run.create(entry.run.path, entry.config)
    except DataError as error:
        report(entry.name, f"left out: {error}")
        return False
    return True


class Results(NamedTuple):
    """Where the runs of a study are kept, and whether those of a source with uncommitted changes are."""

    path: Path
    found: Found
    uncommitted: bool = False

    def lines(self) -> list[dict[str, Any]]:
        """The lines of this study: those of others may be in the same file."""
        lines = read(self.path) if self.path.exists() else []
        return [line for line in lines if line["study"] == self.found.name]

    def without(self, planned: Iterable[Planned]) -> list[Planned]:
        """The runs that the file lacks; one that it has with other settings is refused."""
        finished = [line for line in self.lines() if line.get("finished")]
        there = {(line["network"], line["seed"]): line["config"] for line in finished}
        missing = []
        for entry in planned:
            stored = there.get((entry.run.path.parent.name, entry.config.seed))
            if stored is None:
                missing.append(entry)
            elif words := differing(Config.from_dict(stored, str(self.path)), entry.config, MAY_DIFFER):
                raise ConfigError(f"{self.path}: has {entry.name} with {words}; name another file with --results")
        return missing

    def add(self, entry: Planned) -> None:
        """Append a finished run; the first of a study comes behind what the study is."""
        line = line_of(entry.run, self.found.name)
        if not self.lines():
            append(self.path, {"study": self.found.name, "about": self.found.study.about})
        append(self.path, line, self.uncommitted)
