"""`predict` and `evaluate` on a user's road: sizes, ranges, channels, bad files, kills; against Pillow, NumPy, ONNX."""

import ast
import csv
import gc
import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import nibabel
import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image

import liespline as liespline_package
from liespline.lab.evaluation import onnx_file
from liespline.lab.runs.model_file import read_weights, save_weights
from liespline.lab.screen import Screen
from truth.shell import command

SMALL = "--elements 2 --set widths=2,3 --epochs 1 --batch-size 8 --accelerator cpu --quiet".split()
PLAIN = "--group none --set widths=2,3 --epochs 1 --batch-size 4 --accelerator cpu --quiet".split()
DOCS = Path(__file__).parents[2] / "docs" / "guide" / "deployment.md"


def train(*arguments):
    assert command("train", *arguments)[0] == 0


def rows_of(file):
    with open(file, newline="") as stream:
        return list(csv.DictReader(stream))


def shares(row):
    return [float(value) for name, value in row.items() if name.startswith("p(")]


# ------------------------------------------------------------ the runs


def blob(draw, shape, top=255):
    """A bright spot on a dark ground."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    centre = [n / 2 + draw.uniform(-2, 2) for n in shape]
    width = draw.uniform(2, 4)
    spot = np.exp(-((y - centre[0]) ** 2 + (x - centre[1]) ** 2) / (2 * width**2))
    return (top * draw.uniform(0.6, 1) * spot + top / 25 * draw.random(shape)).clip(0, top)


@pytest.fixture(scope="module")
def spots(tmp_path_factory):
    """A grey network for 18×18, and new images: alike, inverted, of 12 bits in 16, of another size."""
    root, draw = tmp_path_factory.mktemp("spots"), np.random.default_rng(3)
    for name, count in (("tall", 31), ("flat", 22)):
        (root / "data" / name).mkdir(parents=True)
        for i in range(count):
            stretch = (18, 18)
            Image.fromarray(blob(draw, stretch).astype(np.uint8)).save(root / "data" / name / f"{97 - 3 * i % 97}.png")
    for kind in ("alike", "inverted", "twelve", "large"):
        for name in ("tall", "flat"):
            (root / kind / name).mkdir(parents=True)
    for i in range(37):
        name = ("tall", "flat")[i % 3 > 0]
        image = blob(draw, (18, 18)).astype(np.uint8)
        Image.fromarray(image).save(root / "alike" / name / f"{i:02}.png")
        Image.fromarray(255 - image).save(root / "inverted" / name / f"{i:02}.png")
        twelve = (image.astype(np.int64) * 4095 // 255).astype(np.uint16)
        Image.fromarray(twelve).save(root / "twelve" / name / f"{i:02}.png")
        Image.fromarray(image).resize((36, 36), Image.Resampling.BICUBIC).save(root / "large" / name / f"{i:02}.png")
    train("images", "--data", root / "data", "--out", root / "run", *SMALL)
    return root


def odd_pictures(folder, draw):
    """Images of every kind and size that Pillow alone reads as we do; 16-bit grey among them."""
    for name in ("x", "y"):
        (folder / name).mkdir(parents=True)
    for i in range(26):
        folder_of = folder / ("x" if i % 5 < 3 else "y")
        shape = tuple(int(n) for n in draw.integers(15, 44, 2))
        grey, colour = draw.integers(0, 256, shape, np.uint8), draw.integers(0, 256, (*shape, 3), np.uint8)
        exif, kind = Image.Exif(), i % 8
        exif[274] = 2 + i % 7
        file = folder_of / f"{(i * 7) % 26:02}"
        if kind == 0:
            Image.fromarray(colour).save(f"{file}.png")
        elif kind == 1:
            Image.fromarray(grey).save(f"{file}.tif")
        elif kind == 2:
            Image.fromarray(colour).save(f"{file}.jpg", exif=exif, quality=80)
        elif kind == 3:
            Image.fromarray(grey).save(f"{file}.png", exif=exif)
        elif kind == 4:
            Image.fromarray(np.dstack([colour, draw.integers(0, 256, shape, np.uint8)]), "RGBA").save(f"{file}.png")
        elif kind == 5:
            Image.merge("LA", [Image.fromarray(grey), Image.fromarray(grey.T.copy()).resize(shape[::-1])]).save(
                f"{file}.png"
            )
        elif kind == 6:
            Image.fromarray(colour).quantize(9).save(f"{file}.png", transparency=3)
        else:
            Image.fromarray(grey.astype(np.uint16) * 257 + draw.integers(0, 200, shape, np.uint16)).save(f"{file}.png")
    return folder


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Folders of mixed pictures, and networks for colours and for grey: --size odd and even, with 16 bits and not."""
    root, draw = tmp_path_factory.mktemp("mixed"), np.random.default_rng(1)
    odd_pictures(root / "deep", draw)
    for i in range(20):
        folder = root / "shallow" / ("x" if i % 5 < 3 else "y")
        folder.mkdir(parents=True, exist_ok=True)
        shape = tuple(int(n) for n in draw.integers(15, 44, 2))
        Image.fromarray(draw.integers(0, 256, shape, np.uint8)).save(folder / f"{(i * 7) % 20:02}.png")
    train("images", "--data", root / "deep", "--size", 17, "--out", root / "colour", *SMALL)
    train("images", "--data", root / "shallow", "--size", 24, "--out", root / "grey", *SMALL)
    return root


