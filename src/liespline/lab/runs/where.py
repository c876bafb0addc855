"""Where a trained network lies: in the folder of a run or its file, in the zoo inside liespline, or on the Hub."""

from pathlib import Path

from ...models.pretrained import folder_of
from ..data import DataError
from .folder import Run, folds_in

ZOO = Path(__file__).parents[2] / "zoo"


def located(path: Path) -> Path:
    """The folder or file that a name stands for: a path, `zoo:NAME`, or OWNER/NAME on the Hugging Face Hub."""
    kind, colon, name = str(path).partition(":")
    if kind == "zoo" and colon:
        known = sorted(file.parent.name for file in ZOO.glob("*/model.safetensors"))
        if name not in known:
            raise DataError(f"there is no zoo:{name}, but zoo:{', zoo:'.join(known)}")
        return ZOO / name
    try:
        return folder_of(path)
    except Exception as error:  # whatever a network, a server or a missing package says
        raise DataError(f"{path}: does not exist, and the Hugging Face Hub did not give it: {error}") from error


def model_files(path: Path) -> list[Path]:
    """The file of a trained network, or those of all folds."""
    path = located(path)
    return [model_file(folder) for folder in folds_in(path)] or [model_file(path)]


def model_file(path: Path) -> Path:
    """The file of one network, which may not be there."""
    if path.suffix == ".ckpt":
        raise DataError(f"{path}: is a checkpoint to resume; name the run's folder or its model.safetensors")
    run = Run(path)
    if folds := folds_in(path):
        raise DataError(f"{path}: holds {len(folds)} runs; name one of them, such as {folds[0]}")
    if run.config_file.is_file() and not run.model_file.is_file():
        raise DataError(f"{path}: holds a run that is not finished; resume it with `liespline train --resume {path}`")
    return run.model_file if path.is_dir() else path
