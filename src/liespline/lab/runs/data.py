"""The data of a run: looked at before it starts, kept as a record, compared with the record afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from ..data import DataError, Split
from ..data.record import Changes, Record, changes
from ..data.split import ALL
from ..data.survey import Survey, copies, survey, unlike
from ..data.value_range import Comparison, ValueRange
from ..settings import Config
from ..tasks import find_task
from ..tasks.networks import Signature

WORDS = {"train": "train on", "valid": "validate", "test": "test"}
AS_ANOTHER = "score the set as it is, as another one, with --split all"


@dataclass(frozen=True)
class Look:
    """What a look at all images of a configuration's data found; nothing that stops training."""

    surveys: Mapping[str, Survey]
    remarks: tuple[str, ...]
    value_range: ValueRange | None = None
    """Of the training images."""

    @property
    def record(self) -> Record:
        """What to keep with the run."""
        return Record.of(self.surveys, self.value_range)


def look_at(config: Config) -> Look:
    """Look at every image; raises DataError with every problem that would stop training or spoil its numbers."""
    task = find_task(config)
    path = task.data_path(config)
    if task.check is not None and path is not None and (problems := task.check(path, config)):
        raise DataError(problems)
    return look_over(config, {name: task.load(config, name) for name in task.splits(config)})


def look_over(config: Config, splits: Mapping[str, Split]) -> Look:
    """Look at every image of these splits."""
    task = find_task(config)
    path = task.data_path(config)
    surveys = {name: survey(split) for name, split in splits.items()}
    if problems := unlike(surveys, str(path or config.task)):
        raise DataError(problems)
    problems, more = _missing(config, splits)
    if problems:
        raise DataError([f"{config.labels or path or config.task}: {problem}" for problem in problems])
    notes = [note for found in surveys.values() for note in found.split.notes]
    more += task.remarks(path) if task.remarks is not None and path is not None else []
    known = range_of(config, surveys["train"]) if "train" in surveys else None
    odd = [f"{name}: {remark}" for name, found in surveys.items() if (remark := compared(known, found).remark)]
    parts = [f"{len(found.labels):,} to {WORDS[name]}" for name, found in surveys.items()]
    dealt = [f"fold {config.fold} of {config.folds}: {', '.join(parts)}"] if config.fold is not None else []
    return Look(surveys, tuple(dict.fromkeys([*dealt, *notes, *more, *copies(surveys), *odd])), known)


def range_of(config: Config, train: Survey) -> ValueRange | None:
    """The range of values in training; None for volumes that are each normalised by themselves."""
    alone = train.split.side is not None and config.intensity_range is None
    return None if alone else ValueRange.of(train.statistics, train.dtype)


def compared(known: ValueRange | None, found: Survey) -> Comparison:
    """The images of a split beside the range of values in training."""
    comparison = Comparison(known)
    comparison.add(found.statistics)
    return comparison


def _missing(config: Config, splits: Mapping[str, Split]) -> tuple[list[str], list[str]]:
    """What training and validation lack of what is to be learned: problems, and remarks."""
    targets = {name: splits[name].targets for name in ("train", "valid") if name in splits}
    if "train" not in targets:
        return [], []
    if config.training.train_on_val:
        targets = {"train": torch.cat(list(targets.values()))}
    objective = find_task(config).objective(config, Signature.of(splits["train"]))
    return objective.missing(targets)


def check_there(config: Config) -> None:
    """Refuse to go on where the data of a run are no longer there, and say how to name their new place."""
    if config.data is not None and not Path(config.data).exists():
        seen = "" if Path(config.data).is_absolute() else f", seen from {Path.cwd()}"
        raise DataError(f"{config.data}: the data of this run are not there{seen}; say where they are with --data")


def splits_of(config: Config, record: Record | None, *names: str) -> dict[str, Split]:
    """Splits of a run's data: images that the run dealt out itself are found by the names in its record."""
    task = find_task(config)
    if record is None or not record.dealt:
        return {name: task.load(config, name) for name in names}
    whole = task.load(config, ALL)
    present = set(whole.names)
    if gone := [image for name in names for image in record.splits.get(name, {}) if image not in present]:
        raise DataError(f"{config.data}: is not what the run learned from: {Changes(removed=gone).words}")
    return {name: whole.named(list(record.splits[name])) for name in names}


def differences(config: Config, record: Record, *names: str) -> Changes:
    """What has happened to these splits of a run's data since it began."""
    task = find_task(config)
    now = {ALL: task.load(config, ALL)} if record.dealt else {name: task.load(config, name) for name in names}
    return changes(record, Record.of({name: survey(split) for name, split in now.items()}), names)


def refuse(changed: Changes, config: Config, advice: str) -> None:
    """Raise DataError with exactly what has changed, if anything has."""
    if changed:
        raise DataError(f"{config.data or config.task}: is not what the run began with: {changed.words}; {advice}")


def read_record(folder: Path) -> Record | None:
    """The record of the run in a folder; None for runs that were begun before there were any."""
    file = data_file(folder)
    return Record.read(file) if file.exists() else None


def data_file(folder: Path) -> Path:
    """Names, classes and fingerprints of all images of a run, split by split."""
    return folder / "data.json"
