"""One's own images, one folder per class."""

from pathlib import Path

from torch import nn

from ..data import DataError, Split, images
from ..data.folds import PARTS
from ..data.labelled import load_labelled
from ..data.split import ALL, SPLITS
from ..data.table import read_table
from ..settings import Config, ConfigError
from .augmentations import MOVES
from .base import Task, classification
from .defaults import DEFAULTS
from .labelled import InUnits, Numbers, Tags
from .networks import Signature
from .objectives import Objective
from .own import fitting_network, parts_of, with_notes

NETWORK = DEFAULTS["images"].network


def load(config: Config, split: str) -> Split:
    """A split of the folder."""
    if config.labels is None:
        found = images.load(Path(str(config.data)), split, config.size, *parts_of(config))
    else:
        kind, (fold, folds) = config.labels_are, parts_of(config)
        found = load_labelled(
            Path(str(config.data)), Path(config.labels), split, kind=kind, size=config.size, fold=fold,
            folds=folds or PARTS,
        )  # fmt: skip
    return with_notes(NETWORK, config, found) if split == "train" else found


def check(path: Path, config: Config) -> list[str]:
    """Every problem that would stop training."""
    if config.labels is None:
        return images.check(path, config.size)
    try:
        load(config, ALL)
    except DataError as error:
        return error.problems
    return []


def transparent(path: Path) -> list[str]:
    """A remark on the images of class folders that are not opaque everywhere."""
    try:
        return images.transparent(path)
    except DataError:  # the images of a table lie in any folders
        return []


def splits(config: Config) -> tuple[str, ...]:
    """A table that says which split an image is of may leave testing out."""
    if config.labels is None:
        return SPLITS
    table = read_table(Path(config.labels), Path(str(config.data)), config.labels_are)
    return SPLITS if table.splits is None else tuple(split for split in SPLITS if split in table.splits)


def network(config: Config, signature: Signature) -> nn.Module:
    """The general classifier; for numbers, in their units."""
    made = fitting_network(NETWORK, config, signature)
    return nn.Sequential(made, InUnits(signature.scaling)) if signature.kind == "numbers" else made


def objective(config: Config, signature: Signature) -> Objective:
    """By what the labels are."""
    if signature.kind in ("numbers", "tags") and (share := config.training.label_smoothing):
        raise ConfigError(f"label_smoothing = {share}: is for classes, not for {signature.kind}; leave it out")
    if signature.kind == "numbers":
        return Numbers(signature.classes, signature.scaling)
    return Tags(signature.classes) if signature.kind == "tags" else classification(config, signature)


TASK = Task(
    defaults=DEFAULTS["images"],
    data_help="a folder with one folder of PNG, JPEG or TIFF files per class, or any folder with --labels",
    check=check,
    prepared=lambda pixels, config: pixels if config.size is None else images.square(pixels, config.size),
    remarks=transparent,
    whole=lambda config: load(config, ALL),
    splits=splits,
    load_split=load,
    augmentations=MOVES,
    network=network,
    objective=objective,
)
