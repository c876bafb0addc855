"""`liespline evaluate`: a trained network on a split of its own data, or on another set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..data import DataError, Split
from ..data.files import grouped
from ..data.record import Record
from ..data.split import ALL, SPLITS
from ..data.survey import survey
from ..runs.data import AS_ANOTHER, check_there, compared, differences, read_record, refuse, splits_of
from ..runs.folder import folds_in
from ..runs.trained import Trained, load
from ..settings import Config, ConfigError, one_of
from ..tasks import find_task
from ..tasks.networks import Signature
from ..whole import unlike_voxels
from .evaluate import best_device, score
from .predict import OtherSizes


def score_file(
    checkpoint: Path,
    data: Path | None,
    name: str,
    labels: Path | None = None,
    other_sizes: OtherSizes = "refuse",
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
    config = as_learned(config, trained, other_sizes)
    folds = folds_in(checkpoint)
    if folds and data is None:
        raise DataError(
            f"{checkpoint}: is the mean of {len(folds)} networks that were tested on images of their own; those scores "
            "are in its results.json. Score another set with --data"
        )
    records = [read_record(folder) for folder in folds or [checkpoint if checkpoint.is_dir() else checkpoint.parent]]
    record = None if folds else records[0]
    own = name != ALL and (data is None or (record is not None and record.dealt))
    split, remarks = _own(config, record, name) if own else (find_task(config).load(config, name), [])
    if split.dealt and not own and name != ALL:
        raise DataError(f"{config.data}: nothing says which images are of split {name}; {AS_ANOTHER}")
    where = str(config.data or config.task)
    if not len(split):
        raise DataError(f"{where}: has no {name} images; --split names another part, such as valid")
    split = fitting(split, trained, where, other_sizes)
    remarks += unlike_remarks(split, trained.signature)
    results: dict[str, Any] = {"split": name, "images": len(split)}
    looked = survey(split)
    if remark := compared(trained.value_range, looked).remark:
        remarks.append(f"Warning: {remark}")
    if not own and (kept := [one for one in records if one is not None]):
        learned = set().union(*(one.marks("train") | one.marks("valid") for one in kept))
        results["train_overlap"] = sum(mark in learned for mark in looked.marks)
        if results["train_overlap"]:
            remarks.append(
                f"{results['train_overlap']:,} of these {len(split):,} images were trained on: "
                "the numbers are optimistic"
            )
    return results | score(trained.to(best_device(config)), split), remarks


def unlike_remarks(split: Split, signature: Signature) -> list[str]:
    """Warnings of volumes whose voxels are of another size altogether than those of training."""
    known = zip(split.names, split.spacings, strict=False)  # nothing for images
    return grouped([f"{name}: {text}" for name, own in known if (text := unlike_voxels(signature, own))])


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


def as_learned(config: Config, trained: Trained, other_sizes: OtherSizes = "refuse") -> Config:
    """With voxels and a box of the size in training, whatever the data at hand would have; images too if resized."""
    signature = trained.signature
    if signature.spacing is None:
        return resized(config, signature.space) if other_sizes == "resize" else config
    return config.updated(spacing=signature.spacing, size=signature.space if config.task == "volumes" else None)


def resized(config: Config, space: tuple[int, ...]) -> Config:
    """With the size of training as `--size`."""
    if "size" not in find_task(config).options:
        raise ConfigError(f"--resize: images of task {config.task} are not scaled; leave it out")
    if len(space) == 2 and len(set(space)) > 1:
        size = "×".join(map(str, reversed(space)))
        raise ConfigError(f"--resize: --size makes squares, and the network was trained on {size}; resize the images")
    return config.updated(size=space[0] if len(space) == 2 else space)


def fitting(split: Split, trained: Trained, where: str, other_sizes: OtherSizes = "refuse") -> Split:
    """The images as the network takes them: its classes, its colours, and a size it can answer for."""
    if (split.side is None) != (trained.signature.spacing is None):
        learned, here = _source(trained.signature.spacing), _source(split.side)
        raise DataError(f"{where}: the network learned from {learned}, and these are {here}")
    split = split.among(trained.classes, where).in_colours(trained.signature.in_channels, where)
    trained.check_size(split.space, where, any_size=other_sizes == "any")
    return split


def _source(side: float | None) -> str:
    return "scans with a spacing" if side is not None else "arrays without a spacing"
