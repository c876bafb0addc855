"""Runs on class folders, tables and images of any channels: every number that they write, again from the files."""

import json
import shutil

import numpy as np
import pytest
import tifffile
import torch
from safetensors import safe_open
from scipy.optimize import brentq
from scipy.special import softmax
from scipy.stats import binomtest, bootstrap
from sklearn.metrics import confusion_matrix, roc_auc_score

from liespline.lab import load
from liespline.lab.evaluation.evaluate import success_interval
from truth.road import NEAR, Road, answered, ended, of_classes


@pytest.fixture(params=["folders", "classes", "volumes"])
def road(request) -> Road:
    return request.getfixturevalue(request.param)


def test_the_splits_are_those_of_the_folders(folders):
    record = json.loads((folders.run / "data.json").read_text())["splits"]
    for split in ("train", "valid", "test"):
        wanted = {name.removeprefix(f"{split}/"): one for name, one in folders.truth.items() if name.startswith(split)}
        assert {name: label for name, (label, _) in record[split].items()} == wanted


@pytest.mark.parametrize("kind", ["folders", "classes", "volumes", "numbers", "tags"])
def test_scores_of_every_split(kind, request):
    road = request.getfixturevalue(kind)
    row = road.rows()[road.kept_epoch()]
    valid = {name.removeprefix("valid_"): value for name, value in row.items() if name.startswith("valid_")}
    assert valid == pytest.approx(road.wanted("valid"), abs=NEAR, rel=NEAR)
    results, trained = road.results(), road.evaluated("train")
    assert results["split"] == "test"
    for split, found in (("test", results), ("train", trained)):
        assert found["images"] == len(road.split(split))
        assert found["scores"] == pytest.approx(road.wanted(split), abs=NEAR, rel=NEAR)


def test_the_size_of_batches_does_not_matter(folders, points, monkeypatch):
    """13 test images in batches of 5, the last one of 3; maps of landmarks are scored batch by batch."""
    whole = points.evaluated("train")
    assert whole["images"] % 5
    monkeypatch.setattr("liespline.lab.evaluation.scores.BATCH", 5)
    assert folders.evaluated("test")["scores"] == pytest.approx(folders.wanted("test"), abs=NEAR)
    assert points.evaluated("train")["scores"] == pytest.approx(whole["scores"], abs=1e-6)


def test_another_folder_with_splits_has_its_own(folders, tmp_path):
    """The same images with the names of two splits exchanged: what it calls test is scored, and is no test."""
    other, data = tmp_path / "other", folders.run.parent / "data"
    for name, own in (("train", "train"), ("valid", "test"), ("test", "valid")):
        shutil.copytree(data / own, other / name)
    found = folders.evaluated("test", "--data", other)
    assert found["scores"] == pytest.approx(folders.wanted("valid"), abs=NEAR)
    assert found["train_overlap"] == found["images"] == 9
    whole = folders.evaluated("all", "--data", other)
    assert (whole["images"], whole["train_overlap"]) == (42, 29), "those to train and to validate on"


def test_a_run_on_folders_with_splits_goes_on_unless_images_have_moved(folders, tmp_path):
    run, data = (
        shutil.copytree(folders.run, tmp_path / "run"),
        shutil.copytree(folders.run.parent / "data", tmp_path / "d"),
    )
    ended(0, "train", "--resume", run, "--data", data, "--epochs", 7, "--quiet")
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 7
    moved = next((data / "valid" / "ant").iterdir())
    moved.rename(data / "train" / "ant" / f"new-{moved.name}")
    assert f"removed (ant/{moved.name})" in ended(2, "train", "--resume", run, "--epochs", 8, "--quiet")[1]


def test_every_image_is_in_one_split(road):
    assert sorted(name for split in ("train", "valid", "test") for name in road.split(split)) == sorted(road.truth)


def test_all_images_together(folders):
    """`evaluate --split all`: class folders with splits are joined."""
    names = list(folders.truth)
    wanted = of_classes(folders.outputs(names), folders.classes(), [folders.truth[name] for name in names])
    assert folders.evaluated("all")["scores"] == pytest.approx(wanted, abs=NEAR)


