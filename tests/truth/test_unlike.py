"""New files unlike those of training: other values, channels, voxels or axes, and masks that lie as their images do."""

import json
import re

import nibabel
import numpy as np
import pytest
import torch
from PIL import Image
from scipy.ndimage import map_coordinates

import liespline as library
from liespline.lab import load
from liespline.lab.runs.model_file import read_weights, save_weights
from truth.conftest import cells
from truth.new_images import PLAIN, ball, save, spot
from truth.road import Road, ended, liespline, normalised, train


def statistics(files, top):
    """Minimum, mean and maximum of grey images as shares of the largest number."""
    values = [np.asarray(Image.open(file)).astype(float) / top for file in files]
    return np.array([[v.min(), v.mean(), v.max()] for v in values])


def both(run, data):
    """What `predict` and `evaluate` say beside their numbers."""
    words = (("predict", run, data, "--csv"), ("evaluate", run, "--data", data, "--split", "all"))
    return [ended(0, *one)[1] for one in words]


def test_images_unlike_those_of_training_are_said_once(spots):
    record = json.loads((spots / "run" / "data.json").read_text())
    trained_on = [spots / "data" / name for name in record["splits"]["train"]]
    low, high = np.quantile(statistics(trained_on, 255), (0.005, 0.995), axis=0)
    known = library.load(spots / "run").value_range
    np.testing.assert_allclose([known.low, known.high], np.stack([low, high])[..., None], atol=1e-6)
    assert known.images == len(trained_on)
    for kind, top, which in (("inverted", 255, 1), ("twelve", 65535, 2)):
        new = statistics(sorted((spots / kind).rglob("*.png")), top)
        for errors in both(spots / "run", spots / kind):
            assert errors.count("unlike the training images") == 1
            assert "37 of 37 images are unlike the training images, 37 by their " in errors
            assert f": {new[:, which].mean():.3g}, in training {low[which]:.3g} to {high[which]:.3g}." in errors
    assert not any("unlike" in errors for errors in both(spots / "run", spots / "alike"))
    assert "unlike" not in "".join(ended(0, "evaluate", spots / "run"))


def test_a_quarter_of_a_folder_may_be_odd(spots, tmp_path):
    (tmp_path / "new").mkdir()
    alike, inverted = (sorted((spots / kind).rglob("*.png")) for kind in ("alike", "inverted"))
    for i, file in enumerate([*alike[:9], *inverted[:3]]):
        (tmp_path / "new" / f"{i}.png").symlink_to(file)
    words = ("predict", spots / "run", tmp_path / "new")
    assert "unlike" not in ended(0, *words)[1]
    (tmp_path / "new" / "12.png").symlink_to(inverted[3])
    assert "4 of 13 images are unlike the training images, 4 by" in ended(0, *words)[1]


def test_the_range_of_older_models(spots, tmp_path):
    weights, about = read_weights(spots / "run" / "model.safetensors")
    for known, status, says in (
        (None, 0, ""),
        ({"low": [[0.0]], "high": [[1.0]], "images": 3, "dtype": "uint8"}, 2, "does not say what the network takes"),
    ):
        about["signature"]["value_range"] = known
        save_weights(tmp_path / "old.safetensors", weights, about)
        _, errors = ended(status, "predict", tmp_path / "old.safetensors", spots / "inverted")
        assert "unlike" not in errors
        assert says in errors


def test_a_test_folder_unlike_the_training_folder_is_said_before_training(spots, tmp_path):
    for split, kind in (("train", "data"), ("valid", "alike"), ("test", "inverted")):
        (tmp_path / "set" / split).parent.mkdir(exist_ok=True)
        (tmp_path / "set" / split).symlink_to(spots / kind)
    said = liespline("data", "check", "images", tmp_path / "set")
    assert "test: 37 of 37 images are unlike the training images, 37 by their mean" in said
    assert "valid: 37 of 37" not in said


def test_scans_are_compared_where_a_window_says_what_numbers_mean(balls):
    for run, said in (("windowed", True), ("by-itself", False)):
        assert "unlike" not in ended(0, "predict", balls / run, balls / "alike")[1]
        assert ("9 of 9 images are unlike" in ended(0, "predict", balls / run, balls / "inverted")[1]) == said
        assert (library.load(balls / run).value_range is not None) == said
    names = json.loads((balls / "windowed" / "data.json").read_text())["splits"]["train"]
    values = [((nibabel.load(balls / "data" / name).get_fdata() + 1000) / 2000).clip(0, 1) for name in names]
    known = library.load(balls / "windowed").value_range
    assert 0.9 * min(one.min() for one in values) - 0.02 < known.low[0][0]  # resampling to cubes smooths
    assert known.high[2][0] < max(one.max() for one in values) + 1e-3


@pytest.mark.parametrize(("side", "said"), [(1.1, False), (3.0, False), (0.1, True), (0.02, True), (25.0, True)])
def test_scans_with_voxels_of_another_size_are_warned_of(balls, tmp_path, side, said):
    """Against the usual voxel in training, of 1.14 mm: micrometres or inches taken for millimetres, say."""
    save(tmp_path / "set" / "a" / "one.nii.gz", ball(np.random.default_rng(9)), side=side)
    own = f"has voxels of {side * 1.5 ** (1 / 3):.3g} mm, the network was trained on voxels of 1.14 mm"
    assert [own in errors for errors in both(balls / "windowed", tmp_path / "set")] == [said, said]