def ball(draw, shape=(7, 9, 8)):
    """A volume in Hounsfield-like numbers: air and a soft ball."""
    axes = np.meshgrid(*[np.arange(n) - (n - 1) / 2 for n in shape], indexing="ij")
    far = sum(axis**2 for axis in axes)
    return np.where(far < draw.uniform(4, 9), 60, -900) + draw.normal(0, 20, shape)


def scan(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(values.astype(np.float32), np.diag([1.5, 1, 1, 1])), path)


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    """Two networks for scans of one channel, with a window and without."""
    root, draw = tmp_path_factory.mktemp("scans"), np.random.default_rng(2)
    for i in range(21):
        scan(root / "data" / ("a" if i % 3 else "b") / f"{i}.nii.gz", ball(draw))
    for i in range(9):
        values = ball(draw)
        scan(root / "alike" / f"{i}.nii.gz", values)
        scan(root / "inverted" / f"{i}.nii.gz", -1000 - values)
    train("volumes", "--data", root / "data", "--out", root / "windowed", "--intensity-range", "-1000,1000", *PLAIN)
    train("volumes", "--data", root / "data", "--out", root / "by-itself", *PLAIN)
    return root


# ------------------------------------------------------------ other sizes


def covered(pixels, space):
    """Scaled by Pillow in floats until it covers (height, width), and its centre of that size, in whole numbers."""
    scale = max(space[0] / pixels.shape[0], space[1] / pixels.shape[1])
    height, width = (max(w, round(n * scale)) for n, w in zip(pixels.shape[:2], space, strict=True))
    plane = Image.fromarray(pixels.astype(np.float32)).resize((width, height), Image.Resampling.BICUBIC)
    top, left = (height - space[0]) // 2, (width - space[1]) // 2
    cut = np.asarray(plane)[top : top + space[0], left : left + space[1]]
    return np.rint(cut).clip(0, np.iinfo(pixels.dtype).max).astype(pixels.dtype)


def probabilities(run, images):
    """Of images (B, C, *space) of whole numbers, by the network in Python."""
    with torch.no_grad():
        return liespline_package.load(run)(torch.from_numpy(images)).double().softmax(1).numpy()


def test_images_of_another_size_are_refused_scaled_or_taken_as_they_are(spots, tmp_path):
    for data, more in ((("predict", spots / "run", spots / "large"), ()), (
        ("evaluate", spots / "run", "--data", spots / "large"), ("--split", "all")
    )):  # fmt: skip
        status, _, errors = command(*data, *more)
        assert status == 2
        assert "is 36×36 pixels; the network was trained on 18×18 pixels" in errors
        assert "--resize" in errors
        assert "--any-size" in errors
        assert command(*data, *more, "--resize", "--any-size")[0] == 2
    files = sorted((spots / "large").rglob("*.png"))
    stored = [np.asarray(Image.open(file)) for file in files]
    expected = {
        "--resize": probabilities(spots / "run", np.stack([covered(image, (18, 18)) for image in stored])[:, None]),
        "--any-size": probabilities(spots / "run", np.stack(stored)[:, None]),
    }
    classes = json.loads((spots / "run" / "data.json").read_text())["classes"]
    truth = np.array([classes.index(file.parent.name) for file in files])
    for option, known in expected.items():
        status, _, errors = command("predict", spots / "run", spots / "large", option, "--out", tmp_path / "a.csv")
        assert status == 0, errors
        np.testing.assert_allclose([shares(row) for row in rows_of(tmp_path / "a.csv")], known, atol=1e-4)
        again = ("evaluate", spots / "run", "--data", spots / "large", "--split", "all", option, "--json")
        status, output, errors = command(*again)
        assert status == 0, errors
        scores = json.loads(output)["scores"]
        assert scores["accuracy"] == pytest.approx((known.argmax(1) == truth).mean())
        assert scores["loss"] == pytest.approx(-np.log(known[np.arange(len(truth)), truth]).mean(), rel=1e-3)
    assert np.abs(expected["--resize"] - expected["--any-size"]).max() > 1e-2, "the two are not the same"


