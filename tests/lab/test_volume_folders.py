"""Scans with labels in users' own folders: what is learned of them, and what is refused before training."""

import csv
import json

import nibabel
import numpy as np
import pytest
import torch

import liespline as liespline_package
from lab.data_files import CT, blob_dicom, blob_nifti, dicom_series, nifti
from lab.small_runs import new_run
from liespline.lab.data import DataError
from liespline.lab.evaluation.external import score_file
from liespline.lab.evaluation.predict import predict_files
from liespline.lab.runs.trained import load
from liespline.lab.tasks import find_task
from liespline.lab.tasks.volumes import load_scans
from truth.shell import fails, succeeds

DRAW = np.random.default_rng(0)


@pytest.fixture(scope="module")
def heads(tmp_path_factory):
    """Sixteen NIfTI files and eight DICOM series of two classes, of different sizes, in flat voxels."""
    root = tmp_path_factory.mktemp("set") / "heads"
    affine = np.diag([-1.0, 1.0, 2.0, 1.0])  # right to left
    for i in range(24):
        kind = ("narrow", "wide")[i % 2]
        folder = root / kind
        folder.mkdir(parents=True, exist_ok=True)
        how = {"place": DRAW.uniform(-2, 2, 3), "width": 2.0 if kind == "narrow" else 4.0}
        if i < 16:
            blob_nifti(folder / f"{i:02}.nii.gz", (12 + i % 3, 14, 7), affine, **how)
        else:
            blob_dicom(folder / f"p{i}", (14, 13, 7), 2.0, (1.0, 1.0), **how)
    (root / "wide" / "notes.txt").write_text("not a scan")
    return root


def settings(data, **changes):
    small = {"group": "none", "elements": 1, "basis": 1, "kernel": "dense", "stride": 1, "widths": (4, 6)}
    small |= {"dropout": 0.0, "accelerator": "cpu", "batch_size": 4, "epochs": 15}
    small |= {"data": str(data), "intensity_range": CT}
    return find_task("volumes").defaults.updated(**small | changes)


@pytest.fixture(scope="module")
def run(heads, tmp_path_factory):
    return new_run(settings(heads), tmp_path_factory.mktemp("runs") / "heads")


def test_classes_of_folders_are_learned(run, heads, capsys):
    assert run.read_results("scores")["scores"]["accuracy"] == 1
    record = json.loads((run.path / "data.json").read_text())
    for names in record["splits"].values():
        for name, (label, _) in names.items():
            assert name.startswith(f"{label}/")
    assert sum(map(len, record["splits"].values())) == 24
    assert "confusion" in run.report_file.read_text().lower()


def test_what_is_said_before_training(heads, tmp_path, capsys):
    new_run(settings(heads, epochs=1), tmp_path / "run")
    said = " ".join(capsys.readouterr().out.split())
    assert "voxels are cubes of 1.26 mm; intensities are normalised window (-1000.0, 1000.0)" in said
    assert "volumes are smaller than 11×11×11: around them is their lowest value" in said
    assert "1 entry is left out, not NIfTI, .npy, .npz or folders of DICOM slices: wide/notes.txt" in said


