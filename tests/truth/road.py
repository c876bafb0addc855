"""What a user has: the command, the files of a run, and other people's software to read them with."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from PIL import Image
from safetensors import safe_open
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn import metrics

from truth.shell import command

Array = NDArray[Any]
NEAR = 2e-5  # float32 on two roads


def ended(wanted: int, *arguments: object) -> tuple[str, str]:
    """What the command prints, and what it says beside; it has to end with this status."""
    status, out, errors = command(*arguments)
    assert status == wanted, f"liespline {' '.join(map(str, arguments))}: {errors}"
    return out, errors


def liespline(*arguments: object) -> str:
    """What the command prints; it has to succeed."""
    return ended(0, *arguments)[0]


def train(task: str, data: Path, out: Path, **settings: object) -> Path:
    """Train a tiny network in the folder `out`."""
    small = {"group": "so2", "elements": 2, "widths": "2,3", "epochs": 3, "batch_size": 8, "accelerator": "cpu"}
    given = {name: value for name, value in (small | settings | {"data": data}).items() if value is not None}
    options = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    liespline("train", task, "--out", out, *options, "--quiet")
    return out


@dataclass
class Road:
    """A trained run, with what is true of each of its images by name, as whoever made the files knows it."""

    run: Path
    truth: dict[str, Any]
    """By the path of the image below the folder `data` beside the run."""
    inputs: dict[str, Array]
    """What the network has to be given, made from the files in the test's own way: (C, *space)."""
    parts: dict[str, str] = field(default_factory=dict)
    """The group or the split of each image, where a table says it."""

    def split(self, name: str) -> list[str]:
        """The images of a split, as the run wrote them down; below class folders of splits, with the split."""
        held = json.loads((self.run / "data.json").read_text())["splits"][name]
        return [one if one in self.truth else f"{name}/{one}" for one in held]

    def rows(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl."""
        return [json.loads(line) for line in (self.run / "metrics.jsonl").read_text().splitlines()]

    def results(self) -> dict[str, Any]:
        """The content of results.json."""
        return json.loads((self.run / "results.json").read_text())

    def evaluated(self, split: str, *more: object) -> dict[str, Any]:
        """What `liespline evaluate` says."""
        return json.loads(liespline("evaluate", self.run, "--split", split, "--json", *more))

    def onnx(self) -> onnxruntime.InferenceSession:
        """The exported network; exported once."""
        file = self.run / "network.onnx"
        if not file.exists():
            liespline("export", self.run, "--onnx", file)
        return onnxruntime.InferenceSession(file)

    def classes(self) -> list[str]:
        """The names of the outputs, as the exported file says."""
        return json.loads(self.onnx().get_modelmeta().custom_metadata_map["classes"])

    def outputs(self, names: Sequence[str]) -> Array:
        """What the exported network answers, one image at a time: (N, outputs)."""
        session = self.onnx()
        return np.concatenate([session.run(None, {"images": self.inputs[name][None]})[0] for name in names])

    def targets(self, names: Sequence[str]) -> Array:
        """The truth of these images."""
        return np.array([self.truth[name] for name in names])

    def wanted(self, split: str) -> dict[str, float]:
        """Loss and scores of a split, from the files."""
        names = self.split(split)
        outputs, truth = self.outputs(names), self.targets(names)
        if truth.ndim == 1:
            return of_classes(outputs, self.classes(), list(truth))
        if truth.dtype.kind == "i":
            return of_tags(outputs, truth)
        return of_numbers(outputs, truth, self.targets(self.split("train")).std(0, ddof=0))

    def hits(self, names: Sequence[str]) -> Array:
        """Whether the highest pixel of each map is less than ten pixels from its landmark: (N, landmarks)."""
        maps = self.outputs(names)
        best = maps.reshape(*maps.shape[:2], -1).argmax(-1)
        places = np.stack(np.unravel_index(best, maps.shape[2:]), -1)
        return np.linalg.norm(places - self.targets(names), axis=-1) < 10

    def kept_epoch(self) -> int:
        """The epoch whose weights the run kept, as the file of the network says."""
        with safe_open(self.run / "model.safetensors", framework="np") as file:
            return int(json.loads(file.metadata()["liespline"].partition(" ")[2])["epoch"])


def answered(run: Path, *paths: Path) -> dict[str, dict[str, str]]:
    """The table that `liespline predict` prints, by the path of the image."""
    rows = csv.DictReader(io.StringIO(liespline("predict", run, *paths, "--csv")))
    return {row["image"]: row for row in rows}


def of_classes(logits: Array, names: Sequence[str], truth: Sequence[str]) -> dict[str, float]:
    """Loss and scores of logits (N, classes) against names."""
    labels = np.array([names.index(one) for one in truth])
    found = logits.astype(float).argmax(1)
    scores = {
        "loss": -log_softmax(logits.astype(float), 1)[np.arange(len(labels)), labels].mean(),
        "accuracy": metrics.accuracy_score(labels, found),
        "balanced_accuracy": np.mean([(found[labels == k] == k).mean() for k in np.unique(labels)]),
    }
    if len(names) == 2:
        scores["auc"] = metrics.roc_auc_score(labels, softmax(logits.astype(float), 1)[:, 1])
    return scores


def of_tags(logits: Array, truth: Array) -> dict[str, float]:
    """Loss and scores of logits (N, tags) against zeros and ones."""
    z = logits.astype(float)
    return {
        "loss": -(truth * log_expit(z) + (1 - truth) * log_expit(-z)).mean(),
        "auc": np.mean([metrics.roc_auc_score(truth[:, k], expit(z[:, k])) for k in range(truth.shape[1])]),
        "f1": np.mean([metrics.f1_score(truth[:, k], z[:, k] > 0) for k in range(truth.shape[1])]),
    }


def of_numbers(found: Array, truth: Array, spread: Array) -> dict[str, float]:
    """Loss, in standard deviations of the training images, and scores of numbers (N, names)."""
    apart = np.abs(found.astype(float) - truth) / spread
    scores = {
        "loss": np.where(apart < 1, apart**2 / 2, apart - 0.5).mean(),
        "r2": metrics.r2_score(truth, found, multioutput="uniform_average"),
    }
    if truth.shape[1] == 1:
        scores["mean_absolute_error"] = metrics.mean_absolute_error(truth, found)
    return scores


def pixels(file: Path) -> Array:
    """An image of 8 or 16 bits as shares of white, grey or in colours: (C, H, W)."""
    stored = np.asarray(Image.open(file))
    values = stored.astype(np.float32) / np.float32(np.iinfo(stored.dtype).max)
    return values[None] if values.ndim == 2 else np.moveaxis(values, -1, 0)


def normalised(volume: Array) -> Array:
    """A volume (C, *space) cut to its percentiles 0.5 and 99.5, with mean 0 and deviation 1."""
    cut = np.clip(volume.astype(float), *(np.percentile(volume.astype(float), q) for q in (0.5, 99.5)))
    return ((cut - cut.mean()) / cut.std()).astype(np.float32)


def boxed(volume: Array, space: Sequence[int]) -> Array:
    """A volume in the middle of a larger box, its lowest value around it; of an odd rest, more lies behind."""
    rest = [wanted - own for wanted, own in zip(space, volume.shape[1:], strict=True)]
    around = [(0, 0), *((more // 2, more - more // 2) for more in rest)]
    return np.pad(volume, around, constant_values=volume.min())