def test_uneven_training_images_say_which_score_picks_the_epoch(folders):
    """14 to 6 in training is uneven, 5 to 4 in validation is not: the AUC picks, and of equal ones the lower loss."""
    rows, kept = folders.rows(), folders.kept_epoch()
    assert kept == max(range(len(rows)), key=lambda i: (rows[i]["valid_auc"], -rows[i]["valid_loss"]))
    assert folders.results()["checkpoint_metric"] == "auc"
    assert "best validation area under the ROC curve" in (folders.run / "report.html").read_text()
    assert [row["epoch"] for row in rows] == list(range(6))
    assert [row["step"] for row in rows] == [2 * (i + 1) for i in range(6)], "20 images are two batches of 8"
    assert folders.results()["seconds"] == pytest.approx(sum(row["seconds"] for row in rows), abs=0.006)


def test_what_stands_behind_the_accuracy(road):
    results, names, classes = road.results(), road.split("test"), road.classes()
    truth = [classes.index(road.truth[name]) for name in names]
    outputs = road.outputs(names)
    found = outputs.argmax(1)
    table = confusion_matrix(truth, found, labels=range(len(classes)))
    assert results["confusion"] == table.tolist()
    assert results["majority_class_accuracy"] == pytest.approx(table.sum(1).max() / len(truth))
    hits, counts = dict(zip(classes, table.diagonal(), strict=True)), dict(zip(classes, table.sum(1), strict=True))
    assert results["sensitivity"] == pytest.approx({name: hits[name] / counts[name] for name in classes})
    limits = {name: wilson(hits[name], counts[name]) for name in classes}
    for name in classes:
        assert results["sensitivity_interval"][name] == pytest.approx(limits[name], abs=1e-6)
    assert results["interval"]["accuracy"] == pytest.approx(wilson(table.trace(), len(truth)), abs=1e-6)
    shares = np.array([hits[name] / counts[name] for name in classes])
    apart = np.array([limits[name] for name in classes]) - shares[:, None]
    sides = shares.mean() + np.array([-1, 1]) * np.sqrt((apart**2).sum(0)) / len(classes)
    assert results["interval"]["balanced_accuracy"] == pytest.approx(sides, abs=1e-6)
    wrong = [[i, int(found[i]), softmax(outputs[i].astype(float)).max()] for i in np.flatnonzero(found != truth)]
    mistakes = sorted(results["mistakes"])
    assert [one[:2] for one in mistakes] == [one[:2] for one in wrong]
    assert [one[2] for one in mistakes] == pytest.approx([one[2] for one in wrong], abs=NEAR)
    sure = [one[2] for one in results["mistakes"]]
    assert sure == sorted(sure, reverse=True)


def wilson(right: int, total: int) -> list[float]:
    found = binomtest(int(right), int(total)).proportion_ci(method="wilson")
    return [found.low, found.high]


def test_the_interval_of_the_area(folders):
    """Newcombe's: (A − area)² = z² A(1 − A)(1 + ((m + n)/2 − 1)((1 − A)/(2 − A) + A/(1 + A)))/mn at both ends A."""
    names, classes = folders.split("test"), folders.classes()
    truth = [classes.index(folders.truth[name]) for name in names]
    outputs = folders.outputs(names)
    area, m, n = roc_auc_score(truth, outputs[:, 1] - outputs[:, 0]), 7, 6
    assert area != roc_auc_score(truth, outputs.argmax(1)), "answers alone have another area"

    def apart(a: float) -> float:
        spread = a * (1 - a) * (1 + ((m + n) / 2 - 1) * ((1 - a) / (2 - a) + a / (1 + a))) / (m * n)
        return (a - area) ** 2 - 1.959964**2 * spread

    ends = [brentq(apart, 1e-9, area), brentq(apart, area, 1 - 1e-9)]
    assert folders.results()["interval"]["auc"] == pytest.approx(ends, abs=1e-6)


def test_the_report_shows_the_numbers(folders):
    page, wanted = (folders.run / "report.html").read_text(), folders.wanted("test")
    for name in ("accuracy", "balanced_accuracy", "auc"):
        assert f"{100 * wanted[name]:.1f} %" in page
    with safe_open(folders.run / "model.safetensors", framework="np") as file:
        held = {name: file.get_tensor(name).size for name in file.keys() if "running" not in name}  # noqa: SIM118
    learned = sum(size for name, size in held.items() if not name.endswith(("num_batches_tracked", "h_basis")))
    assert folders.results()["parameters"] == learned
    assert f"{learned:,} parameters" in page


