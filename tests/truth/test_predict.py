"""`predict` and `evaluate` on a user's road: other sizes, bad files, kills and full disks; against Pillow and NumPy."""

import csv
import gc
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import liespline as library
from liespline.lab.evaluation import inputs
from liespline.lab.evaluation.tta import FlipAverage, augmented
from liespline.lab.screen import Screen
from truth.conftest import write_table
from truth.new_images import ONCE, PLAIN, covered, probabilities, rows_of, save, shares
from truth.road import ended, liespline, train
from truth.shell import command, fails, largest_file


def test_images_of_another_size_are_refused_scaled_or_taken_as_they_are(spots, tmp_path):
    predict = ("predict", spots / "run", spots / "large")
    evaluate = ("evaluate", spots / "run", "--data", spots / "large", "--split", "all", "--json")
    for words in (predict, evaluate):
        _, errors = ended(2, *words)
        assert "is 36×36 pixels; the network was trained on 18×18 pixels" in errors
        assert "--resize" in errors
        assert "--any-size" in errors
        ended(2, *words, "--resize", "--any-size")
    files = sorted((spots / "large").rglob("*.png"))
    stored = [np.asarray(Image.open(file)) for file in files]
    expected = {
        "--resize": probabilities(spots / "run", np.stack([covered(image, (18, 18)) for image in stored])[:, None]),
        "--any-size": probabilities(spots / "run", np.stack(stored)[:, None]),
    }
    classes = json.loads((spots / "run" / "data.json").read_text())["classes"]
    truth = np.array([classes.index(file.parent.name) for file in files])
    for option, known in expected.items():
        liespline(*predict, option, "--out", tmp_path / "a.csv")
        np.testing.assert_allclose([shares(row) for row in rows_of(tmp_path / "a.csv")], known, atol=1e-4)
        scores = json.loads(liespline(*evaluate, option))["scores"]
        assert scores["accuracy"] == pytest.approx((known.argmax(1) == truth).mean())
        assert scores["loss"] == pytest.approx(-np.log(known[np.arange(len(truth)), truth]).mean(), rel=1e-3)
    assert np.abs(expected["--resize"] - expected["--any-size"]).max() > 1e-2, "the two are not the same"


def test_images_of_the_size_of_training_are_left_alone(spots, mixed):
    """Also where they come to it by the --size of training."""
    for run, data in ((spots / "run", spots / "alike"), (mixed / "colour", mixed / "deep")):
        answers = {liespline("predict", run, data, "--csv", *how) for how in ((), ("--resize",), ("--any-size",))}
        assert len(answers) == 1


@pytest.mark.parametrize(("kind", "columns"), [("tags", ("old", "new")), ("numbers", ("mm", "kg"))])
def test_tags_and_numbers_of_oblong_images(tmp_path, kind, columns):
    """Scaled to the size of training, written row by row, a bad file among them."""
    draw, rows = np.random.default_rng(4), []
    for i in draw.permutation(20):
        save(tmp_path / "data" / f"{i}.png", draw.integers(0, 256, (15, 22), np.uint8))
        split = "train" if i < 11 else "valid" if i < 16 else "test"
        values = (i % 2, int(i % 3 == 0)) if kind == "tags" else draw.normal(5, 2, 2).round(3)
        rows.append((f"{i}.png", split, *values))
    table = write_table(tmp_path / "table.csv", ("file", "split", *columns), rows)
    run = train("images", tmp_path / "data", tmp_path / "run", labels=table, label_type=kind, **ONCE)
    stored = [draw.integers(0, 256, shape, np.uint8) for shape in ((37, 29), (15, 22), (20, 80), (8, 9))]
    for i, image in enumerate(stored):
        save(tmp_path / "new" / f"{i}.png", image)
    (tmp_path / "new" / "1bad.png").write_text("no image")
    assert "1bad.png" in ended(1, "predict", run, tmp_path / "new", "--resize", "--out", tmp_path / "a.csv")[1]
    found = rows_of(tmp_path / "a.csv")
    assert [Path(row["image"]).name for row in found] == [f"{i}.png" for i in range(4)]
    with torch.no_grad():
        images = torch.from_numpy(np.stack([covered(image, (15, 22)) for image in stored])[:, None])
        known = library.load(run)(images).double()
    known = known.sigmoid() if kind == "tags" else known
    np.testing.assert_allclose([[float(row[c]) for c in columns] for row in found], known, rtol=1e-3)
    whole = ("evaluate", run, "--data", tmp_path / "data", "--labels", table, "--split", "all", "--resize")
    assert "--size makes squares, and the network was trained on 22×15" in ended(2, *whole)[1]


