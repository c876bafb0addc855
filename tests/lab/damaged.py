"""Files of every kind that the lab reads, what reads them, and how they are damaged: cut, overwritten, replaced."""

import hashlib
import pickle
import random
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image

from liespline.lab.data import DataError, volumes
from liespline.lab.data.pictures import read_array, strict_pillow
from liespline.lab.data.scans.read import read_scan
from liespline.lab.data.table import read_table
from liespline.lab.networks import Signature, build
from liespline.lab.runs.checkpoint import SafeCheckpoints
from liespline.lab.runs.model_file import save_weights
from liespline.lab.runs.trained import load
from liespline.lab.settings import Config, ConfigError, Network, Training
from liespline.lab.tasks import find_task, images
from liespline.lab.tasks.segment import load_pairs

from .data_files import dicom_series, nifti

Damage = Callable[[bytes, random.Random], bytes]


class Bomb:
    """What a pickle would run: make a file in the working folder."""

    def __reduce__(self):
        return (Path.touch, (Path("CODE-HAS-RUN"),))


def flipped(raw: bytes, draw: random.Random) -> bytes:
    """Some bits turned over, mostly near the ends, where headers and tables are."""
    out = bytearray(raw)
    for _ in range(draw.choice([1, 1, 2, 8])):
        near = draw.randrange(min(len(out), 600))
        out[draw.choice([near, len(out) - 1 - near, draw.randrange(len(out))])] ^= 1 << draw.randrange(8)
    return bytes(out)


