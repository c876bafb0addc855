"""Every task of the lab on a device: two tiny epochs, evaluation, report and export."""

import gzip
import re
import struct
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from gpu_share import share

sys.path.append(str(Path(__file__).parents[1]))  # where studies/ is

DRAW = np.random.default_rng(0)


def _images(folder: Path) -> None:
    from PIL import Image

    for name in ("one", "other"):
        (folder / name).mkdir(parents=True)
        for i in range(20):
            noise = DRAW.integers(0, 256 if name == "one" else 128, (16, 16), np.uint8)
            Image.fromarray(noise).save(folder / name / f"{i}.png")


def _volumes(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for split, count in (("train", 16), ("val", 8), ("test", 8)):
        arrays[f"{split}_images"] = DRAW.integers(0, 256, (count, 12, 12, 12), np.uint8)
        arrays[f"{split}_labels"] = np.arange(count)[:, None].astype(np.uint8) % 2
    np.savez(file, **arrays)


def _masks(folder: Path) -> None:
    from PIL import Image

    for name in ("images", "masks"):
        (folder / name).mkdir(parents=True)
    for i in range(12):
        mask = np.zeros((32, 32), np.uint8)
        mask[8 + i % 4 : 20, 8:22] = 1
        Image.fromarray(60 + 120 * mask + DRAW.integers(0, 30, mask.shape, np.uint8)).save(
            folder / "images" / f"{i}.png"
        )
        Image.fromarray(mask).save(folder / "masks" / f"{i}.png")


def _points(folder: Path) -> None:
    from PIL import Image

    folder.mkdir(parents=True)
    rows = ["file,tip_row,tip_column"]
    for i in range(20):
        image = DRAW.integers(0, 60, (24, 24), np.uint8)
        y, x = DRAW.integers(4, 20, 2)
        image[y - 1 : y + 2, x - 1 : x + 2] = 255
        Image.fromarray(image).save(folder / f"{i}.png")
        rows.append(f"{i}.png,{y},{x}")
    (folder / "points.csv").write_text("\n".join(rows) + "\n")


def _mnist(folder: Path) -> None:
    from studies.data import mnist

    folder.mkdir(parents=True, exist_ok=True)  # of two tasks
    for name, count in (("train", 480), ("t10k", 20)):
        for what, array in (
            ("images-idx3", DRAW.integers(0, 256, (count, 28, 28), np.uint8)),
            ("labels-idx1", DRAW.integers(0, 10, count).astype(np.uint8)),
        ):
            head = b"\x00\x00\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
            (folder / f"{name}-{what}-ubyte.gz").write_bytes(gzip.compress(head + array.tobytes(), 1))
    # The published split needs 62,000 digits; 200 drawn ones have every class among them.
    mnist._COUNTS = {"train": 60, "valid": 200, "test": 20}


def _tissue(folder: Path) -> None:
    from studies.data.synthetic import tissue

    tissue.synthesize(folder, train=16, valid=8, test=8)


def _faces(folder: Path) -> None:
    from studies.data import celeba
    from studies.data.synthetic import faces

    faces.synthesize(folder / "official", identities=14, pictures=4)
    celeba.prepare(folder / "official", folder / "set")


# By task: who makes its data, where that lies, and what keeps the network small.
TASKS: dict[str, tuple[Callable[[Path], None] | None, str, list[str]]] = {
    "digits": (None, "", ["--elements", "4", "--set", "widths=3,4"]),
    "rotmnist": (_mnist, "mnist", ["--elements", "4", "--set", "widths=3,4"]),
    "mnist": (_mnist, "mnist", "--transformation scaled --group scale --elements 2 --set widths=3,4".split()),
    "images": (_images, "images", ["--elements", "4", "--set", "widths=3,4"]),
    "volumes": (_volumes, "volumes/some.npz", ["--group", "so3", "--elements", "12", "--set", "widths=3,4"]),
    "segment": (_masks, "masks", ["--elements", "4", "--set", "widths=3,4"]),
    "landmarks": (_points, "points", ["--labels", "{folder}/points/points.csv", "--elements", "2"]),
    "pcam": (_tissue, "tissue", ["--elements", "4", "--basis", "4"]),
    "celeba": (_faces, "faces", []),
}


def _command(*arguments: str) -> None:
    from typer.testing import CliRunner

    from liespline.lab.cli import app

    result = CliRunner().invoke(app, list(arguments))
    if result.exit_code:
        raise RuntimeError(f"liespline {' '.join(arguments)}: {result.output[-2000:]} {result.exception!r}")


def check_task(task: str, folder: Path, accelerator: str) -> None:
    """Train, test, report; then evaluate and export what was trained."""
    from liespline.lab.evaluation import evaluate

    evaluate.MOVED_IMAGES = 2
    make, place, network = TASKS[task]
    data = []
    if make is not None:
        make(folder / place)
        data = ["--data", str(folder / "faces" / "set" if task == "celeba" else folder / place)]
    out = folder / f"run-{task}"
    options = ["--epochs", "2", "--batch-size", "8", "--accelerator", accelerator, "--quiet", "--out", str(out)]
    _command("train", task, *data, *(option.format(folder=folder) for option in network), *options)
    if not (out / "report.html").is_file():
        raise RuntimeError("no report")
    _command("evaluate", str(out), *data)
    _command("export", str(out), "--onnx", str(folder / f"{task}.onnx"))


def _one(folder: Path, device: str, task: str) -> tuple[str, str | None]:
    try:
        check_task(task, folder, "gpu" if device == "cuda" else "cpu")
    except Exception:
        return task, traceback.format_exc(limit=-3)
    return task, None


def check_tasks(device: str, folder: Path, seconds: float, jobs: int, only: str, note: Callable[[dict], None]) -> None:
    """Note how many tasks went through, and what went wrong in the others, as it comes."""
    start, failures = time.monotonic(), []
    wanted = [task for task in TASKS if re.search(only, f"train {task}")]
    note({"counts": {}, "failures": [], "left_out": len(wanted)})
    for done, found in enumerate(share(partial(_one, folder, device), wanted, jobs, seconds), 1):
        task, problem = found if isinstance(found, tuple) else ("lab", found)
        if problem:
            failures.append({"check": f"train {task}", "problem": problem})
            print(f"FAILED train {task}: {problem}", flush=True)
        took = round(time.monotonic() - start)
        note({"counts": {"tasks": done}, "failures": failures, "left_out": len(wanted) - done, "seconds": took})
