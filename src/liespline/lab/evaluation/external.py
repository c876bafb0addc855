"""`liespline evaluate`: a trained network on a split of its own data, or on another set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..data import DataError, Split
from ..data.record import Record
from ..data.split import ALL, SPLITS
from ..data.survey import survey
from ..runs.data import AS_ANOTHER, check_there, differences, read_record, refuse, splits_of
from ..runs.trained import Trained, load
from ..settings import Config, one_of
from ..tasks import find_task
from .evaluate import best_device, score


def score_file(
    checkpoint: Path, data: Path | None, name: str, labels: Path | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Scores of a trained network, and what must be known to read them.

    A split of the run's own data is the one that the run kept, image by image: data that have changed are refused.
    """
    one_of("split", name, (*SPLITS, ALL))
    trained = load(checkpoint)
    config = trained.config.updated(
        data=None if data is None else str(data), labels=None if labels is None else str(labels)
    )
    check_there(config)
    config = as_learned(config, trained)
    record = read_record(checkpoint if checkpoint.is_dir() else checkpoint.parent)
    own = name != ALL and (data is None or (record is not None and record.dealt))
    split, remarks = _own(config, record, name) if own else (find_task(config).load(config, name), [])
    if split.dealt and not own and name != ALL:
        raise DataError(f"{config.data}: nothing says which images are of split {name}; {AS_ANOTHER}")
    where = str(config.data or config.task)
    if not len(split):
        raise DataError(f"{where}: has no {name} images; --split names another part, such as valid")
    split = fitting(split, trained, where)
    results: dict[str, Any] = {"split": name, "images": len(split)}
    if record is not None and not own:
        learned = record.marks("train") | record.marks("valid")
        results["seen"] = sum(mark in learned for mark in survey(split).marks)
        if results["seen"]:
            remarks.append(
                f"{results['seen']:,} of these {len(split):,} images were there in training: the numbers flatter"
            )
    return results | score(trained.to(best_device(config)), split), remarks


def _own(config: Config, record: Record | None, name: str) -> tuple[Split, list[str]]:
    """A split as the run kept it, and a remark on images that came later."""
    if record is None:
        split = find_task(config).load(config, name)
        if split.dealt:
            raise DataError(f"{config.data}: the run kept no record of its splits (data.json); {AS_ANOTHER}")
        return split, []
    changed = differences(config, record, name)
    refuse(changed, config, f"bring it back, or {AS_ANOTHER}")
    remarks = [f"images that came later are not scored: {changed.words}"] if changed.added else []
    return splits_of(config, record, name)[name], remarks


def as_learned(config: Config, trained: Trained) -> Config:
    """With voxels and a box of the size that the network learned from, whatever the data at hand would have."""
    signature = trained.signature
    if signature.spacing is None:
        return config
    return config.updated(spacing=signature.spacing, size=signature.space if config.task == "volumes" else None)


def fitting(split: Split, trained: Trained, where: str) -> Split:
    """The images as the network takes them: its classes, its colours, and a size it can answer for."""
    if (split.side is None) != (trained.signature.spacing is None):
        learned, here = _source(trained.signature.spacing), _source(split.side)
        raise DataError(f"{where}: the network learned from {learned}, and these are {here}")
    split = split.among(trained.classes, where).in_colours(trained.signature.in_channels, where)
    trained.check_size(split.space, where)
    return split


def _source(side: float | None) -> str:
    return "scans with a spacing" if side is not None else "arrays without a spacing"
