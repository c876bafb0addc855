"""Official files from their official places: `python -m studies.data.fetch pcam|mnist|adrenalmnist3d OUT`.

They are checked against the checksums published with them.
"""

import gzip
import shutil
import zlib
from pathlib import Path
from typing import Annotated

import pooch
import typer

from liespline.lab.data.files import DataError, replacing
from liespline.lab.settings import one_of

from ..command import Target, console, progress_bar, run
from .journal import Progress

# Where, and the files' MD5 sums. CelebA is not here: its terms ask each user to fetch it by hand.
FILES: dict[str, tuple[str, dict[str, str]]] = {
    "pcam": (
        "https://zenodo.org/records/2546921/files/",
        {
            "camelyonpatch_level_2_split_train_x.h5.gz": "1571f514728f59376b705fc836ff4b63",
            "camelyonpatch_level_2_split_train_y.h5.gz": "35c2d7259d906cfc8143347bb8e05be7",
            "camelyonpatch_level_2_split_valid_x.h5.gz": "d5b63470df7cfa627aeec8b9dc0c066e",
            "camelyonpatch_level_2_split_valid_y.h5.gz": "2b85f58b927af9964a4c15b8f7e8f179",
            "camelyonpatch_level_2_split_test_x.h5.gz": "d8c2d60d490dbd479f8199bdfa0cf6ec",
            "camelyonpatch_level_2_split_test_y.h5.gz": "60a7035772fbdb7f34eb86d4420cf66a",
        },
    ),
    "mnist": (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        {
            "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
            "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
            "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
        },
    ),
    "adrenalmnist3d": (
        "https://zenodo.org/records/10519652/files/",
        {"adrenalmnist3d.npz": "bbd3c5a5576322bc4cdfea780653b1ce"},
    ),
}


def fetch(name: str, out: Path, progress: Progress | None = None) -> list[Path]:
    """Fetch a data set into `out` and return its files; those that are there already are kept.

    `.h5.gz` files are unpacked, since they are read by mapping. Raises DataError when a file cannot be fetched or is
    not the published one.
    """
    if name not in FILES:
        raise ValueError(f"data set {name!r} is unknown; choose one of {', '.join(FILES)}")
    place, sums = FILES[name]
    out = Path(out)
    pooch.get_logger().setLevel("WARNING")
    done = []
    for number, (file, md5) in enumerate(sums.items()):
        if progress:
            progress(name, number, len(sums))
        target = out / (file.removesuffix(".gz") if file.endswith(".h5.gz") else file)
        if not target.exists():
            packed = _retrieve(place + file, md5, out, file)
            if packed != target:
                _unpack(packed, target)
        done.append(target)
    if progress:
        progress(name, len(sums), len(sums))
    return done


def _retrieve(url: str, md5: str, out: Path, file: str) -> Path:
    try:
        return Path(pooch.retrieve(url, f"md5:{md5}", fname=file, path=out))
    except (OSError, ValueError) as error:  # what requests raises are OSErrors
        raise DataError(f"{url}: could not be fetched ({error}); fetch it by hand into {out}") from error


def _unpack(packed: Path, target: Path) -> None:
    try:
        with gzip.open(packed) as source, replacing(target) as stream:
            shutil.copyfileobj(source, stream, 1 << 20)
    except (EOFError, zlib.error) as error:
        raise DataError(f"{packed}: cannot be unpacked ({error}); remove it and fetch it again") from error
    packed.unlink()


def main(
    name: Annotated[str, typer.Argument(metavar="pcam|mnist|adrenalmnist3d", show_default=False)], out: Target
) -> None:
    """Download official files from their official place and check them against the published sums."""
    one_of("data to fetch", name, FILES)
    with progress_bar() as report:
        paths = fetch(name, out, report)
    console.print(f"{out}: {', '.join(path.name for path in paths)}")


if __name__ == "__main__":
    run(main)
