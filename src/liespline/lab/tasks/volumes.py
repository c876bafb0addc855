"""One's own volumes: scans in one folder per class or with a table, or one file in MedMNIST's layout."""

from functools import partial
from pathlib import Path

from ..data import Split, volumes
from ..data.scan_folders import SCANS, load_scans
from ..data.scans import Reading
from ..data.split import ALL, SPLITS, Joined
from ..data.table import labels_of
from ..settings import SETTINGS, Config, ConfigError
from .base import Task
from .defaults import DEFAULTS, OPTIONS
from .fitting import fitting, parts_of, remarks
from .labelled import by_labels

NETWORK = DEFAULTS["volumes"].network
OF_FOLDERS = ("labels", "label_type", "folds", "fold", "intensity_range", "spacing")


def load(config: Config, split: str) -> Split:
    """A split of the folder or of the file."""
    path = Path(str(config.data))
    if path.is_dir():
        fold, folds = parts_of(config)
        return load_scans(
            path, split, Reading(config.intensity_range, config.spacing),
            labels=Path(config.labels) if config.labels else None, kind=config.label_type, size=config.size,
            fold=fold, folds=folds,
        )  # fmt: skip
    _only_for_folders(config, path)
    if split == ALL:
        return Joined({name: volumes.load(path, name, config.size) for name in SPLITS})
    return volumes.load(path, split, config.size)


def _only_for_folders(config: Config, path: Path) -> None:
    if given := [name for name in OF_FOLDERS if config[name] is not None]:
        options = ", ".join(SETTINGS[name].option for name in given)
        raise ConfigError(f"{options}: for folders of scans; {path} is no folder, but one file that says all of this")


def splits(config: Config) -> tuple[str, ...]:
    """A table that says which split a scan is of may leave testing out."""
    if config.labels is None:
        return SPLITS
    table = labels_of(Path(config.labels), Path(str(config.data)), config.label_type, SCANS)
    return SPLITS if table.splits is None else tuple(split for split in SPLITS if split in table.splits)


TASK = Task(
    defaults=DEFAULTS["volumes"],
    data_help="a folder with one folder per class of NIfTI files, .npy files or folders of DICOM slices, any folder of "
    "them with --labels, or an .npz file with train_images, train_labels, val_…, test_… (MedMNIST's layout)",
    load_split=load,
    whole=True,
    splits=splits,
    dimensions=(3,),
    options=OPTIONS["volumes"],
    fitting=partial(fitting, NETWORK),
    remarks=partial(remarks, NETWORK),
    objective=by_labels,
)