def test_images_of_the_size_of_training_are_left_alone(spots, mixed, tmp_path):
    """Also where they come to it by the --size of training."""
    for run, data in ((spots / "run", spots / "alike"), (mixed / "colour", mixed / "deep")):
        answers = []
        for options in ((), ("--resize",), ("--any-size",)):
            status, _, errors = command("predict", run, data, "--out", tmp_path / "a.csv", *options)
            assert status == 0, errors
            answers.append((tmp_path / "a.csv").read_text())
        assert len(set(answers)) == 1


def labelled(folder, kind, columns, shape, draw):
    """A run that is trained on a table: tags or numbers of images of one shape."""
    (folder / kind).mkdir(parents=True)
    lines = []
    for i in draw.permutation(20):
        Image.fromarray(draw.integers(0, 256, shape, np.uint8)).save(folder / kind / f"{i}.png")
        split = "train" if i < 11 else "valid" if i < 16 else "test"
        values = (i % 2, int(i % 3 == 0)) if kind == "tags" else draw.normal(5, 2, 2).round(3)
        lines.append([f"{i}.png", split, *values])
    with open(folder / f"{kind}.csv", "w", newline="") as stream:
        csv.writer(stream).writerows([["file", "split", *columns], *lines])
    data = ("--data", folder / kind, "--labels", folder / f"{kind}.csv", "--label-type", kind)
    train("images", *data, "--out", folder / f"run-{kind}", *SMALL)
    return folder / f"run-{kind}"


@pytest.mark.parametrize(("kind", "columns"), [("tags", ("old", "new")), ("numbers", ("mm", "kg"))])
def test_tags_and_numbers_of_oblong_images(tmp_path, kind, columns):
    """Scaled to the size of training, written row by row, a bad file among them."""
    draw = np.random.default_rng(4)
    run = labelled(tmp_path, kind, columns, (15, 22), draw)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "1bad.png").write_text("no image")
    stored = [draw.integers(0, 256, shape, np.uint8) for shape in ((37, 29), (15, 22), (20, 80), (8, 9))]
    for i, image in enumerate(stored):
        Image.fromarray(image).save(tmp_path / "new" / f"{i}.png")
    status, _, errors = command("predict", run, tmp_path / "new", "--resize", "--out", tmp_path / "a.csv")
    assert (status, "1bad.png" in errors) == (1, True)
    rows = rows_of(tmp_path / "a.csv")
    assert [Path(row["image"]).name for row in rows] == [f"{i}.png" for i in range(4)]
    with torch.no_grad():
        images = torch.from_numpy(np.stack([covered(image, (15, 22)) for image in stored])[:, None])
        known = liespline_package.load(run)(images).double()
    known = known.sigmoid() if kind == "tags" else known
    np.testing.assert_allclose([[float(row[c]) for c in columns] for row in rows], known, rtol=1e-3)
    status, _, errors = command(
        "evaluate", run, "--data", tmp_path / kind, "--labels", tmp_path / f"{kind}.csv", "--split", "all", "--resize"
    )
    assert (status, "--size makes squares, and the network was trained on 22×15" in errors) == (2, True)


# ------------------------------------------------------------ the range of values


def statistics(files, top):
    """Minimum, mean and maximum of grey images as shares of the largest number."""
    values = [np.asarray(Image.open(file)).astype(float) / top for file in files]
    return np.array([[v.min(), v.mean(), v.max()] for v in values])