def test_predict_brings_images_as_training_and_evaluate_do(mixed, tmp_path):
    """A set with 16-bit grey among 8 bits, scaled: the same answers one by one, and in the scores of evaluate."""
    run = mixed / "colour"
    scores = json.loads(liespline("evaluate", run, "--data", mixed / "deep", "--split", "all", "--json"))["scores"]
    liespline("predict", run, mixed / "deep", "--out", tmp_path / "a.csv")
    rows = rows_of(tmp_path / "a.csv")
    own = [float(row[f"p({Path(row['image']).parent.name})"]) for row in rows]
    assert scores["loss"] == pytest.approx(-np.log(own).mean(), rel=2e-5)
    assert scores["accuracy"] == pytest.approx(
        np.mean([row["class"] == Path(row["image"]).parent.name for row in rows])
    )
    deep = next(row for row in rows if np.asarray(Image.open(row["image"])).dtype == np.uint16)
    shallow = next(row for row in rows if row["image"].endswith(".tif"))
    for row, factor, near in ((deep, 1, 1e-4), (shallow, 257, 2e-6)):  # as in a set of 16 bits
        pixels = np.asarray(Image.open(row["image"])).astype(np.uint16) * factor
        known = probabilities(run, np.stack([covered(pixels, (17, 17))] * 3)[None])
        np.testing.assert_allclose(shares(row), known[0], atol=near)


