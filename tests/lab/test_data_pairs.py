"""Images with masks: what is read, what is reported before training, and which patches are drawn."""

import nibabel
import numpy as np
import pytest
import tifffile
from PIL import Image

from lab.data_files import dicom_series, nifti
from liespline.lab.data import DataError
from liespline.lab.data.patches import RandomPatches
from liespline.lab.data.samples import IGNORE
from liespline.lab.data.scans import Reading
from liespline.lab.tasks.segment import load_pairs
from truth.conftest import write_pair

DRAW = np.random.default_rng(0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Six grey images of three sizes with masks of 0 and 255."""
    monkeypatch.setenv("LIESPLINE_CACHE", str(tmp_path / "cache"))
    for i in range(6):
        size = (12 + i % 3, 16)
        mask = (DRAW.random(size) < 0.3).astype(np.uint8) * 255
        write_pair(tmp_path / "set", str(i), DRAW.integers(0, 256, size, np.uint8), mask)
    return tmp_path / "set"


def test_pairs_are_what_the_files_hold(folder):
    pairs = load_pairs(folder, "all")
    assert pairs.classes == ("background", "255")
    assert pairs.names == list("012345")
    for row in range(6):
        image = np.asarray(Image.open(folder / "images" / f"{row}.png"))
        mask = np.asarray(Image.open(folder / "masks" / f"{row}.png"))
        assert np.allclose(pairs.items.image(row), image[None] / 255)
        assert np.array_equal(pairs.items.mask(row), mask // 255)
        window = (slice(2, 9), slice(3, 5))
        assert np.allclose(pairs.items.image(row, window), image[2:9, 3:5][None] / 255)
        assert np.array_equal(pairs.items.mask(row, window), mask[2:9, 3:5] // 255)
    assert "6 images with masks" in pairs.notes[0]


def test_decoded_once_and_again_when_a_file_changes(folder):
    load_pairs(folder, "all")
    (cached,) = (folder.parent / "cache").glob("*.items")
    before = cached.stat().st_mtime_ns
    load_pairs(folder, "all")
    assert cached.stat().st_mtime_ns == before
    Image.fromarray(np.full((12, 16), 7, np.uint8)).save(folder / "images" / "0.png")
    assert np.allclose(load_pairs(folder, "all").items.image(0), 7 / 255)
    assert len(list((folder.parent / "cache").glob("*.items"))) == 1


@pytest.mark.parametrize("channels", [1, 2, 3, 7])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_tiff_of_any_depth_and_number_of_channels(folder, dtype, channels):
    for i in range(6):
        (folder / "images" / f"{i}.png").unlink()
        size = (12 + i % 3, 16)
        values = (DRAW.random((channels, *size)) * 200).astype(dtype)
        stored = values[0] if channels == 1 else np.moveaxis(values, 0, -1)
        kind = "rgb" if channels == 3 and dtype != np.float32 else "minisblack"
        plan = None if channels == 1 else "contig"
        tifffile.imwrite(folder / "images" / f"{i}.tif", stored, photometric=kind, planarconfig=plan, metadata=None)
    pairs = load_pairs(folder, "all")
    scale = 1 if dtype == np.float32 else np.iinfo(dtype).max
    assert pairs.in_channels == channels
    assert np.allclose(pairs.items.image(5), values / scale, atol=1e-6)


def test_a_palette_is_numbers_not_colours(folder):
    for i in range(6):
        path = folder / "masks" / f"{i}.png"
        numbers = np.asarray(Image.open(path)) // 255 * 3
        image = Image.fromarray(numbers.astype(np.uint8))
        image.putpalette([0, 0, 0, 9, 9, 9, 0, 0, 0, 200, 10, 10])
        image.save(path)
    pairs = load_pairs(folder, "all")
    assert pairs.classes == ("background", "3")


def test_given_splits(folder):
    for split, names in (("train", "012"), ("val", "34")):
        for part in ("images", "masks"):
            (folder / split / part).mkdir(parents=True)
            for name in names:
                (folder / part / f"{name}.png").rename(folder / split / part / f"{name}.png")
    assert load_pairs(folder, "train").names == ["train/0", "train/1", "train/2"]
    assert load_pairs(folder, "valid").names == ["valid/3", "valid/4"]
    Image.fromarray(np.full((12, 16), 9, np.uint8)).save(folder / "val" / "masks" / "3.png")
    with pytest.raises(DataError, match=r"3.png: has the value 9; the training masks hold \[0, 255\]"):
        load_pairs(folder, "all")


def test_everything_that_is_missing_or_wrong_comes_in_one_report(folder):
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(folder / "masks" / "0.png")
    (folder / "images" / "1.png").write_bytes((folder / "images" / "1.png").read_bytes()[:60])
    Image.fromarray(np.zeros((12, 16, 3), np.uint8)).save(folder / "images" / "3.png")
    Image.fromarray(np.full((13, 16), 77, np.uint8)).save(folder / "masks" / "4.png")
    (folder / "classes.csv").write_text("value,name\n0,none\n255,cell\n")
    with pytest.raises(DataError) as caught:
        load_pairs(folder, "all")
    text = "\n".join(caught.value.problems)
    for words in (
        "0.png: is 9×9 and its image 0.png is 16×12",
        "1.png: cannot be read as an image",
        "3.png: has 3 channels in 2 dimensions where 4 images have 1 channel in 2 dimensions",
        "4.png: has the value 77; classes.csv lists [0, 255]",
    ):
        assert words in text
    assert len(caught.value.problems) == 4
    (folder / "masks" / "5.png").unlink()
    with pytest.raises(DataError) as caught:
        load_pairs(folder, "all")
    assert "5.png: has no mask masks/5" in caught.value.problems[0]
    assert len(caught.value.problems) == 5


def on_its_side(path):
    image = Image.open(path)
    image.getexif()[274] = 3
    image.save(path, exif=image.getexif())


def of_one_value(masks):
    for path in masks.iterdir():
        Image.fromarray(np.zeros(np.asarray(Image.open(path)).shape, np.uint8)).save(path)


def mask(pixels):
    return lambda folder: Image.fromarray(pixels).save(folder / "masks" / "4.png")


FAULTS = {
    "no image": (lambda f: (f / "images" / "4.png").unlink(), "4.png: has no image images/4"),
    "two": (
        lambda f: tifffile.imwrite(f / "images" / "2.tif", np.zeros((4, 4), np.uint8)),
        "2.tif: 2.png has the same name|2.png: 2.tif|2.tif: .*same name",
    ),
    "smooth": (
        mask(np.arange(256, dtype=np.uint8).reshape(16, 16)),
        "has 256 different values; a mask holds one number per class",
    ),
    "coloured": (mask(DRAW.integers(0, 256, (13, 16, 3), np.uint8)), "is coloured; a mask has one number per pixel"),
    "on its side": (lambda f: on_its_side(f / "masks" / "4.png"), "4.png: is stored on its side"),
    "one value": (lambda f: of_one_value(f / "masks"), "two or more are needed"),
    "bad list": (lambda f: (f / "classes.csv").write_text("number,name\n0,glass\n"), "is no table of classes"),
    "no folder": (
        lambda f: (f / "masks").rename(f / "answers"),
        "masks: is no folder; expected folders images and masks",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_refused(folder, fault):
    plant, says = FAULTS[fault]
    plant(folder)
    with pytest.raises(DataError, match=says):
        load_pairs(folder, "all")


@pytest.fixture
def volumes(tmp_path, monkeypatch):
    """Three volumes of a bright block, of voxels twice as long along the last axis, with its mask."""
    monkeypatch.setenv("LIESPLINE_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "scans"
    for part in ("images", "labels"):
        (root / part).mkdir(parents=True)
    affine = np.diag([1.0, 1.0, 2.0, 1.0])
    for i in range(3):
        mask = np.zeros((10, 12, 8 + i), np.uint8)
        mask[3:7, 4:8, 2:4] = 1
        nifti(root / "labels" / f"{i}.nii.gz", mask.astype(np.float32 if i else np.uint8), affine)
        nifti(root / "images" / f"{i}.nii.gz", (mask * 10.0 ** (i + 2)).astype(np.float32), affine)
    return root


def test_voxels_become_cubes_and_intensities_alike(volumes):
    pairs = load_pairs(volumes, "all", Reading(side=1.0))
    assert pairs.sizes == [(10, 12, 16), (10, 12, 18), (10, 12, 20)]
    for row in range(3):
        assert pairs.items.counts[row, 1] == 4 * 4 * 4
        assert np.isclose(pairs.items.image(row).max(), pairs.items.image(0).max(), rtol=0.2)
    default = load_pairs(volumes, "all")
    assert default.side == pytest.approx(2 ** (1 / 3), abs=1e-3)
    assert "cubes of 1.26 mm" in default.notes[-1]
    window = load_pairs(volumes, "all", Reading(window=(0, 200), side=1.0))
    assert np.isclose(window.items.image(0).max(), 0.5)


def test_volumes_that_do_not_fit(volumes):
    shifted = np.diag([1.0, 1.0, 2.0, 1.0])
    shifted[0, 3] = 5
    nifti(volumes / "labels" / "0.nii.gz", np.ones((10, 12, 8), np.uint8), shifted)
    values = np.zeros((10, 12, 9), np.float32)
    values[1, 2, 3] = np.nan
    nifti(volumes / "images" / "1.nii.gz", values, np.diag([1.0, 1.0, 2.0, 1.0]))
    nifti(volumes / "labels" / "2.nii.gz", np.full((10, 12, 10), 0.5, np.float32), np.diag([1.0, 1.0, 2.0, 1.0]))
    with pytest.raises(DataError, match="values between whole numbers"):
        load_pairs(volumes, "all")
    nifti(volumes / "labels" / "2.nii.gz", np.ones((10, 12, 10), np.uint8), np.diag([1.0, 1.0, 2.0, 1.0]))
    with pytest.raises(DataError) as caught:
        load_pairs(volumes, "all")
    text = "\n".join(caught.value.problems)
    assert "lies in another place than its image" in text
    assert "1 voxels are NaN" in text


def test_a_dicom_series_with_a_mask(volumes):
    (volumes / "images" / "0.nii.gz").unlink()
    dicom_series(volumes / "images" / "0", DRAW.integers(0, 99, (12, 10, 8)), step=2.0, spacing=(1.0, 1.0))
    np.save(volumes / "labels" / "0.npy", np.ones((10, 12, 8), np.uint8))
    (volumes / "labels" / "0.nii.gz").unlink()
    assert load_pairs(volumes, "all", Reading(side=2.0)).sizes[0] == (5, 6, 8)


def test_patches_find_a_class_of_four_voxels_in_one_image_of_fifty(tmp_path, monkeypatch):
    monkeypatch.setenv("LIESPLINE_CACHE", str(tmp_path / "cache"))
    for i in range(50):
        mask = np.zeros((64, 64), np.uint8)
        mask[:20] = 1
        if i == 17:
            mask[50:52, 3:5] = 2
        write_pair(tmp_path / "set", f"{i:02}", np.full((64, 64), i, np.uint8), mask)
    pairs = load_pairs(tmp_path / "set", "all")
    drawn = RandomPatches(pairs.items, pairs._rows, (16, 16), 8, seed=3)
    seen = np.array([[bool((mask == c).any()) for c in range(3)] for _, mask in (drawn[i] for i in range(len(drawn)))])
    # Half of the patches are put around a class, every other one of those around the rare one.
    assert 0.19 < seen[:, 2].mean() < 0.31
    assert seen[:, 1].mean() > 0.4
    # Without the focus it is almost never seen: what the check is about.
    monkeypatch.setattr("liespline.lab.data.patches.FOCUSED", 0.0)
    blind = RandomPatches(pairs.items, pairs._rows, (16, 16), 8, seed=3)
    assert np.mean([bool((blind[i][1] == 2).any()) for i in range(len(blind))]) < 0.02


def test_draws_depend_on_seed_and_index_alone(folder):
    pairs = load_pairs(folder, "all")
    one, two = (RandomPatches(pairs.items, pairs._rows, (8, 8), 2, seed=seed) for seed in (0, 1))
    again = RandomPatches(pairs.items, pairs._rows, (8, 8), 2, seed=0)
    batch = one.__getitems__([0, 5, 12 + 5])  # the last is of the second epoch
    assert np.array_equal(batch[0], again.__getitems__([0, 5, 17])[0])
    assert not np.array_equal(batch[0], two.__getitems__([0, 5, 17])[0])
    assert not np.array_equal(batch[0][1], batch[0][2])
    places = {one._place(i)[0] for i in range(60)}
    assert places == set(range(6))


def test_masks_of_resampled_volumes_are_kept_on_their_own_grid(volumes):
    split = load_pairs(volumes, "all", Reading(side=1.5))
    for index, (image, mask, own, spacing) in enumerate(split.to_pick_by()[i] for i in range(3)):
        assert np.array_equal(own, nibabel.load(volumes / "labels" / f"{index}.nii.gz").dataobj)
        assert spacing == (1.0, 1.0, 2.0)
        assert image.shape[2:] == mask.shape[1:] == (7, 8, round((8 + index) * 2 / 1.5))
    assert split.values == (0, 1)
    assert split.voxels == pytest.approx(2 ** (1 / 3))


def test_images_smaller_than_the_patch_lie_in_its_middle(folder):
    pairs = load_pairs(folder, "all")
    image, mask = RandomPatches(pairs.items, pairs._rows, (32, 32), 1, seed=0)[0]
    assert image.shape == (1, 32, 32)
    inside = mask != IGNORE
    assert inside.any(1).nonzero().flatten().tolist() == list(range(10, 22))
    assert inside.any(0).nonzero().flatten().tolist() == list(range(8, 24))


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("file,group\n0.png,a\n", r"who\.csv: has no row for 1"),
        ("file,label\n0.png,a\n1.png,b\n", "for masks it says split and group only"),
    ],
)
def test_tables_that_are_refused(folder, table, says):
    (folder / "who.csv").write_text(table)
    with pytest.raises(DataError, match=says):
        load_pairs(folder, "all", labels=folder / "who.csv")