def test_images_unlike_those_of_training_are_said_once(spots, tmp_path):
    record = json.loads((spots / "run" / "data.json").read_text())
    trained_on = [spots / "data" / name for name in record["splits"]["train"]]
    low, high = np.quantile(statistics(trained_on, 255), (0.005, 0.995), axis=0)
    known = liespline_package.load(spots / "run").value_range
    np.testing.assert_allclose([known.low, known.high], np.stack([low, high])[..., None], atol=1e-6)
    assert known.images == len(trained_on)
    for kind, top, which in (("inverted", 255, 1), ("twelve", 65535, 2)):
        new = statistics(sorted((spots / kind).rglob("*.png")), top)
        said = f": {new[:, which].mean():.3g}, in training {low[which]:.3g} to {high[which]:.3g}."
        for words in (
            ("predict", spots / "run", spots / kind, "--out", tmp_path / "a.csv"),
            ("evaluate", spots / "run", "--data", spots / kind, "--split", "all"),
        ):
            status, _, errors = command(*words)
            assert status == 0, errors
            assert errors.count("unlike the training images") == 1
            assert "37 of 37 images are unlike the training images, 37 by their " in errors
            assert said in errors
    for words in (("predict", spots / "run", spots / "alike"), ("evaluate", spots / "run")):
        status, output, errors = command(*words)
        assert (status, "unlike" in output + errors) == (0, False)
    status, _, errors = command("evaluate", spots / "run", "--data", spots / "alike", "--split", "all")
    assert (status, "unlike" in errors) == (0, False)


def test_a_quarter_of_a_folder_may_be_odd(spots, tmp_path):
    (tmp_path / "new").mkdir()
    alike, inverted = (sorted((spots / kind).rglob("*.png")) for kind in ("alike", "inverted"))
    for i, file in enumerate([*alike[:9], *inverted[:3]]):
        (tmp_path / "new" / f"{i}.png").symlink_to(file)
    assert "unlike" not in command("predict", spots / "run", tmp_path / "new")[2]
    (tmp_path / "new" / "12.png").symlink_to(inverted[3])
    assert (
        "4 of 13 images are unlike the training images, 4 by" in command("predict", spots / "run", tmp_path / "new")[2]
    )


def test_the_range_of_older_models(spots, tmp_path):
    weights, about = read_weights(spots / "run" / "model.safetensors")
    del about["signature"]["value_range"]
    save_weights(tmp_path / "old.safetensors", weights, about)
    old = liespline_package.load(tmp_path / "old.safetensors")
    assert old.value_range is None
    status, _, errors = command("predict", tmp_path / "old.safetensors", spots / "inverted")
    assert (status, "unlike" in errors) == (0, False)
    about["signature"]["value_range"] = {"low": [[0.0]], "high": [[1.0]], "images": 3, "dtype": "uint8"}
    save_weights(tmp_path / "odd.safetensors", weights, about)
    status, _, errors = command("predict", tmp_path / "odd.safetensors", spots / "alike")
    assert (status, "does not say what the network takes and gives" in errors) == (2, True)


def test_a_test_folder_unlike_the_training_folder_is_said_before_training(spots, tmp_path):
    for split, kind in (("train", "data"), ("valid", "alike"), ("test", "inverted")):
        (tmp_path / "set" / split).parent.mkdir(exist_ok=True)
        (tmp_path / "set" / split).symlink_to(spots / kind)
    status, said, _ = command("data", "check", "images", tmp_path / "set")
    assert status == 0, said
    assert "test: 37 of 37 images are unlike the training images, 37 by their mean" in said
    assert "valid: 37 of 37" not in said


def test_scans_are_compared_where_a_window_says_what_numbers_mean(scans):
    for run, said in (("windowed", True), ("by-itself", False)):
        status, _, errors = command("predict", scans / run, scans / "alike")
        assert (status, "unlike" in errors) == (0, False)
        status, _, errors = command("predict", scans / run, scans / "inverted")
        assert (status, "9 of 9 images are unlike" in errors) == (0, said)
        assert (liespline_package.load(scans / run).value_range is not None) == said
    low, high = [], []
    for name in json.loads((scans / "windowed" / "data.json").read_text())["splits"]["train"]:
        values = ((np.asarray(nibabel.load(scans / "data" / name).dataobj) + 1000) / 2000).clip(0, 1)
        low.append(values.min())
        high.append(values.max())
    known = liespline_package.load(scans / "windowed").value_range
    assert 0.9 * min(low) - 0.02 < known.low[0][0]  # resampling to cubes smooths
    assert known.high[2][0] < max(high) + 1e-3


