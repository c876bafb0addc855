"""Copies stay in one split, and K-fold cross-validation is the standard one, from the files that the runs wrote."""

import json
import shutil
from collections import Counter

import nibabel
import numpy as np
import pytest
import torch
from PIL import Image

from liespline.lab import load
from liespline.lab.data.listing import assign, together
from liespline.lab.tasks import images
from truth.conftest import SEGMENT, blob, cells, shuffled, write_pair, write_table
from truth.road import answered, liespline, pixels, train


def draw_folders(root, counts, copies=0):
    """Class folders without splits; the first `copies` of each class are there three times under other names."""
    draw = np.random.default_rng(3)
    for name, count, width in zip(("zebra", "ant"), counts, (2.6, 3.6), strict=True):
        (root / name).mkdir(parents=True)
        for number, file in enumerate(shuffled(count, draw)):
            Image.fromarray(blob(draw, (15, 20), width, 150)).save(root / name / file)
            for again in ("a", "z") if number < copies else ():
                shutil.copy(root / name / file, root / name / f"{again}{file}")
    return root


def splits_of(run):
    """Which images are in which split; where folders are classes, each is of the class of its folder."""
    record = json.loads((run / "data.json").read_text())["splits"]
    for name, (label, _) in (one for held in record.values() for one in held.items() if "/" in one[0]):
        assert label == name.partition("/")[0]
    return {name: list(held) for name, held in record.items()}


def test_copies_in_class_folders_are_in_one_split(tmp_path):
    data = draw_folders(tmp_path / "data", (20, 17), copies=6)
    held = splits_of(train("images", data, tmp_path / "run", epochs=1))
    at = {}
    for split, names in held.items():
        for name in names:
            at.setdefault((data / name).read_bytes(), set()).add(split)
    assert all(len(places) == 1 for places in at.values())
    assert {split: len({n.partition("/")[0] for n in names}) for split, names in held.items()} == dict.fromkeys(held, 2)
    assert sum(map(len, held.values())) == 37 + 2 * 12


def pairs_with_copies(root, count, copies):
    """Images with masks, of which the first `copies` are there again, with the same mask, under another name."""
    draw = np.random.default_rng(5)
    for number, file in enumerate(shuffled(count, draw)):
        image, mask = cells(draw, (30 + number % 3, 26))
        for again in ("", "a", "z") if number < copies else ("",):
            write_pair(root, again + file.removesuffix(".png"), image, mask)
    return root


@pytest.mark.parametrize("kind", ["masks", "scans"])
def test_copies_of_images_with_masks_and_of_scans_are_in_one_split(kind, tmp_path):
    data, tiny = tmp_path / "data", {"epochs": 1, "group": "none", "elements": None}
    if kind == "masks":
        pairs_with_copies(data, 14, copies=6)
        held = splits_of(train("segment", data, tmp_path / "run", **SEGMENT | tiny))
        files = {name: data / "images" / f"{name}.png" for names in held.values() for name in names}
    else:
        draw = np.random.default_rng(6)
        for name, width in (("small", 1.5), ("large", 2.2)):
            (data / name).mkdir(parents=True)
            for number in draw.permutation(12):
                scan = nibabel.Nifti1Image(blob(draw, (7, 8, 6), width, 150), np.diag([2.0, 2, 2, 1]))
                for again in ("", "a", "z") if number < 5 else ("",):
                    nibabel.save(scan, data / name / f"{again}{number}.nii")
        held = splits_of(train("volumes", data, tmp_path / "run", **tiny))
        files = {name: data / name for names in held.values() for name in names}
    assert len(files) == (14 + 2 * 6 if kind == "masks" else 24 + 2 * 10)
    contents = [{files[name].read_bytes() for name in names} for names in held.values()]
    assert sum(map(len, contents)) == len(set().union(*contents))


def test_without_copies_class_folders_are_split_as_before(tmp_path):
    """By the rule of earlier versions, written out: per class a drawn order, then 70, 15 and 15 per cent."""
    data = draw_folders(tmp_path / "data", (20, 17))
    names = sorted(f"{file.parent.name}/{file.name}" for file in data.glob("*/*.png"))
    wanted = {"train": [], "valid": [], "test": []}
    for label, name in enumerate(("ant", "zebra")):
        rows = np.array([i for i, one in enumerate(names) if one.startswith(name)])
        rows = np.random.default_rng([0, label]).permutation(rows)
        part = round(0.15 * len(rows))
        for split, own in zip(wanted, np.split(rows, [len(rows) - 2 * part, len(rows) - part]), strict=True):
            wanted[split] += [names[i] for i in own]
    for split, held in wanted.items():
        assert sorted(images.load(data, split).names) == sorted(held)


def test_copies_join_the_groups_of_a_table_whatever_its_order():
    names = [f"{n}.png" for n in (5, 1, 9, 3, 7, 2)]
    groups = ["q", "p", "r", "q", "s", "t"]
    marks = ["1", "2", "2", "4", "5", "4"]  # p is joined with r, q with t
    assert together(names, groups, marks) == ("q", "p", "p", "q", "s", "q")
    order = [3, 5, 0, 2, 4, 1]
    again = together(*([part[i] for i in order] for part in (names, groups, marks)))
    assert again == tuple(together(names, groups, marks)[i] for i in order)
    assert together(names, None, list("abcdef")) is None
    assert together(names, groups, list("abcdef")) == tuple(groups)


