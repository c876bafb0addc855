"""One's own images or volumes with masks, split by folders, by a table or by name: which class is each pixel of?"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..data.files import DataError, collected, some
from ..data.listing import Listing, given_splits
from ..data.mask_split import MaskSplit
from ..data.pair_files import CLASSES, find_pairs, mask_items
from ..data.patches import MaskStore
from ..data.scans import Reading
from ..data.scans.read import stem
from ..data.split import SPLITS
from ..data.store import file_key, stored
from ..data.table import read_table
from ..networks import multiple_of
from ..settings import Config, ConfigError
from .base import Task, named_splits, splits_of_table, table_and_fold
from .defaults import DEFAULTS, OPTIONS
from .masks import Segmentation

NEEDED = ("train", "valid")
"""The folders that come together; one named test may be left out."""


def load_pairs(
    path: Path,
    split: str,
    reading: Reading | None = None,
    *,
    labels: Path | None = None,
    patch: int | None = None,
    fold: int = 0,
    folds: int | None = None,
) -> MaskSplit:
    """A split of the pairs in `path`, or DataError with every problem of every file.

    A table `labels` says in which split and group images are. Read once and kept.
    """
    path, reading = Path(path), reading or Reading()
    if not path.is_dir():
        raise DataError(f"{path}: is no folder; expected a folder with folders images and masks in it")
    given = given_splits(path, NEEDED)
    pairs, problems, notes = find_pairs(given or {"": path})
    names = [pair.name for pair in pairs]
    found = Listing([pair.image for pair in pairs], names, "masks", (), np.zeros(0))
    if given:
        found = replace(found, splits=tuple(pair.split for pair in pairs))
    if labels is not None:
        with collected(problems):
            found = _as_in(labels, path, found)
    stated = (path / CLASSES).read_bytes().hex() if (path / CLASSES).exists() else ""
    key = "\n".join([found.key, *(file_key(pair.mask) for pair in pairs), f"{reading} {stated}"])
    kept = stored(path, key, lambda whole: mask_items(path, pairs, reading, whole), problems)
    items = MaskStore(kept.path, kept.index)
    if folds is not None:
        found = replace(found, splits=None)
    rows = found.rows_of(split, items.index["mark"], fold, folds)
    return MaskSplit(items, names, rows, patch, [*notes, *_remarks(items, reading)], dealt=found.splits is None)


def _as_in(labels: Path, path: Path, folders: Listing) -> Listing:
    """With the splits and groups of a table whose column `file` names images in the folder `images`."""
    table = read_table(labels, path / "images")
    if table.labels:
        raise DataError(f"{labels}: has the columns {', '.join(table.labels)}; for masks it says split and group only")
    at = {stem(file): row for row, file in enumerate(table.files)}
    if missing := [name for name in folders.names if name not in at]:
        raise DataError(f"{labels}: has no row for {some(missing)}; every image with a mask needs one")
    splits, groups = (own and tuple(own[at[name]] for name in folders.names) for own in (table.splits, table.groups))
    return replace(folders, splits=splits or folders.splits, groups=groups)


def _remarks(items: MaskStore, reading: Reading) -> Sequence[str]:
    counts, classes, side = items.counts, items.index["classes"].tolist(), float(items.index["side"])
    shares = counts.sum(0) / max(1, counts.sum())
    text = ", ".join(f"{name} {100 * share:.2g} %" for name, share in zip(classes, shares, strict=True))
    notes = [f"{len(items)} images with masks: {text}"]
    rare = [f"{name} in {n}" for name, n in zip(classes, (counts > 0).sum(0), strict=True) if n < len(SPLITS)]
    if rare:
        notes.append(f"classes in fewer than {len(SPLITS)} images, too few to train and test on: {', '.join(rare)}")
    if side:
        notes.append(f"voxels are cubes of {side:g} mm; intensities are normalised {reading.words}")
    return notes


def load(config: Config, split: str) -> MaskSplit:
    reading = Reading(config.intensity_range, config.spacing)
    found = load_pairs(Path(str(config.data)), split, reading, patch=config.patch, **table_and_fold(config))
    multiple = multiple_of(config.network)
    if any(side % multiple for side in found.space):
        raise ConfigError(
            f"patch = {found.space[0]}: the network halves {len(config.network.widths) - 1} times; "
            f"take a multiple of {multiple}"
        )
    return found


def splits(config: Config) -> tuple[str, ...]:
    """Those that a table names, or folders."""
    given = given_splits(Path(str(config.data)), NEEDED) if config.labels is None else {}
    return named_splits(tuple(given)) if given else splits_of_table(config, "images")


TASK = Task(
    defaults=DEFAULTS["segment"],
    data_help="a folder with folders images and masks in it, with files of equal names",
    own=True,
    splits=splits,
    load_split=load,
    dimensions=(2, 3),
    options=OPTIONS["segment"],
    networks=("unet",),
    objective=lambda config, signature: Segmentation(
        signature.classes, config.training.class_weights, config.training.label_smoothing
    ),
)