def test_scans_with_voxels_of_another_size_are_warned_of(scans, tmp_path):
    """Against the usual voxel in training, of 1.14 mm: micrometres or inches taken for millimetres, say."""
    values = ball(np.random.default_rng(9))
    for name, side in (("alike", 1.1), ("coarse", 3.0), ("fine", 0.1), ("finer", 0.02), ("huge", 25.0)):
        folder = tmp_path / name / "a"
        folder.mkdir(parents=True)
        spacing = np.diag([1.5 * side, side, side, 1])
        nibabel.save(nibabel.Nifti1Image(values.astype(np.float32), spacing), folder / f"{name}.nii.gz")
        predicted = command("predict", scans / "windowed", folder, "--out", tmp_path / "a.csv")
        scored = command("evaluate", scans / "windowed", "--data", tmp_path / name, "--split", "all")
        own = f"has voxels of {side * 1.5 ** (1 / 3):.3g} mm, the network was trained on voxels of 1.14 mm"
        for status, _, errors in (predicted, scored):
            assert (status, own in errors) == (0, name not in ("alike", "coarse")), errors
        assert len(rows_of(tmp_path / "a.csv")) == 1


def test_masks_are_made_with_the_same_warning(tmp_path):
    draw = np.random.default_rng(6)
    for i in range(18):
        image = blob(draw, (21 + i % 3, 26)).astype(np.uint8)
        for kind, pixels in (("images", image), ("masks", (image > 90).astype(np.uint8))):
            (tmp_path / "data" / kind).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(tmp_path / "data" / kind / f"{50 - i}.png")
    for kind in ("alike", "inverted", "tiled"):
        (tmp_path / kind).mkdir()
    for i in range(9):
        image = blob(draw, (24, 27)).astype(np.uint8)
        Image.fromarray(image).save(tmp_path / "alike" / f"{i}.png")
        Image.fromarray(255 - image).save(tmp_path / "inverted" / f"{i}.png")
        Image.fromarray(255 - image).save(tmp_path / "tiled" / f"{i}.tif")
    train("segment", "--data", tmp_path / "data", "--out", tmp_path / "run", "--patch", 16, *PLAIN)
    for kind, said in (("alike", False), ("inverted", True), ("tiled", True)):
        status, _, errors = command("predict", tmp_path / "run", tmp_path / kind, "--out", tmp_path / f"m-{kind}")
        assert status == 0, errors
        assert errors.count("9 of 9 images are unlike the training images") == said
        assert said or "unlike" not in errors
    status, _, errors = command("predict", tmp_path / "run", tmp_path / "alike", "--out", tmp_path / "m", "--resize")
    assert (status, "not for masks" in errors) == (2, True)


# ------------------------------------------------------------ channels


def test_volumes_with_three_channels_are_no_colours(scans, tmp_path):
    draw = np.random.default_rng(8)
    for i in range(6):
        folder = tmp_path / "set" / "ab"[i % 2]
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / f"{i}.npy", draw.normal(0, 300, (7, 8, 9, 3)).astype(np.float32))
    for words in (
        ("predict", scans / "windowed", tmp_path / "set"),
        ("evaluate", scans / "windowed", "--data", tmp_path / "set", "--split", "all"),
    ):
        status, output, errors = command(*words)
        assert status == 2
        assert re.search(r"3 channels; the network (was trained on|takes) 1", errors)
        assert not output


# ------------------------------------------------------------ bad files, streams