def by_hand(trained, path):
    """The answer for a RAS+ NIfTI file of cubes, brought to the network in NumPy alone."""
    values = np.asarray(nibabel.load(path).dataobj).astype(np.float64)
    values = np.clip((values - CT[0]) / (CT[1] - CT[0]), 0, 1)
    box = np.full(trained.signature.space, values.min())
    before = [(side - own) // 2 for side, own in zip(box.shape, values.shape, strict=True)]
    box[tuple(slice(b, b + n) for b, n in zip(before, values.shape, strict=True))] = values
    with torch.no_grad():
        return trained(torch.tensor(box, dtype=torch.float32)[None, None]).softmax(-1)[0].tolist()


def test_predict_brings_new_scans_as_training_did(run, heads, tmp_path, liespline):
    trained = liespline_package.load(run.path)
    new = tmp_path / "new"
    new.mkdir()
    path = blob_nifti(new / "a.nii.gz", (8, 11, 9), np.diag([1.26, 1.26, 1.26, 1.0]))
    blob_nifti(new / "b.nii.gz", (13, 14, 7), np.diag([1.0, 1.0, 2.0, 1.0]))
    for i in (16, 17):
        (new / f"p{i}").symlink_to(heads / ("narrow", "wide")[i % 2] / f"p{i}")
    text = succeeds("predict", run.path, new, "--json")
    rows = {row["image"].removeprefix(f"{new}/"): row for row in json.loads(text)}
    assert list(rows) == ["a.nii.gz", "b.nii.gz", "p16", "p17"]
    assert list(rows["a.nii.gz"]["probabilities"].values()) == pytest.approx(by_hand(trained, path), abs=1e-5)
    assert (rows["p16"]["class"], rows["p17"]["class"]) == ("narrow", "wide")
    # Four channels, where the network learned from one: the others are answered.
    nifti(new / "c.nii", np.zeros((4, 4, 4, 4), np.float32), np.eye(4))
    status, text = liespline("predict", run.path, new, "--csv")
    assert status == 1
    assert [line.split(",")[0] for line in text.splitlines()[1:5]] == [str(new / name) for name in rows]
    assert "c.nii: has 4 channels; the network was trained on 1" in text


def test_another_set_comes_as_training_did(run, tmp_path):
    """Its voxels and sizes are others; the scores are still those of what `predict` answers."""
    losses = []
    for i, name in enumerate(("narrow", "wide")):
        (tmp_path / "other" / name).mkdir(parents=True)
        for side in (0.5, 0.75):
            path = tmp_path / "other" / name / f"{side}.nii"
            blob_nifti(path, (20, 22, 18), np.diag([side, side, side, 1]), width=2.0 + 2 * i)
            (row,) = predict_files(run.path, [path])
            losses.append(-np.log(row["probabilities"][name]))
    results, _ = score_file(run.path, tmp_path / "other", "all")
    assert results["scores"]["loss"] == pytest.approx(np.mean(losses), rel=1e-4)


def test_later_and_larger_scans_do_not_spoil_the_run_s_own(run, heads, tmp_path):
    later = blob_nifti(heads / "wide" / "later.nii", (40, 40, 40), np.eye(4))
    try:
        results, remarks = score_file(run.path, None, "test")
    finally:
        later.unlink()
    assert results["scores"]["accuracy"] == run.read_results("scores")["scores"]["accuracy"]
    assert "wide/later.nii" in remarks[0]


def test_learning_from_validation_scans_too_keeps_their_spacing(run, heads, tmp_path):
    longer = new_run(load(run.path).config.updated(train_on_val=True, epochs=1), tmp_path / "longer")
    assert load(longer.path).signature.spacing == load(run.path).signature.spacing is not None
    (row,) = predict_files(longer.path, [heads / "wide" / "01.nii.gz"])
    assert sum(row["probabilities"].values()) == pytest.approx(1)


def test_a_table_of_scans_gives_numbers_and_keeps_patients_together(heads, tmp_path):
    files = sorted(heads.rglob("*.nii.gz")) + [folder for folder in heads.rglob("p*") if folder.is_dir()]
    width = {file: (1.5 if "narrow" in str(file) else 6.5) + i / 8 for i, file in enumerate(files)}
    rows = [(file.relative_to(heads), width[file], f"g{i // 2}") for i, file in enumerate(files)]
    with open(tmp_path / "labels.csv", "w", newline="") as stream:
        csv.writer(stream).writerows([("file", "mm", "group"), *rows])
    seen = {}
    for split in ("train", "valid", "test"):
        part = load_scans(heads, split, labels=tmp_path / "labels.csv")
        for name, target in zip(part.names, part.targets, strict=True):
            assert float(target[0]) == width[heads / name]
            group = next(group for file, _, group in rows if str(file) == name)
            assert seen.setdefault(group, split) == split
    assert len(seen) == 12
    run = new_run(settings(heads, labels=str(tmp_path / "labels.csv"), epochs=1, size="11x10x9"), tmp_path / "run")
    assert liespline_package.load(run.path).signature.space == (11, 10, 9)
    tested = [heads / name for name in json.loads((run.path / "data.json").read_text())["splits"]["test"]]
    answers = predict_files(run.path, tested)
    errors = [abs(row["values"]["mm"] - width[file]) for row, file in zip(answers, tested, strict=True)]
    assert run.read_results("scores")["scores"]["mean_absolute_error"] == pytest.approx(np.mean(errors), rel=1e-4)


def test_folders_train_valid_and_test(tmp_path):
    for number, split in enumerate(("train", "val", "test")):
        for name in ("a", "b"):
            (tmp_path / "s" / split / name).mkdir(parents=True)
            for i in range(3):
                np.save(tmp_path / "s" / split / name / f"{i}.npy", np.full((4 + number, 5, 5), i, np.int16))
    for split in ("train", "valid", "test"):
        part = load_scans(tmp_path / "s", split)
        assert (len(part), part.space, part.dealt) == (6, (6, 5, 5), False)
        assert all(name.startswith(split[:3]) for name in part.names)


def bad_folder(root):
    """Twelve good scans, and bad ones: without a place, of many channels, of two axes, and without a slice."""
    for name in ("a", "b"):
        (root / name).mkdir(parents=True)
        for i in range(6):
            nifti(root / name / f"{i}.nii", DRAW.normal(size=(5, 5, 5)).astype(np.float32), np.eye(4))
    values = DRAW.normal(size=(5, 5, 5)).astype(np.float32)
    nifti(root / "a" / "nowhere.nii", values, None)
    nifti(root / "a" / "series.nii", DRAW.normal(size=(5, 5, 5, 7)).astype(np.float32), np.eye(4))
    np.save(root / "b" / "flat.npy", values[0])
    files = dicom_series(root / "b" / "ct", np.zeros((4, 4, 6), int))
    files[3].unlink()
    return root


def test_bad_scans_get_one_report_before_training(tmp_path):
    data = bad_folder(tmp_path / "bad")
    out = tmp_path / "run"
    for command in (("train", "volumes", "--data", data, "--out", out), ("data", "check", "volumes", data)):
        text = fails(*command)
        for words in (
            "nowhere.nii: has no affine",
            "series.nii: has 7 channels (a fourth axis) where 12 volumes have 1; save one volume per file",
            "flat.npy: has shape (5, 5); expected (D, H, W)",
            "mm apart, the others 2.50 mm; a slice is missing or double",
        ):
            assert words in text
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--intensity-range", "5,1"), "the first number must be below the second"),
        (("--size", "4x4"), "size = (4, 4): must be from 1 to 8,192, or three of them for volumes"),
        (("--size", "0"), "size = 0: must be from 1 to 8,192"),
        (("--spacing", "0.0001"), "too many"),
    ],
)
def test_settings_that_cannot_be(heads, tmp_path, options, says):
    assert says in fails("train", "volumes", "--data", heads, "--out", tmp_path / "run", *options)
    assert not (tmp_path / "run").exists()


def test_a_table_that_names_no_scans(heads, tmp_path):
    (tmp_path / "t.csv").write_text("file,label\nwide/notes.txt,a\nnarrow/00.nii.gz,b\nabsent.nii,b\n")
    with pytest.raises(DataError, match=r"row 4: 'absent.nii' does not exist"):
        load_scans(heads, "all", labels=tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("file,label\nwide/notes.txt,a\nnarrow/00.nii.gz,b\n")
    with pytest.raises(DataError, match=r"notes.txt: is no volume; expected NIfTI"):
        load_scans(heads, "all", labels=tmp_path / "t.csv")


def test_one_file_takes_no_options_of_folders(tmp_path):
    np.savez(tmp_path / "v.npz", train_images=np.zeros((2, 5, 5, 5), np.uint8))
    text = fails("train", "volumes", "--data", tmp_path / "v.npz", "--intensity-range", "0,1", "--spacing", 2)
    assert "--intensity-range, --spacing: for folders of scans" in text