def test_predict_says_what_the_network_says(road):
    """Each file by its own name, whatever the order, the folder and the batch."""
    names = [name for split in ("test", "valid") for name in road.split(split)]
    files = {str(road.run.parent / "data" / name): name for name in names}
    rows = answered(road.run, *list(files)[::-1])
    shares = softmax(road.outputs(names).astype(float), 1)
    for (file, name), wanted in zip(files.items(), shares, strict=True):
        row = rows[file]
        found = [float(row[f"p({one})"]) for one in road.classes()]
        assert found == pytest.approx(wanted, abs=NEAR), name
        assert row["class"] == road.classes()[wanted.argmax()]
        assert float(row["confidence"]) == pytest.approx(wanted.max(), abs=NEAR)


@pytest.mark.parametrize("copies", [2, 5])
def test_equal_landmark_columns_add_no_certainty(copies):
    hits = torch.rand(60, 1, generator=torch.Generator().manual_seed(0)) < 0.7
    assert success_interval(hits.expand(-1, copies)) == pytest.approx(success_interval(hits))


def test_landmarks_of_one_image_go_together():
    """As SciPy's bootstrap over images, of landmarks that mostly hit or miss together."""
    draw = np.random.default_rng(0)
    whole = draw.random((120, 1)) < 0.6
    hits = np.where(draw.random((120, 3)) < 0.85, whole, draw.random((120, 3)) < 0.5)
    rates = hits.mean(1)
    limits = bootstrap((rates,), np.mean, method="percentile", n_resamples=20_000, rng=1).confidence_interval
    assert success_interval(torch.from_numpy(hits)) == pytest.approx([limits.low, limits.high], abs=0.01)


def test_the_interval_of_a_run_is_over_its_images(points):
    rates = points.hits(points.split("test")).mean(1)
    limits = bootstrap((rates,), np.mean, method="percentile", n_resamples=20_000, rng=1).confidence_interval
    step = 1 / rates.size / 2  # means of so few images lie on a lattice
    assert points.results()["interval"]["success"] == pytest.approx([limits.low, limits.high], abs=step)


SMALL = tuple("--elements 2 --set widths=2,2 --epochs 1 --batch-size 8 --accelerator cpu --quiet".split())


@pytest.mark.parametrize(("channels", "dtype"), [(2, np.uint8), (5, np.uint16), (3, np.float32), (1, np.float32)])
def test_images_take_tiff_of_any_channels(tmp_path, channels, dtype):
    """What `predict` says of a file is what the network says of its samples by numpy."""
    draw, root = np.random.default_rng(channels), tmp_path / "set"
    for name, bright in (("dark", 60), ("light", 120)):
        (root / name).mkdir(parents=True)
        for i in np.random.default_rng(0).permutation(8):
            values = (draw.random((17, 19, channels)) * bright).astype(dtype)
            plan = None if channels == 1 else "contig"
            stored = values[..., 0] if channels == 1 else values
            tifffile.imwrite(root / name / f"{i}.tif", stored, photometric="minisblack", planarconfig=plan)
    ended(0, "train", "images", "--data", root, "--out", tmp_path / "run", *SMALL)
    net, file = load(tmp_path / "run"), root / "light" / "3.tif"
    assert net.signature.in_channels == channels
    samples = np.atleast_3d(tifffile.imread(file)).astype(np.float32)
    samples = samples if dtype == np.float32 else samples / np.float32(np.iinfo(dtype).max)
    with torch.no_grad():
        shares = net(torch.from_numpy(samples).movedim(-1, 0)[None])[0].double().softmax(0).numpy()
    out = ended(0, "predict", tmp_path / "run", file, "--json")[0]
    assert list(json.loads(out)[0]["probabilities"].values()) == pytest.approx(shares, abs=1e-6)


def test_odd_ones_are_named(tmp_path):
    root = tmp_path / "set"
    for name in ("a", "b"):
        (root / name).mkdir(parents=True)
        for i in range(4):
            values = np.full((16, 16, 4 if (name, i) == ("b", 2) else 5), i, np.uint8)
            tifffile.imwrite(root / name / f"{i}.tif", values, photometric="minisblack", planarconfig="contig")
    said = ended(2, "train", "images", "--data", root, "--out", tmp_path / "run", *SMALL)[1]
    assert "b/2.tif: has 4 channels of uint8 where 7 images have 5 channels of uint8; save all alike" in said