@pytest.fixture
def folder(spots, tmp_path):
    """Images among which three files are bad, the first one of all among them."""
    (tmp_path / "new").mkdir()
    for i, file in enumerate(sorted((spots / "alike").rglob("*.png"))):
        (tmp_path / "new" / f"i{i:02}.png").symlink_to(file)
    (tmp_path / "new" / "a-text.png").write_text("no image")
    whole = (tmp_path / "new" / "i03.png").read_bytes()
    (tmp_path / "new" / "i07-cut.png").write_bytes(whole[: len(whole) // 2])
    save(tmp_path / "new" / "z-size.png", np.zeros((20, 18), np.uint8))
    return tmp_path


def test_a_bad_file_is_named_at_the_end_and_the_others_are_answered(spots, folder):
    good = liespline("predict", spots / "run", spots / "alike", "--csv").splitlines()
    known = {Path(row["image"]).name: row | {"image": ""} for row in csv.DictReader(good)}
    words, out = ("predict", spots / "run", folder / "new"), folder / "out" / "answers.csv"
    output, errors = ended(1, *words, "--out", out)
    assert output == f"{out}: 37 predictions\n"
    first, *said = errors.splitlines()
    assert first == "3 of 40 files have no prediction:"
    bad = [str(folder / "new" / name) for name in ("a-text.png", "i07-cut.png", "z-size.png")]
    assert [line.split(":")[0] for line in said] == bad
    rows = rows_of(out)
    assert [Path(row["image"]).name for row in rows] == [f"i{i:02}.png" for i in range(37)]
    assert all(row | {"image": ""} == known[Path(row["image"]).resolve().name] for row in rows)
    assert ended(1, *words, "--csv")[0] == out.read_text()
    output, errors = ended(1, *words, "--json")
    assert "a-text.png" in errors
    for row, line in zip(json.loads(output), rows, strict=True):
        assert list(row["probabilities"].values()) == pytest.approx(shares(line), rel=1e-5)
        assert (row["image"], row["class"]) == (line["image"], line["class"])
        assert row["confidence"] == pytest.approx(float(line["confidence"]), rel=1e-5)
    output, errors = ended(1, *words)
    assert ("z-size.png" in errors, "i36.png" in output) == (True, True)


def test_nothing_but_bad_files_is_an_error(spots, folder):
    out = folder / "answers.csv"
    out.write_text("older\n")
    bad = [folder / "new" / name for name in ("a-text.png", "i07-cut.png")]
    for more in ((), ("--csv",), ("--json",), ("--out", out)):
        output, errors = ended(2, "predict", spots / "run", *bad, *more)
        assert output == ""
        assert all(str(file) in errors for file in bad)
    assert out.read_text() == "older\n"
    for more, says in ((("--out", folder), "name a file such as"), (("--out", out, "--json"), "leave one of them out")):
        assert says in ended(2, "predict", spots / "run", folder / "new", *more)[1]


def links(folder, count, file):
    """A folder of so many names of one file."""
    folder.mkdir()
    for i in range(count):
        (folder / f"{i:04}.png").symlink_to(file)
    return folder


def living(shape):
    """How many images of this size are alive in tensors, views not counted twice."""
    found = (o for o in gc.get_objects() if type(o) is torch.Tensor and tuple(o.shape[-2:]) == shape)
    images = {tensor.data_ptr(): tensor.numel() for tensor in found}
    return sum(images.values()) // (shape[0] * shape[1])


def test_memory_does_not_grow_with_the_folder(spots, tmp_path, monkeypatch):
    """Counted: the images that live while the next one is read."""
    file, most, read = next((spots / "alike").rglob("*.png")), {}, inputs.read_array
    for count in (160, 480):
        seen = []

        def counted(path, seen=seen):
            if int(path.stem) % 32 == 31:  # a batch is full at some of these
                seen.append(living((18, 18)))
            return read(path)

        monkeypatch.setattr(inputs, "read_array", counted)
        data, out = links(tmp_path / str(count), count, file), tmp_path / f"{count}.csv"
        liespline("predict", spots / "run", data, "--out", out)
        assert (len(seen), len(rows_of(out))) == (count // 32, count)
        most[count] = max(seen)
    assert most[480] == most[160] < 70


def test_a_volume_file_is_read_row_by_row(tmp_path):
    """Of a file with many volumes, as of a folder with many files; in the middle of the box of training."""
    draw, arrays = np.random.default_rng(0), {}
    for split, count in (("train", 9), ("val", 4), ("test", 5)):
        arrays[f"{split}_images"] = draw.integers(0, 256, (count, 6, 7, 5), np.uint8)
        arrays[f"{split}_labels"] = 7 - 4 * (np.arange(count) % 2)
    np.savez(tmp_path / "v.npz", **arrays)
    run = train("volumes", tmp_path / "v.npz", tmp_path / "run", **PLAIN)
    for split, held in json.loads((run / "data.json").read_text())["splits"].items():
        own = arrays[f"{split.replace('valid', 'val')}_labels"]
        assert {name: label for name, (label, _) in held.items()} == {f"row {i}": str(n) for i, n in enumerate(own)}
    many = draw.integers(0, 256, (11, 6, 7, 5), np.uint8)
    np.save(tmp_path / "many.npy", many)
    np.save(tmp_path / "one.npy", many[3])
    np.savez(tmp_path / "cut.npz", some_images=many)
    whole = (tmp_path / "cut.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) - 300])
    files = [tmp_path / name for name in ("cut.npz", "many.npy", "one.npy", "v.npz")]
    _, errors = ended(1, "predict", run, *files, "--out", tmp_path / "a.csv")
    assert "1 of 4 files have no prediction" in errors
    assert "cut.npz" in errors
    rows = rows_of(tmp_path / "a.csv")
    named = [f"{tmp_path / 'many.npy'} row {i}" for i in range(11)] + [f"{tmp_path / 'one.npy'} row 0"]
    of_sets = [(name, i) for name in ("train", "val", "test") for i in range(len(arrays[f"{name}_images"]))]
    assert [row["image"] for row in rows] == named + [f"{tmp_path / 'v.npz'} {n}_images row {i}" for n, i in of_sets]
    known = np.concatenate([many, many[3:4], *(arrays[f"{name}_images"] for name in ("train", "val", "test"))])
    np.testing.assert_allclose([shares(r) for r in rows], probabilities(run, known[:, None]), atol=1e-5)
    larger = np.pad(many, [(0, 0), (1, 2), (0, 1), (3, 0)])
    np.save(tmp_path / "larger.npy", larger)
    ended(2, "predict", run, tmp_path / "larger.npy")
    liespline("predict", run, tmp_path / "larger.npy", "--resize", "--out", tmp_path / "b.csv")
    middle = larger[:, 1:7, 0:7, 1:6]  # (9−6)//2, (8−7)//2, (8−5)//2
    found = [shares(row) for row in rows_of(tmp_path / "b.csv")]
    np.testing.assert_allclose(found, probabilities(run, middle[:, None]), atol=1e-5)
    boxed, lowest = train("volumes", tmp_path / "v.npz", tmp_path / "boxed", size="8x7x6", **PLAIN), many.min((1, 2, 3))
    liespline("predict", boxed, tmp_path / "many.npy", "--out", tmp_path / "c.csv")
    around = [np.pad(one, [(1, 1), (0, 0), (0, 1)], constant_values=low) for one, low in zip(many, lowest, strict=True)]
    found = [shares(row) for row in rows_of(tmp_path / "c.csv")]
    np.testing.assert_allclose(found, probabilities(boxed, np.stack(around)[:, None]), atol=1e-5)
    save(tmp_path / "flat.png", many[0, 0])
    fails("predict", run, tmp_path / "flat.png")


def test_a_killed_predict_leaves_whole_rows_and_only_people_see_a_bar(spots, tmp_path, monkeypatch):
    many, out = links(tmp_path / "many", 4000, next((spots / "alike").rglob("*.png"))), tmp_path / "answers.csv"
    words = [sys.executable, "-m", "liespline.lab.cli", "predict", spots / "run", many, "--out", out]
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
    assert out.read_text().endswith("\n")
    rows = rows_of(out)
    assert [Path(row["image"]).name for row in rows] == [f"{i:04}.png" for i in range(len(rows))]
    assert len({tuple((row | {"image": ""}).items()) for row in rows}) == 1, "the same picture, all columns there"
    assert 0 < len(rows) < 4000
    begun, read = out.read_text(), []
    monkeypatch.setattr(inputs, "read_array", lambda path, own=inputs.read_array: read.append(path) or own(path))
    assert liespline("predict", spots / "run", many, "--out", out) == f"{out}: 4,000 predictions\n"
    assert out.read_text().startswith(begun)
    assert [Path(row["image"]).name for row in rows_of(out)] == [f"{i:04}.png" for i in range(4000)]
    assert 4000 - len(rows) <= len(read) <= 4000 - len(rows) + 1, "a row whose note was not written is made again"
    words = ("predict", spots / "run", spots / "alike", "--out", out)
    assert command(*words)[2] == "", "there is no terminal"
    monkeypatch.setattr(Screen, "is_terminal", property(lambda screen: True))
    assert ["37/37" in command(*words, *more)[2] for more in ((), ("--quiet",))] == [True, False]


def test_a_full_disk_leaves_whole_rows(spots, tmp_path):
    out = tmp_path / "answers.csv"
    with largest_file(1000):
        said = fails("predict", spots / "run", spots / "alike", "--out", out)
    assert "cannot be written" in said
    text = out.read_text()
    assert text.endswith("\n")
    assert len({line.count(",") for line in text.splitlines()}) == 1
    assert 700 < len(text) <= 1000


def test_a_second_call_predicts_what_is_new_or_has_changed_and_parts_come_together(spots, tmp_path, monkeypatch):
    files = sorted((spots / "alike").rglob("*.png"))
    data, out, read = tmp_path / "data", tmp_path / "answers.csv", []
    data.mkdir()
    for i, file in enumerate(files):
        (data / f"{i:02}.png").write_bytes(file.read_bytes())
    words = ("predict", spots / "run", data, "--out")
    monkeypatch.setattr(inputs, "read_array", lambda path, own=inputs.read_array: read.append(path.name) or own(path))

    def again(*more):
        read.clear()
        said = command(*words, out, *more)
        return said[0], sorted(read)

    assert again() == (0, [f"{i:02}.png" for i in range(len(files))])
    whole = out.read_text()
    assert again() == (0, [])
    assert out.read_text() == whole
    (data / "03.png").write_bytes(files[30].read_bytes())
    (data / "05.png").unlink()
    (data / "new.png").write_bytes(files[5].read_bytes())
    (data / "text.png").write_text("no image")
    for _ in range(2):
        found = again()
        assert found in ((1, ["03.png", "new.png", "text.png"]), (1, ["text.png"])), "only what has no row"
        rows = {Path(row["image"]).name: shares(row) for row in rows_of(out)}
        assert rows["03.png"] == rows["30.png"]
        assert len(rows) == len(files), "one is gone, one is new"
    assert again("--tta")[1] == sorted(path.name for path in data.iterdir()), "by other options all is made again"
    (data / "text.png").unlink()
    alone = tmp_path / "alone.csv"
    liespline(*words, alone)
    out.unlink()
    for part in ("1/3", "3/3", "3/3"):
        liespline(*words, out, "--part", part)
    assert len(rows_of(tmp_path / "answers-3-of-3.csv")) == (len(files) + 0) // 3
    assert len(again()[1]) == len(range(1, len(files), 3)), "the part that was left out"
    assert sorted(out.read_text().splitlines()) == sorted(alone.read_text().splitlines())
    assert not list(tmp_path.glob("*answers-*"))
    assert "expected K/N" in fails(*words, out, "--part", "4/3")
    out.unlink()
    (data / "text.png").write_text("no image")
    status, _, said = command(*words, out, "--jobs", 2)
    assert (status, "part 1 of 2: done" in said, "text.png" in said) == (1, True, True), said
    assert sorted(out.read_text().splitlines()) == sorted(alone.read_text().splitlines())
    assert "need --out" in fails(*words[:-1], "--jobs", 2)
    assert "say one of them" in fails(*words, out, "--jobs", 2, "--part", "1/4")


def test_reflections_do_not_exchange_landmarks(points, folders):
    """A left eye in a reflected face looks like a right one: only grids are averaged over."""
    networks = [augmented(library.load(road.run)) for road in (points, folders)]
    assert [any(isinstance(layer, FlipAverage) for layer in one.modules()) for one in networks] == [False, True]
