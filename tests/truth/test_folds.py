"""Copies stay in one split, and K-fold cross-validation is the standard one, from the files that the runs wrote."""

from __future__ import annotations

import json
import shutil
from collections import Counter

import numpy as np
import pytest
import torch
from PIL import Image

from liespline.lab import load
from liespline.lab.data import images
from liespline.lab.data.folds import assign, together
from truth.conftest import blob, shuffled, write_table
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
    record = json.loads((run / "data.json").read_text())["splits"]
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


def labels_of(folder):
    rows = [(f"{file.parent.name}/{file.name}", file.parent.name) for file in sorted(folder.glob("*/*.png"))]
    return write_table(folder.parent / "other.csv", ("file", "label"), rows)


def network_input(file):
    return torch.from_numpy(pixels(file))[None]
