"""Segmentations: scores from the files that predict writes, and what may and may not have a say in training."""

import json
from pathlib import Path

import nibabel
import numpy as np
import pytest
import torch
from PIL import Image
from scipy.special import log_softmax, softmax
from sklearn.metrics import confusion_matrix

from liespline.lab import load
from truth.conftest import SEGMENT, make_cells
from truth.road import NEAR, Array, Road, liespline, train

KINDS = pytest.mark.parametrize("kind", ["masks", "scans"])


def predicted(road: Road, names: list[str], out: Path) -> list[Array]:
    """The masks that `liespline predict` writes."""
    suffix, made = (".png", ".png") if road.truth[names[0]].ndim == 2 else (".nii.gz", ".nii.gz")
    images = [road.run.parent / "data" / "images" / f"{name}{suffix}" for name in names]
    liespline("predict", road.run, *images[::-1], "--out", out)
    files = [out / f"{name}{made}" for name in names]
    if suffix == ".png":
        return [np.asarray(Image.open(file)) for file in files]
    return [np.asarray(nibabel.load(file).dataobj) for file in files]


def dice(found: Array, truth: Array) -> float:
    """The mean over the classes 1 and 2 that are there or answered; 1 where neither is."""
    each = [
        2 * ((found == k) & (truth == k)).sum() / ((found == k).sum() + (truth == k).sum())
        for k in (1, 2)
        if (found == k).any() or (truth == k).any()
    ]
    return float(np.mean(each)) if each else 1.0


@KINDS
def test_scores_are_those_of_the_masks_in_the_files(kind, request, tmp_path):
    road = request.getfixturevalue(kind)
    names = road.split("test")
    found, truth = predicted(road, names, tmp_path), [road.truth[name] for name in names]
    every, right = np.concatenate([a.ravel() for a in found]), np.concatenate([t.ravel() for t in truth])
    results = road.results()
    scores, classes = results["scores"], ("glass", "cell", "dirt") if kind == "masks" else ("background", "1", "2")
    assert results["confusion"] == confusion_matrix(right, every, labels=range(3)).tolist()
    assert scores["dice"] == pytest.approx(dice(every, right), abs=1e-6)
    assert scores["dice_per_image"] == pytest.approx(np.mean([dice(*both) for both in zip(found, truth, strict=True)]))
    assert scores["dice_per_image"] != pytest.approx(scores["dice"], abs=1e-4)
    for number, name in enumerate(classes):
        here, there = every == number, right == number
        assert scores[f"Dice, {name}"] == pytest.approx(2 * (here & there).sum() / (here.sum() + there.sum()))
        assert scores[f"IoU, {name}"] == pytest.approx((here & there).sum() / (here | there).sum())
        assert scores[f"sensitivity, {name}"] == pytest.approx((here & there).sum() / there.sum())


@KINDS
def test_the_loss_is_that_of_the_probabilities(kind, request):
    """Cross-entropy of the true labels, smoothed in training, plus one minus the mean soft Dice of classes 1 and 2."""
    road = request.getfixturevalue(kind)
    network, losses = load(road.run), []
    names = road.split("test")
    for name in names:
        with torch.no_grad():
            logits = network.in_tiles(torch.from_numpy(road.inputs[name][None]))[0].double().numpy()
        logits = logits.reshape(3, -1)
        shares, truth = softmax(logits, 0), np.eye(3)[:, road.truth[name].ravel()]
        entropy = -(truth * log_softmax(logits, 0)).sum(0).mean()
        soft = (2 * (shares * truth).sum(1) + 1) / ((shares + truth).sum(1) + 1)
        losses.append(entropy + 1 - soft[1:].mean())
    sizes = [road.truth[name].size for name in names]
    assert road.results()["scores"]["loss"] == pytest.approx(np.average(losses, weights=sizes), abs=NEAR)


def test_splits_are_those_of_the_table(masks):
    for split in ("train", "valid", "test"):
        assert sorted(masks.split(split)) == sorted(name for name, own in masks.parts.items() if own == split)


def test_no_patient_is_in_two_splits(scans):
    held = [{scans.parts[name] for name in scans.split(split)} for split in ("train", "valid", "test")]
    assert sum(map(len, held)) == len(set(scans.parts.values()))


def losses(run: Path) -> list[float]:
    return [json.loads(line)["train_loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_patches_come_from_training_images_alone(tmp_path):
    """Other images and masks to validate and test on change nothing of what is trained, to the last bit."""
    runs, held_out = [], []
    for folder in (tmp_path / "one", tmp_path / "other"):
        table, splits = make_cells(folder, seed=8, other=held_out)
        held_out = [name for name, split in splits.items() if split != "train"]
        runs.append(
            train("segment", folder / "data", folder / "run", labels=table, epochs=2, class_weights=True, **SEGMENT)
        )
    assert losses(runs[0]) == losses(runs[1])
    results = [json.loads((run / "results.json").read_text())["scores"] for run in runs]
    assert results[0]["loss"] != results[1]["loss"], "the images that were held out are others"


def test_classes_that_are_named_anew_are_seen(tmp_path):
    """The folder was decoded before: what `classes.csv` says now counts all the same."""
    table, splits = make_cells(tmp_path, seed=9)
    for third in ("dirt", "dust", "ignore"):
        (tmp_path / "data" / "classes.csv").write_text(f"value,name\n0,glass\n1,cell\n2,{third}\n")
        said = liespline("data", "check", "segment", tmp_path / "data", "--labels", table)
        shares = said.split("images with masks: ")[1].split("\n")[0].split(", ")
        assert [share.split()[0] for share in shares] == ["glass", "cell", third][: 3 - (third == "ignore")]
    run = train("segment", tmp_path / "data", tmp_path / "run", labels=table, epochs=1, **SEGMENT)
    results = json.loads((run / "results.json").read_text())
    tested = [tmp_path / "data" / "masks" / f"{name}.png" for name, split in splits.items() if split == "test"]
    assert np.sum(results["confusion"]) == sum((np.asarray(Image.open(file)) < 2).sum() for file in tested)
    assert not [name for name in results["scores"] if "ignore" in name]