@pytest.fixture
def folder(spots, tmp_path):
    """Images among which three files are bad, the first one of all among them."""
    (tmp_path / "new").mkdir()
    for i, file in enumerate(sorted((spots / "alike").rglob("*.png"))):
        (tmp_path / "new" / f"i{i:02}.png").symlink_to(file)
    (tmp_path / "new" / "a-text.png").write_text("no image")
    whole = (tmp_path / "new" / "i03.png").read_bytes()
    (tmp_path / "new" / "i07-cut.png").write_bytes(whole[: len(whole) // 2])
    Image.fromarray(np.zeros((20, 18), np.uint8)).save(tmp_path / "new" / "z-size.png")
    return tmp_path


def test_a_bad_file_is_named_at_the_end_and_the_others_are_answered(spots, folder):
    good = ("predict", spots / "run", spots / "alike", "--csv")
    known = {Path(row["image"]).name: row for row in csv.DictReader(command(*good)[1].splitlines())}
    out = folder / "out" / "answers.csv"
    status, output, errors = command("predict", spots / "run", folder / "new", "--out", out)
    assert status == 1
    assert output == f"{out}: 37 predictions\n"
    said = errors.splitlines()
    assert said[0] == "3 of 40 files have no prediction:"
    assert [line.split(":")[0] for line in said[1:]] == [
        str(folder / "new" / name) for name in ("a-text.png", "i07-cut.png", "z-size.png")
    ]
    rows = rows_of(out)
    assert [Path(row["image"]).name for row in rows] == [f"i{i:02}.png" for i in range(37)]
    for row in rows:
        assert {**row, "image": ""} == {**known[Path(row["image"]).resolve().name], "image": ""}
    status, output, errors = command("predict", spots / "run", folder / "new", "--csv")
    assert (status, output) == (1, out.read_text())
    status, output, errors = command("predict", spots / "run", folder / "new", "--json")
    assert status == 1
    assert "a-text.png" in errors
    found = json.loads(output)
    assert [row["image"] for row in found] == [row["image"] for row in rows]
    for row, line in zip(found, rows, strict=True):
        assert list(row["probabilities"].values()) == pytest.approx(shares(line), rel=1e-5)
        assert (row["class"], row["confidence"]) == (line["class"], pytest.approx(float(line["confidence"]), rel=1e-5))
    status, output, errors = command("predict", spots / "run", folder / "new")
    assert (status, "z-size.png" in errors, "i36.png" in output) == (1, True, True)


def test_nothing_but_bad_files_is_an_error(spots, folder):
    out = folder / "answers.csv"
    out.write_text("older\n")
    bad = [folder / "new" / name for name in ("a-text.png", "i07-cut.png")]
    for more in ((), ("--csv",), ("--json",), ("--out", out)):
        status, output, errors = command("predict", spots / "run", *bad, *more)
        assert (status, output) == (2, "")
        assert all(str(file) in errors for file in bad)
    assert out.read_text() == "older\n"
    for more, says in ((("--out", folder), "name a file such as"), (("--out", out, "--json"), "leave one of them out")):
        status, _, errors = command("predict", spots / "run", folder / "new", *more)
        assert (status, says in errors) == (2, True)


def living(shape):
    """How many images of this size are alive in tensors, views not counted twice."""
    found = (o for o in gc.get_objects() if type(o) is torch.Tensor and tuple(o.shape[-2:]) == shape)
    images = {tensor.data_ptr(): tensor.numel() for tensor in found}
    return sum(images.values()) // (shape[0] * shape[1])


def test_memory_does_not_grow_with_the_folder(spots, tmp_path, monkeypatch):
    """Counted: the images that live while the next one is read."""
    from liespline.lab.evaluation import inputs as module

    file = next((spots / "alike").rglob("*.png"))
    most, read = {}, module.read_array
    for count in (160, 480):
        folder = tmp_path / str(count)
        folder.mkdir()
        for i in range(count):
            (folder / f"{i:03}.png").symlink_to(file)
        seen = []

        def counted(path, seen=seen):
            if int(path.stem) % 32 == 31:  # a batch is full at some of these
                seen.append(living((18, 18)))
            return read(path)

        monkeypatch.setattr(module, "read_array", counted)
        status, _, errors = command("predict", spots / "run", folder, "--out", tmp_path / f"{count}.csv")
        assert status == 0, errors
        assert len(seen) == count // 32
        assert len(rows_of(tmp_path / f"{count}.csv")) == count
        most[count] = max(seen)
    assert most[480] == most[160] < 70


def test_a_volume_file_is_read_row_by_row(tmp_path, monkeypatch):
    """Of a file with many volumes, as of a folder with many files."""
    draw = np.random.default_rng(0)
    arrays = {}
    for split, count in (("train", 9), ("val", 4), ("test", 5)):
        arrays[f"{split}_images"] = draw.integers(0, 256, (count, 6, 7, 5), np.uint8)
        arrays[f"{split}_labels"] = 7 - 4 * (np.arange(count) % 2)
    np.savez(tmp_path / "v.npz", **arrays)
    train("volumes", "--data", tmp_path / "v.npz", "--out", tmp_path / "run", *PLAIN)
    for split, held in json.loads((tmp_path / "run" / "data.json").read_text())["splits"].items():
        own = arrays[f"{split.replace('valid', 'val')}_labels"]
        assert {name: label for name, (label, _) in held.items()} == {f"row {i}": str(n) for i, n in enumerate(own)}
    many = draw.integers(0, 256, (11, 6, 7, 5), np.uint8)
    np.save(tmp_path / "many.npy", many)
    np.savez(tmp_path / "cut.npz", some_images=many)
    whole = (tmp_path / "cut.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) - 300])
    status, _, errors = command(
        "predict", tmp_path / "run", tmp_path / "cut.npz", tmp_path / "many.npy", "--out", tmp_path / "a.csv"
    )
    assert (status, "1 of 2 files have no prediction" in errors, "cut.npz" in errors) == (1, True, True)
    rows = rows_of(tmp_path / "a.csv")
    assert [row["image"] for row in rows] == [f"{tmp_path / 'many.npy'} row {i}" for i in range(11)]
    np.testing.assert_allclose([shares(r) for r in rows], probabilities(tmp_path / "run", many[:, None]), atol=1e-5)
    np.save(tmp_path / "larger.npy", np.pad(many, [(0, 0), (1, 2), (0, 1), (3, 0)]))
    assert command("predict", tmp_path / "run", tmp_path / "larger.npy")[0] == 2
    status, _, errors = command(
        "predict", tmp_path / "run", tmp_path / "larger.npy", "--resize", "--out", tmp_path / "b.csv"
    )
    assert status == 0, errors
    middle = np.pad(many, [(0, 0), (1, 2), (0, 1), (3, 0)])[:, 1:7, 0:7, 1:6]  # (9−6)//2, (8−7)//2, (8−5)//2
    found = [shares(row) for row in rows_of(tmp_path / "b.csv")]
    np.testing.assert_allclose(found, probabilities(tmp_path / "run", middle[:, None]), atol=1e-5)


def test_a_killed_predict_leaves_whole_rows_and_only_people_see_a_bar(spots, tmp_path):
    file = next((spots / "alike").rglob("*.png"))
    (tmp_path / "many").mkdir()
    for i in range(4000):
        (tmp_path / "many" / f"{i:04}.png").symlink_to(file)
    out = tmp_path / "answers.csv"
    words = [sys.executable, "-m", "liespline.lab.cli", "predict", spots / "run", tmp_path / "many", "--out", out]
    ours, theirs = pty.openpty()
    with subprocess.Popen([*map(str, words)], stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        begun = time.monotonic()
        while not (out.exists() and out.stat().st_size > 5000) and time.monotonic() - begun < 100:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert b"files" in shown
    assert b"/4000" in shown
    text = out.read_text()
    assert text.endswith("\n")
    rows = rows_of(out)
    assert 0 < len(rows) < 4000
    known = rows[0]
    for i, row in enumerate(rows):
        assert Path(row["image"]).name == f"{i:04}.png"
        assert {**row, "image": ""} == {**known, "image": ""}, "the same picture, all columns there"


def test_no_bar_without_a_terminal_or_when_quiet(spots, tmp_path, monkeypatch):
    shown = []
    for quiet in (False, True):
        monkeypatch.setattr(Screen, "is_terminal", property(lambda screen: True))
        words = ("predict", spots / "run", spots / "alike", "--out", tmp_path / "a.csv", *["--quiet"] * quiet)
        shown.append("37/37" in command(*words)[2])
    assert shown == [True, False]
    monkeypatch.undo()
    assert command("predict", spots / "run", spots / "alike", "--out", tmp_path / "a.csv")[2] == ""


def test_a_full_disk_leaves_whole_rows(spots, tmp_path):
    out = tmp_path / "answers.csv"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        status, _, errors = command("predict", spots / "run", spots / "alike", "--out", out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (status, "cannot be written" in errors) == (2, True)
    text = out.read_text()
    assert text.endswith("\n")
    assert len({line.count(",") for line in text.splitlines()}) == 1
    assert 700 < len(text) <= 1000


# ------------------------------------------------------------ elsewhere


def the_script():
    """The block of the docs that uses an ONNX file, which imports nothing of ours."""
    blocks = re.findall(r"^```python\n(.*?)^```", DOCS.read_text(), re.DOTALL | re.MULTILINE)
    (script,) = (block for block in blocks if "onnxruntime.InferenceSession" in block)
    tree = list(ast.walk(ast.parse(script)))
    names = {alias.name for node in tree if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in tree if isinstance(node, ast.ImportFrom)}
    assert names == {"json", "pathlib", "numpy", "onnxruntime", "PIL"}
    return script


@pytest.mark.parametrize("network", ["colour", "grey"])
@pytest.mark.parametrize("data", ["deep", "shallow"])
def test_the_script_of_the_docs_reproduces_predict(mixed, network, data, tmp_path, monkeypatch):
    """Mixed sizes, EXIF orientations, transparency, palettes, 16-bit grey; colours for grey and grey for colours."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cells").symlink_to(mixed / data)
    assert command("export", mixed / network, "--onnx", "cells.onnx")[0] == 0
    assert command("predict", mixed / network, "cells", "--out", "a.csv")[0] == 0
    names = {}
    exec(the_script(), names)
    found = dict(zip(map(str, names["files"]), names["probabilities"], strict=True))
    rows = rows_of("a.csv")
    assert len(rows) == len(found) >= 20
    for row in rows:
        np.testing.assert_allclose(found[row["image"]], shares(row), atol=1e-4, err_msg=row["image"])
        assert names["classes"][found[row["image"]].argmax()] == row["class"]


def test_the_metadata_say_all_of_it(mixed, spots, scans, tmp_path):
    def about(run):
        assert command("export", run, "--onnx", tmp_path / "net.onnx")[0] == 0
        return onnxruntime.InferenceSession(str(tmp_path / "net.onnx")).get_modelmeta().custom_metadata_map

    colour, windowed = about(mixed / "colour"), about(scans / "windowed")
    grey, plain, alone = (
        onnx_file.about(liespline_package.load(run)) for run in (mixed / "grey", spots / "run", scans / "by-itself")
    )
    assert (colour["largest"], grey["largest"]) == ("65535", "255")
    assert json.loads(colour["resize"])["shorter_side"] == 17
    assert {"filter": "bicubic", "antialias": True}.items() <= json.loads(grey["resize"]).items()
    assert "white" in colour["background"]
    assert "EXIF" in colour["orientation"]
    assert json.loads(grey["grey"]) == [0.299, 0.587, 0.114]
    assert "grey" not in colour
    assert "resize" not in plain
    for found, run in ((colour, mixed / "colour"), (plain, spots / "run")):
        known = json.loads(found["training_range"])
        assert known == json.loads((run / "data.json").read_text())["value_range"]
    assert json.loads(windowed["intensity_range"]) == [-1000, 1000]
    assert json.loads(alone["percentiles"]) == [0.5, 99.5]
    for found in (windowed, alone):
        assert float(found["spacing_mm"]) == pytest.approx(1.5 ** (1 / 3), abs=1e-3)
        assert "lowest value" in found["box"]
        assert "RAS" in found["axes"]
    assert "training_range" not in alone


def test_predict_brings_images_as_training_and_evaluate_do(mixed, tmp_path):
    """A set with 16-bit grey among 8 bits, scaled: the same answers one by one, and in the scores of evaluate."""
    whole = ("evaluate", mixed / "colour", "--data", mixed / "deep", "--split", "all", "--json")
    status, output, errors = command(*whole)
    assert status == 0, errors
    assert command("predict", mixed / "colour", mixed / "deep", "--out", tmp_path / "a.csv")[0] == 0
    rows = rows_of(tmp_path / "a.csv")
    own = [float(row[f"p({Path(row['image']).parent.name})"]) for row in rows]
    scores = json.loads(output)["scores"]
    assert scores["loss"] == pytest.approx(-np.log(own).mean(), rel=2e-5)
    right = [row["class"] == Path(row["image"]).parent.name for row in rows]
    assert scores["accuracy"] == pytest.approx(np.mean(right))
    deep = next(row for row in rows if np.asarray(Image.open(row["image"])).dtype == np.uint16)
    known = probabilities(
        mixed / "colour", np.stack([covered(np.asarray(Image.open(deep["image"])), (17, 17))] * 3)[None]
    )
    np.testing.assert_allclose(shares(deep), known[0], atol=1e-4)
    shallow = next(row for row in rows if row["image"].endswith(".tif"))
    pixels = np.asarray(Image.open(shallow["image"])).astype(np.uint16) * 257  # as in a set of 16 bits
    known = probabilities(mixed / "colour", np.stack([covered(pixels, (17, 17))] * 3)[None])
    np.testing.assert_allclose(shares(shallow), known[0], atol=2e-6)
