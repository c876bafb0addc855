"""One's own volumes: scans in one folder per class or with a table, or one file in MedMNIST's layout."""

from pathlib import Path

from ..data import Split, volumes
from ..data.scan_folders import SCANS, load_scans
from ..data.scans import Reading
from ..data.split import ALL, SPLITS, Joined
from ..data.table import labels_of
from ..settings import SETTINGS, Config, ConfigError
from .base import Task, named_splits, table_and_fold
from .defaults import DEFAULTS, OPTIONS

OF_FOLDERS = ("labels", "label_type", "folds", "fold", "intensity_range", "spacing")


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


def splits(config: Config) -> tuple[str, ...]:
    """Those that a table names."""
    if config.labels is None:
        return SPLITS
    return named_splits(labels_of(Path(config.labels), Path(str(config.data)), SCANS, config.label_type).splits)


TASK = Task(
    defaults=DEFAULTS["volumes"],
    data_help="a folder with one folder per class of NIfTI files, .npy files or folders of DICOM slices, any folder of "
    "them with --labels, or an .npz file with train_images, train_labels, val_…, test_… (MedMNIST's layout)",
    own=True,
    splits=splits,
    load_split=load,
    dimensions=(3,),
    options=OPTIONS["volumes"],
)
