"""The folder of a run: its configuration, the versions and commit behind it, its metrics and results."""

import json
import platform
import subprocess
import sys
from collections.abc import Container, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import torch

from ..data.files import DataError, existing, lock, replacing, write_text
from ..data.manifest import Manifest
from ..settings import SETTINGS, Config, ConfigError
from ..tasks import of_other_tasks
from .old import results_renamed

PACKAGES = ("liespline", "torch", "lightning", "torchmetrics", "numpy", "roma")
STAMP = ".commit"
"""The file at the root of a copy without `.git` that says its commit."""
STAMP_COMMAND = f"git describe --always --abbrev=40 --exclude='*' --dirty=+changes > COPY/{STAMP}"
"""What writes it, run where the copy came from."""


class Run:
    """Where one run keeps its files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file = path / "config.yaml"  # everything needed to repeat the run
        self.manifest_file = path / "data.json"  # names, classes and fingerprints of all its images, split by split
        self.metrics_file = path / "metrics.jsonl"  # one JSON object per epoch
        self.last_checkpoint = path / "checkpoints" / "last.ckpt"  # the whole state after an epoch, for `--resume`
        self.best_checkpoint = path / "checkpoints" / "best.ckpt"  # parameters of the best epoch by validation
        self.model_file = path / "model.safetensors"  # the best network, ready to use
        self.results_file = path / "results.json"  # the final numbers: a run that has them is finished
        self.report_file = path / "report.html"  # the page that shows it all

    @property
    def finished(self) -> bool:
        """Whether the final numbers are there."""
        return self.results_file.is_file()

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do; a run that was handed on without its network can have no report any more."""
        return self.finished and (self.report_file.is_file() or not self.model_file.is_file())

    @classmethod
    def create(cls, path: Path, config: Config) -> Self:
        """Start a run folder; one that already holds a run is refused."""
        run = cls(path)
        if run.config_file.exists():
            raise ConfigError(f"{path} already holds a run; resume it with --resume {path}, or choose another --out")
        _make(path / "checkpoints")
        write_text(path / "environment.json", json.dumps(environment(), indent=1) + "\n")
        # The configuration is written last: a folder that has one is a complete start.
        write_text(run.config_file, config.to_yaml(of_other_tasks(config)))
        return run

    @classmethod
    def open(cls, path: Path) -> tuple[Self, Config]:
        """An existing run and its configuration."""
        run = cls(path)
        if not run.config_file.is_file():
            raise ConfigError(
                f"{path}: holds no run (there is no config.yaml); name the folder of a run"
                + "".join(f", such as {folder}" for folder in folds_in(path)[:1])
            )
        return run, Config.load(run.config_file)

    def keep_config(self, config: Config, unfinished: bool) -> None:
        """Write changed settings; a run that becomes `unfinished` loses its results first, and never has others'."""
        if unfinished:
            self.report_file.unlink(missing_ok=True)
            self.results_file.unlink(missing_ok=True)
        write_text(self.config_file, config.to_yaml(of_other_tasks(config)))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other process out of this run; the second one is told who is first."""
        _make(self.path)
        with lock(self.path / "lock", wait=False):
            yield

    def write_results(self, results: dict[str, Any]) -> None:
        """Write the final numbers, whole or not at all."""
        write_text(self.results_file, json.dumps(results, indent=1) + "\n")

    def manifest(self) -> Manifest | None:
        """The images that the run began with; None for runs that were begun before they were kept."""
        return Manifest.read(self.manifest_file) if self.manifest_file.exists() else None

    def read_results(self, *needed: str) -> dict[str, Any]:
        """The final numbers of a finished run, by their names of today; DataError if a needed one is not there."""
        file = existing(self.results_file, "the results of a finished run")
        results = results_renamed(_parsed(file.read_bytes(), str(file)))
        if missing := [name for name in needed if name not in results]:
            raise DataError(f"{file}: has no {missing[0]!r}; remove it and resume with --resume {self.path}")
        return results

    def read_metrics(self) -> list[dict[str, Any]]:
        """The epochs' metrics; a last line torn by a kill, without its line break, is left out."""
        lines = self.metrics_file.read_bytes().split(b"\n")[:-1] if self.metrics_file.exists() else []
        return [_parsed(line, f"{self.metrics_file}, line {number}") for number, line in enumerate(lines, 1)]

    def keep_metrics_before(self, epoch: int) -> None:
        """Drop the lines of epochs that a resumed run is about to do again, so that none is there twice."""
        rows = [row for row in self.read_metrics() if row["epoch"] < epoch]
        with replacing(self.metrics_file) as stream:
            stream.writelines((json.dumps(row) + "\n").encode() for row in rows)

    def append_metrics(self, row: dict[str, Any]) -> None:
        with self.metrics_file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")


def new_folder(root: Path, name: str) -> Path:
    """`root/name`, or `root/name-2`, `-3`, …: the first that holds no run yet."""
    path, count = root / name, 1
    while (path / "config.yaml").exists():
        count += 1
        path = root / f"{name}-{count}"
    return path


def folds_in(path: Path) -> list[Path]:
    """The runs in a folder of `--folds`, in order; none in other folders."""
    found = [path / f"fold-{number}" for number in range(1, len(list(path.glob("fold-*"))) + 1)]
    return [folder for folder in found if (folder / "config.yaml").is_file()]


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be created ({error.strerror}); choose another folder") from error


def _parsed(text: bytes, where: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except ValueError as error:
        raise DataError(f"{where}: is no JSON ({error}); it is truncated or damaged") from error
    if not isinstance(values, dict):
        raise DataError(f"{where}: holds {type(values).__name__}; expected names and values")
    return values


def environment() -> dict[str, Any]:
    """The exact versions, commit and machine that a result came from."""
    gpu = torch.cuda.is_available()
    processor = torch.cuda.get_device_name() if gpu else f"{torch.get_num_threads()} threads"
    return {
        "packages": {name: version(name) for name in PACKAGES},
        "python": sys.version.split()[0],
        "commit": git_commit(),
        "machine": f"{platform.system()} {platform.machine()}, {processor}",
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
    }


def git_commit() -> str | None:
    """The commit of the source in use, with `+changes` if files differ from it; None outside a checkout or a copy."""
    here = Path(__file__).parents[2]  # the package
    try:
        # Installed into some other project's checkout, this file is there but not part of it.
        _git(here, "ls-files", "--error-unmatch", __file__)
        commit = _git(here, "rev-parse", "HEAD")
        changed = _git(here, "status", "--porcelain", "--untracked-files=no", "--", ".")
    except (OSError, subprocess.SubprocessError):
        stamp = here.parents[1] / STAMP
        return stamp.read_text(encoding="utf-8").strip()[:60] or None if stamp.is_file() else None
    return commit + ("+changes" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()


def check_same_settings(folder: Path, wanted: Config, may_differ: Container[str]) -> None:
    """Refuse to resume a run that was begun with other settings than these, but for some that may differ."""
    _, config = Run.open(folder)
    if config.task != wanted.task:
        raise ConfigError(f"{folder}: is of task {config.task}, not {wanted.task}; choose another folder with --out")
    if words := differing(config, wanted, may_differ):
        raise ConfigError(f"{folder}: was begun with {words}; choose another folder with --out")


def differing(config: Config, wanted: Config, may_differ: Container[str]) -> str:
    """The settings in which a configuration is not as wanted, in words, but for some that may differ."""
    others = [name for name in SETTINGS if name not in may_differ and config[name] != wanted[name]]
    return ", ".join(f"{name} = {config[name]}, not {wanted[name]}" for name in others)