def test_masks_are_made_with_the_same_warning(tmp_path):
    draw = np.random.default_rng(6)
    for i in range(18):
        image = spot(draw, (21 + i % 3, 26))
        save(tmp_path / "data" / "images" / f"{50 - i}.png", image)
        save(tmp_path / "data" / "masks" / f"{50 - i}.png", (image > 90).astype(np.uint8))
    for i in range(9):
        image = spot(draw, (24, 27))
        for name, pixels in (("alike", image), ("inverted", 255 - image), ("tiled", 255 - image)):
            save(tmp_path / name / f"{i}.{'tif' if name == 'tiled' else 'png'}", pixels)
    run = train("segment", tmp_path / "data", tmp_path / "run", patch=16, **PLAIN)
    for kind, said in (("alike", 0), ("inverted", 1), ("tiled", 1)):
        errors = ended(0, "predict", run, tmp_path / kind, "--out", tmp_path / f"m-{kind}")[1]
        assert errors.count("9 of 9 images are unlike the training images") == errors.count("unlike") == said
    assert "not for masks" in ended(2, "predict", run, tmp_path / "alike", "--out", tmp_path / "m", "--resize")[1]


def test_volumes_with_three_channels_are_no_colours(balls, tmp_path):
    draw = np.random.default_rng(8)
    for i in range(6):
        folder = tmp_path / "set" / "ab"[i % 2]
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / f"{i}.npy", draw.normal(0, 300, (7, 8, 9, 3)).astype(np.float32))
    run = balls / "windowed"
    for words in (("predict", run, tmp_path / "set"), ("evaluate", run, "--data", tmp_path / "set", "--split", "all")):
        output, errors = ended(2, *words)
        assert re.search(r"3 channels; the network (was trained on|takes) 1", errors)
        assert not output


def wanted(road: Road, scan: np.ndarray, spacing: tuple[float, ...]) -> np.ndarray:
    """The mask on the scan's own voxels, each taking the class of the nearest of the cubes of 1 mm that SciPy made."""
    sizes = [round(n * s) for n, s in zip(scan.shape, spacing, strict=True)]
    places = [
        ((np.arange(size) - (size - 1) / 2) / s + (n - 1) / 2).clip(0, n - 1)
        for size, n, s in zip(sizes, scan.shape, spacing, strict=True)
    ]
    fine = map_coordinates(normalised(scan[None])[0], np.meshgrid(*places, indexing="ij"), order=1)
    with torch.no_grad():
        answer = load(road.run).in_tiles(torch.from_numpy(fine)[None, None].float())[0].argmax(0).numpy()
    back = [
        np.floor((np.arange(n) - (n - 1) / 2) * s + (size - 1) / 2 + 0.5).astype(int).clip(0, size - 1)
        for size, n, s in zip(sizes, scan.shape, spacing, strict=True)
    ]
    return answer[np.ix_(*back)]


@pytest.fixture
def scan() -> np.ndarray:
    image, _ = cells(np.random.default_rng(11), (9, 11, 7), SPACING)
    return image


SPACING = (2.0, 1.5, 3.0)
AXES = {"as trained": "RAS", "from the left": "LPS", "axes in another order": "SRA"}


@pytest.mark.parametrize("axes", AXES.values(), ids=AXES)
def test_a_mask_lies_on_the_voxels_of_its_scan(scans, scan, axes, tmp_path):
    """The file may store its axes in any order and direction; the mask comes in the same."""
    upright = nibabel.Nifti1Image(scan, np.diag([*SPACING, 1.0]) + np.eye(4, k=3) * 17)
    turn = nibabel.orientations.ornt_transform(
        nibabel.io_orientation(upright.affine), nibabel.orientations.axcodes2ornt(axes)
    )
    stored = upright.as_reoriented(turn)
    nibabel.save(stored, tmp_path / "new.nii.gz")
    liespline("predict", scans.run, tmp_path / "new.nii.gz", "--out", tmp_path / "out")
    found = nibabel.load(tmp_path / "out" / "new.nii.gz")
    assert np.allclose(found.affine, stored.affine)
    assert nibabel.aff2axcodes(found.affine) == tuple(axes)
    mask = np.asarray(nibabel.as_closest_canonical(found).dataobj)
    assert set(np.unique(mask)) >= {0, 1}
    assert (mask == wanted(scans, scan, SPACING)).mean() > 0.99


def test_an_array_says_its_spacing_and_so_does_its_mask(scans, scan, tmp_path):
    np.savez(tmp_path / "new.npz", volume=scan, spacing=np.array(SPACING))
    liespline("predict", scans.run, tmp_path / "new.npz", "--out", tmp_path / "out")
    found = nibabel.load(tmp_path / "out" / "new.nii.gz")
    assert found.header.get_zooms() == pytest.approx(SPACING)
    assert found.header.get_xyzt_units()[0] == "mm"
    assert found.shape == scan.shape
    assert (np.asarray(found.dataobj) == wanted(scans, scan, SPACING)).mean() > 0.99


def test_a_scan_of_the_voxels_of_training_is_not_touched(scans, scan, tmp_path):
    nibabel.save(nibabel.Nifti1Image(scan, np.eye(4)), tmp_path / "new.nii")
    liespline("predict", scans.run, tmp_path / "new.nii", "--out", tmp_path / "out")
    with torch.no_grad():
        answer = load(scans.run).in_tiles(torch.from_numpy(normalised(scan[None]))[None])[0].argmax(0).numpy()
    assert np.array_equal(np.asarray(nibabel.load(tmp_path / "out" / "new.nii.gz").dataobj), answer)
