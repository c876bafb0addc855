"""Data work that is killed: CelebA's preparation, drawing tissue and faces, decoding one's own images."""

import hashlib
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from killing import DONE, REDONE, Work
from PIL import Image

from liespline.lab.data import DataError, images

sys.path.append(str(Path(__file__).parents[2]))  # where studies/ is
from studies.data import celeba, celeba_prepare, journal, pcam
from studies.data.synthetic import faces, tissue


def sha(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def stamped(folder: Path, pattern: str) -> dict[str, str]:
    """Files with the moment they were written: one that is written again shows, even with the same bytes."""
    return {str(p.relative_to(folder)): str(p.stat().st_mtime_ns) for p in folder.glob(pattern)}


def whole(folder: Path) -> dict[str, str]:
    """Every file but locks and what is hidden."""
    files = [p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")]
    return {str(p.relative_to(folder)): sha(p.read_bytes()) for p in files}


def prepare(folder: Path) -> int:
    journal._BLOCK = 4
    real = celeba_prepare.journal

    def watched(path, record, total, make, progress):
        done = path.stat().st_size // record.itemsize if path.exists() else 0

        def once(row):
            if row < done:
                raise SystemExit(REDONE)
            time.sleep(0.002)
            return make(row)

        return real(path, record, total, once, progress)

    celeba_prepare.journal = watched
    try:
        celeba.prepare(folder.parent.parent / "official", folder)
    except SystemExit:
        return REDONE
    return DONE


def unready(folder: Path) -> list[str]:
    """A set that is not finished must not be read."""
    if (folder / "prepared.json").exists():
        return celeba.check(folder)
    try:
        celeba.load(folder, "train")
    except DataError:
        return []
    return ["read before it was finished"]


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


def draw_faces(folder: Path) -> int:
    faces.synthesize(folder, identities=6, pictures=4, seed=1)
    return DONE


def unread_faces(folder: Path) -> list[str]:
    return celeba.check(folder) if (folder / "list_landmarks_celeba.txt").exists() else []


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
    "prepare": Work("prepare", prepare, whole, lambda f: stamped(f, "prepared.json"), unready),
    "tissue": Work("tissue", draw_tissue, end_of_tissue, lambda f: stamped(f, "*.h5"), torn_tissue),
    "faces": Work("faces", draw_faces, whole, lambda f: stamped(f, "list_*.txt"), unread_faces),
    "decode": Work("decode", decode, decoded, lambda f: stamped(f, ".liespline-cache/*.items")),
}
PLANTED = Work("planted", draw_in_place, end_of_tissue, lambda f: stamped(f, "*.h5"), torn_tissue)


def needed_first(root: Path) -> None:
    """Official files for the preparation."""
    faces.synthesize(root / "official", identities=16, pictures=4, seed=2)
