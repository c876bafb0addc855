"""Data work that is killed: drawing tissue, decoding one's own images."""

import hashlib
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from killing import DONE, Work
from PIL import Image

from liespline.lab.data import DataError, images

sys.path.append(str(Path(__file__).parents[2]))  # where studies/ is
from studies.data import pcam
from studies.data.synthetic import tissue


def sha(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def stamped(folder: Path, pattern: str) -> dict[str, str]:
    """Files with the moment they were written: one that is written again shows, even with the same bytes."""
    return {str(p.relative_to(folder)): str(p.stat().st_mtime_ns) for p in folder.glob(pattern)}


def draw_tissue(folder: Path) -> int:
    tissue.synthesize(folder, train=24, valid=8, test=8, seed=1)
    return DONE


def torn_tissue(folder: Path) -> list[str]:
    """Files under official names that do not read; that one is not there yet is no fault."""
    return [p for split in pcam.available(folder) for p in problems(folder, split) if "does not exist" not in p]


def problems(folder: Path, split: str) -> list[str]:
    try:
        pcam.load(folder, split)
    except DataError as error:
        return error.problems
    return []


def end_of_tissue(folder: Path) -> dict[str, str]:
    found = {}
    for split in ("train", "valid", "test"):
        data = pcam.load(folder, split)
        batch, targets = data.__getitems__(range(len(data)))
        found[split] = sha(batch.contiguous().numpy().tobytes() + targets.numpy().tobytes())
    return found


def draw_in_place(folder: Path) -> int:
    """A planted fault: tissue drawn into files of the final names."""
    tissue.replaced = nullcontext
    return draw_tissue(folder)


def decode(folder: Path) -> int:
    """Own images, decoded once into a cache beside them."""
    if not (folder / "data" / "b" / "last").exists():
        draw = np.random.default_rng(0)
        for name in ("a", "b"):
            (folder / "data" / name).mkdir(parents=True, exist_ok=True)
            for i in range(40):
                Image.fromarray(draw.integers(0, 256, (40, 40), np.uint8)).save(folder / "data" / name / f"{i}.png")
        (folder / "data" / "b" / "last").touch()
    images.load(folder / "data", "train")
    return DONE


def decoded(folder: Path) -> dict[str, str]:
    data = images.load(folder / "data", "train")
    return {"pixels": sha(data.__getitems__(range(len(data)))[0].numpy().tobytes())}


DATA = {
    "tissue": Work("tissue", draw_tissue, end_of_tissue, lambda f: stamped(f, "*.h5"), torn_tissue),
    "decode": Work("decode", decode, decoded, lambda f: stamped(f, ".liespline-cache/*.items")),
}
PLANTED = Work("planted", draw_in_place, end_of_tissue, lambda f: stamped(f, "*.h5"), torn_tissue)
