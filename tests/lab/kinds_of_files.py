"""Honest files of every kind that the lab reads, and their readers."""

import gzip
import hashlib
import struct
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import torch
from PIL import Image

from liespline.lab.data import images, volumes
from liespline.lab.data.pictures import read_array, strict_pillow
from liespline.lab.networks import build
from liespline.lab.runs.checkpoint import SafeCheckpoints, save_weights
from liespline.lab.runs.trained import load
from liespline.lab.settings import Config, Network, Training
from liespline.lab.tasks import find_task
from liespline.lab.tasks.networks import Signature
from studies.data import celeba, mnist, pcam
from studies.data.synthetic import faces

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


def make_pcam(folder: Path, **options) -> None:
    rng = np.random.default_rng(0)
    for part, shape in (("x", (6, 96, 96, 3)), ("y", (6, 1, 1, 1))):
        with h5py.File(folder / pcam.file_name("train", part), "w") as file:
            file.create_dataset(part, data=rng.integers(0, 2, shape, np.uint8), **(options if part == "x" else {}))


def make_volumes(folder: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {}
    for split in ("train", "val", "test"):
        arrays[f"{split}_images"] = rng.integers(0, 256, (6, 5, 5, 5), np.uint8)
        arrays[f"{split}_labels"] = np.arange(6).reshape(-1, 1) % 2
    np.savez_compressed(folder / "v.npz", **arrays)


def idx(shape: tuple[int, ...], body: bytes) -> bytes:
    return struct.pack(f">4B{len(shape)}I", 0, 0, 8, len(shape), *shape) + body


def make_mnist(folder: Path) -> None:
    for name in ("train", "t10k"):
        for part, raw in (("images-idx3", idx((6, 28, 28), bytes(6 * 784))), ("labels-idx1", idx((6,), bytes(6)))):
            (folder / f"{name}-{part}-ubyte.gz").write_bytes(gzip.compress(raw))


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


def make_faces(folder: Path) -> None:
    faces.synthesize(folder / "src", identities=6, pictures=2, seed=1)


def make_prepared(folder: Path) -> None:
    faces.synthesize(folder / "src", identities=8, pictures=4, seed=1)
    celeba.prepare(folder / "src", folder / "out")


def batch(split, rows=(0, 1)) -> object:
    """Shapes and kinds: the values of pixels and labels are the file's own affair."""
    pictures, targets = split.__getitems__(list(rows))
    return tuple(pictures.shape), str(pictures.dtype), tuple(targets.shape), len(split), len(split.classes)


def read_faces(folder: Path) -> object:
    problems = celeba.check(folder / "src")
    if problems:
        raise images.DataError(problems)
    return "sound"


CHUNKS = {"chunks": (2, 96, 96, 3)}
X = pcam.file_name("train", "x")
KINDS = {
    "checkpoint": Kind(make_checkpoint, "last.ckpt", read_checkpoint),
    "model": Kind(make_model, "model.safetensors", read_model),
    "config": Kind(make_run, "config.yaml", read_config),
    "pcam": Kind(make_pcam, X, lambda f: batch(pcam.load(f, "train"))),
    "pcam labels": Kind(make_pcam, pcam.file_name("train", "y"), lambda f: batch(pcam.load(f, "train"))),
    "pcam packed": Kind(
        lambda f: make_pcam(f, compression="gzip", **CHUNKS), X, lambda f: batch(pcam.load(f, "train"))
    ),
    "volumes": Kind(make_volumes, "v.npz", lambda f: batch(volumes.load(f / "v.npz", "train"))),
    "mnist": Kind(make_mnist, "train-images-idx3-ubyte.gz", lambda f: batch(mnist.load(f, "train", "upright"))),
    "images": Kind(make_images, "data/a/0.png", lambda f: batch(images.load(f / "data", "train"))),
    "png": Kind(make_picture("p.png"), "p.png", read_picture("p.png")),
    "jpeg": Kind(make_picture("p.jpg"), "p.jpg", read_picture("p.jpg")),
    "tiff": Kind(make_picture("p.tif"), "p.tif", read_picture("p.tif")),
    "landmarks": Kind(make_faces, "src/list_landmarks_celeba.txt", read_faces),
    "identities": Kind(make_faces, "src/identity_CelebA.txt", read_faces),
    "prepared index": Kind(make_prepared, "out/index.csv", lambda f: batch(celeba.load(f / "out", "train"))),
    "prepared images": Kind(make_prepared, "out/images.npy", lambda f: batch(celeba.load(f / "out", "train"))),
    "prepared summary": Kind(make_prepared, "out/prepared.json", lambda f: batch(celeba.load(f / "out", "train"))),
}