DAMAGES: dict[str, Damage] = {
    "empty": lambda raw, draw: b"",
    "cut at the front": lambda raw, draw: raw[: min(len(raw) - 1, draw.randrange(1, 80))],
    "cut in the middle": lambda raw, draw: raw[: draw.randrange(len(raw) // 4, 3 * len(raw) // 4)],
    "last byte gone": lambda raw, draw: raw[:-1],
    "flipped": flipped,
    "flipped again": flipped,
    "another type": lambda raw, draw: draw.randbytes(len(raw)),
    "pickle": lambda raw, draw: pickle.dumps(Bomb()),
}
# After these nothing honest is left.
NEVER_SOUND = {"empty", "another type", "pickle"}


def judge(kind: str, how: str, honest: Path, folder: Path, seed: int) -> tuple[str, str]:
    """(refused | sound | WRONG, what was said) of a copy of an honest folder, whose file of this kind is damaged."""
    shutil.copytree(honest, folder)
    file = folder / KINDS[kind].file
    file.write_bytes(DAMAGES[how](file.read_bytes(), random.Random(f"{seed} {kind} {how}")))
    try:
        said = repr(KINDS[kind].read(folder))
    except (DataError, ConfigError) as error:
        named = any(part in str(error) for part in (file.name, str(folder), "task '"))
        return ("refused" if named else "WRONG"), str(error)
    except Exception as error:
        return "WRONG", f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(folder)
    sound = how not in NEVER_SOUND and said == repr(KINDS[kind].read(honest))
    return ("sound" if sound else "WRONG"), f"read as {said[:200]}"


CONFIG = Config("digits", network=Network(elements=2, widths=(2, 2, 3)), training=Training(epochs=2, batch_size=64))
SIGNATURE = Signature(1, (8, 8), tuple("0123456789"))


class Kind(NamedTuple):
    """A kind of file: how an honest one is made, and what reads it."""

    make: Callable[[Path], None]
    file: str
    """The one that is damaged, in the folder that `make` fills."""
    read: Callable[[Path], object]
    """What the reader makes of the folder: equal for files that mean the same."""


def content(tensors) -> str:
    parts = [f"{name} {tuple(v.shape)}".encode() + v.contiguous().numpy().tobytes() for name, v in tensors.items()]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def make_checkpoint(folder: Path) -> None:
    torch.manual_seed(0)
    state = {"state_dict": build(CONFIG, SIGNATURE).state_dict(), "epoch": 3, "global_step": 40}
    SafeCheckpoints().save_checkpoint(state | {"loops": {}, "note": ["x"] * 3}, folder / "last.ckpt")


def read_checkpoint(folder: Path) -> object:
    state = SafeCheckpoints().load_checkpoint(folder / "last.ckpt")
    return {k: content(v) if k == "state_dict" else v for k, v in state.items()}


def make_model(folder: Path) -> None:
    torch.manual_seed(0)
    about = {"config": asdict(CONFIG), "signature": asdict(SIGNATURE), "epoch": 1}
    save_weights(folder / "model.safetensors", build(CONFIG, SIGNATURE).state_dict(), about)


def read_model(folder: Path) -> object:
    trained = load(folder / "model.safetensors")
    return content(trained.network.state_dict()), trained.classes


def make_run(folder: Path) -> None:
    (folder / "config.yaml").write_text(CONFIG.to_yaml())


def read_config(folder: Path) -> object:
    return find_task(Config.load(folder / "config.yaml").task).name


def make_volumes(folder: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {}
    for split in ("train", "val", "test"):
        arrays[f"{split}_images"] = rng.integers(0, 256, (6, 5, 5, 5), np.uint8)
        arrays[f"{split}_labels"] = np.arange(6).reshape(-1, 1) % 2
    np.savez_compressed(folder / "v.npz", **arrays)


def make_images(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("data/a", "data/b"):
        (folder / name).mkdir(parents=True)
        for i, suffix in enumerate(("png", "jpg", "tif")):
            Image.fromarray(rng.integers(0, 256, (16, 16, 3), np.uint8)).save(folder / name / f"{i}.{suffix}")


def make_picture(name: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        Image.fromarray(np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)).save(folder / name)

    return make


def read_picture(name: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        with strict_pillow():
            pixels = read_array(folder / name)
        return pixels.dtype.kind, pixels.ndim == 2 or pixels.shape[-1] == 3  # sizes are the file's own affair

    return read


def make_scan(folder: Path) -> None:
    nifti(folder / "scan.nii.gz", np.arange(60, dtype=np.int16).reshape(3, 4, 5), np.diag([1.0, 1.0, 2.0, 1.0]))


def read_volume(path: Path) -> object:
    scan = read_scan(path)
    return scan.values.ndim, scan.values.dtype.kind in "iuf"  # sizes are the file's own affair


def make_pairs(folder: Path) -> None:
    draw = np.random.default_rng(0)
    for part, top in (("images", 256), ("masks", 2)):
        (folder / "set" / part).mkdir(parents=True)
        for i in range(7):
            pixels = draw.integers(0, top, (12, 16), np.uint8)
            Image.fromarray(pixels).save(folder / "set" / part / f"{i}.png")


def make_table(folder: Path) -> None:
    make_picture("a.png")(folder)
    make_picture("b.png")(folder)
    (folder / "labels.csv").write_text("file,label\na.png,cat\nb.png,dog\n")


def batch(split, rows=(0, 1)) -> object:
    """Shapes and kinds: the values of pixels and labels are the file's own affair."""
    pictures, targets = split.__getitems__(list(rows))
    return tuple(pictures.shape), str(pictures.dtype), tuple(targets.shape), len(split), len(split.classes)


KINDS = {
    "checkpoint": Kind(make_checkpoint, "last.ckpt", read_checkpoint),
    "model": Kind(make_model, "model.safetensors", read_model),
    "config": Kind(make_run, "config.yaml", read_config),
    "volumes": Kind(make_volumes, "v.npz", lambda f: batch(volumes.load(f / "v.npz", "train"))),
    "images": Kind(make_images, "data/a/0.png", lambda f: batch(images.load(f / "data", "train"))),
    "table": Kind(make_table, "labels.csv", lambda f: len(read_table(f / "labels.csv", f).labels)),
    "pairs": Kind(make_pairs, "set/masks/1.png", lambda f: batch(load_pairs(f / "set", "train", patch=8))),
    "scan": Kind(make_scan, "scan.nii.gz", lambda f: read_volume(f / "scan.nii.gz")),
    "slice": Kind(
        lambda f: dicom_series(f / "ct", np.zeros((3, 4, 5), int)), "ct/037.dcm", lambda f: read_volume(f / "ct")
    ),
    "png": Kind(make_picture("p.png"), "p.png", read_picture("p.png")),
    "jpeg": Kind(make_picture("p.jpg"), "p.jpg", read_picture("p.jpg")),
    "tiff": Kind(make_picture("p.tif"), "p.tif", read_picture("p.tif")),
}
