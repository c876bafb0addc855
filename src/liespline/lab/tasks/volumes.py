"""One's own volumes: scans in one folder per class or with a table, or one file in MedMNIST's layout."""

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..data import volumes
from ..data.arrays import Array
from ..data.files import DataError, collected
from ..data.listing import Samples, list_classes
from ..data.scans import Reading, Scan, cube_side
from ..data.scans.read import SCAN_FORMATS, is_scan, read_scan
from ..data.split import ALL, SPLITS, Joined, Split
from ..data.store import Item, aside, cache_folder, stored
from ..data.table import labels_of
from ..data.volumes import boxed
from ..settings import SETTINGS, Config, ConfigError
from .base import Task, splits_of_table, table_and_fold
from .defaults import DEFAULTS, OPTIONS

SCANS = Samples("volumes", SCAN_FORMATS, is_scan)
OF_FOLDERS = ("labels", "label_type", "folds", "fold", "intensity_range", "spacing")


def load_scans(
    path: Path,
    split: str,
    reading: Reading | None = None,
    *,
    labels: Path | None = None,
    kind: str | None = None,
    size: int | tuple[int, ...] | None = None,
    fold: int = 0,
    folds: int | None = None,
) -> Split:
    """A split of all scans: float32 volumes (B, C, *space) on cubes, targets as folders or the table say.

    All are put in the middle of one box, of `size` or as large as the largest. Read once and kept.
    """
    path, reading = Path(path), reading or Reading()
    found = list_classes(path, SCANS, split) if labels is None else labels_of(labels, path, SCANS, kind)
    key = f"{found.key}\n{reading}"
    scans = stored(path, key, lambda whole: _items(path, found.files, reading, whole), found.problems)
    rows = found.rows_of(split, scans.index["mark"], fold, folds)
    boxes, notes = boxed(scans, size)
    side = float(scans.index["side"])
    said = f"voxels are cubes of {side:g} mm; intensities are normalised {reading.words}"
    volumes = Split(
        boxes, found.targets[rows], found.labels, rows=rows, channels_last=True, names=found.names,
        dealt=found.splits is None, kind=found.kind, notes=[*found.notes, said, *notes],
    )  # fmt: skip
    volumes.side, volumes.voxels = side, float(np.median([cube_side(own) for own in scans.spacings]))
    return volumes


def _items(path: Path, files: Sequence[Path], reading: Reading, whole: dict[str, Array]) -> Iterator[tuple[int, Item]]:
    """All scans on cubes of one side; DataError, before any is kept, with every one that cannot be used."""
    problems: list[str] = []
    scans: dict[Path, Scan] = {}
    with tempfile.TemporaryFile(dir=cache_folder(path)) as waiting:
        for file in files:
            with collected(problems):
                scan = read_scan(file)
                scans[file] = replace(scan, values=aside(waiting, scan.values))
        counts = Counter(len(scan.values) for scan in scans.values())
        usual, count = max(counts.items(), key=lambda own: own[1], default=(1, 0))
        for file, scan in scans.items():
            if (channels := len(scan.values)) != usual:
                what = f"{channels} channels (a fourth axis)" if channels > 1 else "one channel"
                problems.append(f"{file}: has {what} where {count} volumes have {usual}; save one volume per file")
        if problems:
            raise DataError(problems)
        fixed = reading.for_all([scan.spacing for scan in scans.values()])
        whole["side"] = np.array(fixed.side)
        for row, scan in enumerate(scans.values()):
            yield row, Item.of(fixed.samples(scan), spacing=scan.spacing)


def load(config: Config, split: str) -> Split:
    """A split of the folder or of the file."""
    path = Path(str(config.data))
    if path.is_dir():
        reading = Reading(config.intensity_range, config.spacing)
        return load_scans(path, split, reading, kind=config.label_type, size=config.size, **table_and_fold(config))
    if given := [name for name in OF_FOLDERS if config[name] is not None]:
        options = ", ".join(SETTINGS[name].option for name in given)
        raise ConfigError(f"{options}: for folders of scans; {path} is no folder, but one file that says all of this")
    if split == ALL:
        return Joined({name: volumes.load(path, name, config.size) for name in SPLITS})
    return volumes.load(path, split, config.size)


TASK = Task(
    defaults=DEFAULTS["volumes"],
    data_help="a folder with one folder per class of NIfTI files, .npy files or folders of DICOM slices, any folder of "
    "them with --labels, or an .npz file with train_images, train_labels, val_…, test_… (MedMNIST's layout)",
    own=True,
    splits=splits_of_table,
    load_split=load,
    dimensions=(3,),
    options=OPTIONS["volumes"],
)