@pytest.mark.parametrize("count", [3, 4, 10])
def test_folds_train_on_all_other_parts_less_a_validation_share(count):
    draw = np.random.default_rng(0)
    names = [f"{n}.png" for n in draw.permutation(210)]
    patients = [f"p{int(name[:-4]) % 70}" for name in names]
    labels = [int(patient[1:]) % 5 == 0 for patient in patients]
    tested = Counter()
    for fold in range(count):
        splits = np.array(assign(names, labels, patients, fold=fold, folds=count))
        sizes = Counter(splits.tolist())
        assert sizes["test"] == pytest.approx(210 / count, abs=6)
        rest = 210 - sizes["test"]
        assert sizes["valid"] == pytest.approx(rest / 7, abs=6)
        for one in set(patients):
            assert len({split for split, patient in zip(splits, patients, strict=True) if patient == one}) == 1
        for split in ("train", "valid", "test"):
            share = np.mean([label for label, own in zip(labels, splits, strict=True) if own == split])
            assert share == pytest.approx(np.mean(labels), abs=0.1)
        tested.update(name for name, split in zip(names, splits, strict=True) if split == "test")
    assert set(tested.values()) == {1}
    assert len(tested) == 210


def test_a_rare_class_validates_every_fold():
    names = [f"{n}.png" for n in range(40)]
    labels = [int(n < 4) for n in range(40)]
    for fold in range(4):
        splits = assign(names, labels, fold=fold, folds=4)
        assert {split for split, label in zip(splits, labels, strict=True) if label} == {"train", "valid", "test"}


@pytest.fixture(scope="module")
def crossed(tmp_path_factory):
    """Three folds of a shuffled table, trained by one command."""
    root = tmp_path_factory.mktemp("crossed")
    data = draw_folders(root / "data", (14, 11), copies=2)
    rows = [(f"{file.parent.name}/{file.name}", file.parent.name) for file in sorted(data.glob("*/*.png"))]
    order = np.random.default_rng(1).permutation(len(rows))
    table = write_table(root / "table.csv", ("file", "label"), [rows[i] for i in order])
    return data, train("images", data, root / "runs", labels=table, folds=3, epochs=1), len(rows)


def test_every_image_is_tested_once_and_copies_with_their_likes(crossed):
    data, runs, count = crossed
    tested = []
    for number in (1, 2, 3):
        held = splits_of(runs / f"fold-{number}")
        assert sum(map(len, held.values())) == count
        assert len(held["train"]) > count / 2, "two of three parts, less a seventh"
        tested += held["test"]
        pictures = [{(data / name).read_bytes() for name in names} for names in held.values()]
        assert sum(map(len, pictures)) == len(set().union(*pictures))
    assert len(tested) == len(set(tested)) == count


def test_a_folder_of_folds_predicts_with_the_mean_of_its_networks(crossed, tmp_path):
    data, runs, _ = crossed
    files = sorted(data.glob("ant/*.png"))[:5]
    logits = []
    for number in (1, 2, 3):
        network = load(runs / f"fold-{number}")
        assert network.classes == ("ant", "zebra")
        logits.append([network(network_input(file))[0].tolist() for file in files])
    mean = np.exp(np.mean(logits, 0))
    wanted = mean / mean.sum(1, keepdims=True)
    found = answered(runs, *files)
    for file, shares in zip(files, wanted, strict=True):
        row = found[str(file)]
        assert [float(row["p(ant)"]), float(row["p(zebra)"])] == pytest.approx(shares, abs=1e-5)
    other = draw_folders(tmp_path / "other", (4, 3))
    scores = json.loads(
        liespline("evaluate", runs, "--data", other, "--labels", labels_of(other), "--split", "all", "--json")
    )
    assert scores["train_overlap"] == 0
    assert scores["images"] == 7


def test_folds_of_masks_say_what_is_trained_on_and_predict_with_the_mean(tmp_path):
    data, runs = pairs_with_copies(tmp_path / "data", 15, copies=0), tmp_path / "runs"
    small = "--folds 3 --group none --set widths=3,4 --patch 16 --epochs 1 --accelerator cpu".split()
    said = liespline("train", "segment", "--data", data, "--out", runs, *small, "--quiet")
    held, logits = [splits_of(runs / f"fold-{number}") for number in (1, 2, 3)], []
    for number, splits in enumerate(held, 1):
        parts = [len(splits[name]) for name in ("train", "valid", "test")]
        assert f"fold {number} of 3: {parts[0]} to train on, {parts[1]} to validate, {parts[2]} to test" in said
        assert parts[0] > sum(parts) / 2
    assert len(set().union(*(splits["test"] for splits in held))) == 15
    name = min(held[0]["test"])
    for number in (1, 2, 3):
        network = load(runs / f"fold-{number}")
        with torch.no_grad():
            logits.append(network.in_tiles(network_input(data / "images" / f"{name}.png"))[0].numpy())
    liespline("predict", runs, data / "images" / f"{name}.png", "--out", tmp_path / "out")
    found, wanted = np.asarray(Image.open(tmp_path / "out" / f"{name}.png")), np.mean(logits, 0).argmax(0)
    assert (found == wanted).mean() > 0.999, "but for ties"
    assert any((found != one.argmax(0)).mean() > 0.01 for one in logits), "or one network would do"


def labels_of(folder):
    rows = [(f"{file.parent.name}/{file.name}", file.parent.name) for file in sorted(folder.glob("*/*.png"))]
    return write_table(folder.parent / "other.csv", ("file", "label"), rows)


def network_input(file):
    return torch.from_numpy(pixels(file))[None]
