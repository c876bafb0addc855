"""Segmentation from the command to the files, with every number computed again by nibabel, Pillow and numpy."""

import json
import re
import tracemalloc

import nibabel
import numpy as np
import pytest
import tifffile
import torch
from PIL import Image

from liespline.lab import load
from liespline.lab.runs.model_file import read_weights, save_weights
from liespline.lab.runs.trained import TILE, last_layers
from truth.road import ended, liespline

TINY = tuple("--set widths=2,3 --set kernel_size=3 --accelerator cpu --quiet --lr 0.05 --batch-size 8".split())
PLAIN = ("--group", "none", *TINY)
# Axes in another order than right, forward, up, one of them backwards, and an origin.
TURN = np.array([[0, 0, 1.0], [-1.0, 0, 0], [0, 1.0, 0]])


def trained(folder, out, *more):
    liespline("train", "segment", "--data", folder, "--out", out, *more)
    return out


def evaluated(run):
    return json.loads(liespline("evaluate", run, "--split", "valid", "--json"))


def epochs_of(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def picked(run):
    """The row of the epoch with the best score; of equal ones, that of the lowest loss."""
    rows = [row for row in epochs_of(run) if "valid_dice" in row]
    return max(rows, key=lambda row: (row["valid_dice"], -row["valid_loss"]))


def names_of(run, split):
    return sorted(json.loads((run / "data.json").read_text())["splits"][split])


def dice(pairs, values, ignored=()):
    """The mean Dice of all values but the first over the voxels of all pairs of a found and a true mask."""
    found, true = (np.concatenate([np.asarray(part).ravel() for part in parts]) for parts in zip(*pairs, strict=True))
    known = ~np.isin(true, ignored)
    found, true = found[known], true[known]
    assert set(np.unique(found)) <= set(values), "no other values than those of the training masks"
    each = [2 * ((found == v) & (true == v)).sum() / ((found == v).sum() + (true == v).sum()) for v in values[1:]]
    return float(np.mean(each))


def predicted(run, files, out):
    said, errors = ended(0, "predict", run, *files, "--out", out, "--json")
    return [row["mask"] for row in json.loads(said)], errors


def stored(path):
    """The values in the file of a mask, by nibabel, tifffile or Pillow."""
    if str(path).endswith(".nii.gz"):
        return np.asarray(nibabel.load(path).dataobj)
    return tifffile.imread(path) if str(path).endswith("tif") else np.asarray(Image.open(path))


def check(run, root, out, values, ignored=()):
    """Training, `evaluate` and the files that `predict` writes say the same of the validation images."""
    row, found, names = picked(run), evaluated(run), names_of(run, "valid")
    masks, _ = predicted(run, [next((root / "images").glob(f"{name}.*")) for name in names], out)
    truth = next(root / part for part in ("labels", "masks") if (root / part).is_dir())
    true = [stored(next(truth.glob(f"{name}.*"))) for name in names]
    pairs = list(zip(map(stored, masks), true, strict=True))
    by_others = dice(pairs, values, ignored)
    assert 0.1 < by_others < 0.999, "a score that could be anything"
    assert found["scores"]["dice"] == pytest.approx(by_others, abs=1e-6)
    assert row["valid_dice"] == pytest.approx(by_others, abs=1e-6)
    assert row["valid_loss"] == pytest.approx(found["scores"]["loss"], abs=1e-5)
    return pairs, found


# ---- volumes ----


def volume(root, name, shape, spacing, draw, units="mm", codes=(2, 1)):
    """A bright and a brighter block in noise, with their mask of 0, 4 and 9."""
    mask = np.zeros(shape, np.int16)
    for value in (4, 9):
        low = [int(draw.integers(0, n // 2)) for n in shape]
        mask[tuple(slice(at, at + max(3, n // 3)) for at, n in zip(low, shape, strict=True))] = value
    values = 100.0 * mask + draw.normal(2000, 60, shape)
    affine = np.eye(4)
    affine[:3, :3], affine[:3, 3] = TURN * spacing, (11, -7, 3)
    for part, array in (("images", values.astype(np.int16)), ("labels", mask)):
        (root / part).mkdir(parents=True, exist_ok=True)
        image = nibabel.Nifti1Image(array, affine)
        image.set_sform(affine, codes[0])
        image.set_qform(affine, codes[1])
        image.header.set_xyzt_units(units)
        nibabel.save(image, root / part / f"{name}.nii.gz")


@pytest.fixture(scope="module")
def brain(tmp_path_factory):
    """Twelve volumes of several sizes, a little larger than a patch of 8, and of two kinds of voxels."""
    root, draw = tmp_path_factory.mktemp("brain") / "set", np.random.default_rng(3)
    for i in (7, 2, 11, 0, 5, 9, 3, 10, 1, 8, 4, 6):
        shape = (44 + i % 3, 11 + i % 4, 9 + i % 2)
        volume(root, f"v{i}", shape, (0.9, 1.1, 1.8) if i % 2 else (1.2, 1.0, 2.3), draw)
    return root


def check_volumes(run, root, out):
    pairs, found = check(run, root, out, (0, 4, 9))
    each = [dice([pair], (0, 4, 9)) for pair in pairs]
    assert found["scores"]["dice_per_image"] == pytest.approx(np.mean(each), abs=1e-6)
    for number, value in ((1, 4), (2, 9)):
        voxels = sum(int((true == value).sum()) for _, true in pairs)
        assert sum(found["confusion"][number]) == voxels, "of the stored masks"


@pytest.fixture(scope="module")
def coarse(brain, tmp_path_factory):
    """Trained on cubes of 2.2 mm, with a moving average of the weights."""
    more = ("--spacing", 2.2, "--patch", 8, "--epochs", 8, "--set", "ema=0.8")
    return trained(brain, tmp_path_factory.mktemp("runs") / "coarse", *PLAIN, *more)


def test_volumes_with_another_spacing(coarse, brain, tmp_path):
    check_volumes(coarse, brain, tmp_path)


def test_volumes_of_their_own_spacing_in_tiles(brain, tmp_path, monkeypatch):
    """Cubes as large as the usual voxel; tiles of 32 samples, so that volumes are cut where they are scored."""
    monkeypatch.setitem(TILE, 3, 32)
    run = trained(brain, tmp_path / "run", *PLAIN, "--patch", 8, "--epochs", 8, "--seed", 2)
    assert load(run).tiling((40, 14, 10)).halo > 0
    check_volumes(run, brain, tmp_path / "out")


def test_headers_are_kept(coarse, brain, tmp_path):
    """Units, both affines with their codes, sizes and extensions are the image's; what is said of values is not."""
    draw, wide = np.random.default_rng(0), tmp_path / "new"
    volume(wide, "one", (15, 12, 10), (0.9, 1.1, 1.8), draw, units="mm")
    file = wide / "images" / "one.nii.gz"
    image = nibabel.load(file)
    moved = image.affine.copy()
    moved[:3, 3] += 5
    image.set_qform(moved, 3)
    image.header["descrip"], image.header["cal_max"], image.header["pixdim"][4] = b"of a scanner", 900, 2.5
    image.header.set_xyzt_units("mm", "msec")
    image.header.set_intent("t test", (3,))
    image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", b"kept"))
    nibabel.save(image, file)
    (path,), _ = predicted(coarse, [file], tmp_path / "out")
    before, after = nibabel.load(file).header, nibabel.load(path).header
    floats = {name: before[name].dtype.kind == "f" for name in before}
    differ = {name for name in before if not np.array_equal(before[name], after[name], equal_nan=floats[name])}
    assert differ == {"datatype", "bitpix", "cal_max", "intent_code", "intent_p1"}
    assert after.get_xyzt_units() == ("mm", "msec")
    for form in ("get_sform", "get_qform"):
        (one, code), (other, same) = (getattr(nibabel.load(p), form)(coded=True) for p in (file, path))
        assert np.array_equal(one, other)
        assert code == same
    assert [extension.get_content() for extension in nibabel.load(path).header.extensions] == [b"kept"]
    assert nibabel.load(path).get_data_dtype() == np.uint8


def test_a_second_version_header_and_a_header_of_four_axes(coarse, tmp_path):
    draw, root = np.random.default_rng(1), tmp_path / "new"
    volume(root, "one", (14, 12, 10), (0.9, 1.1, 1.8), draw)
    image = nibabel.load(root / "images" / "one.nii.gz")
    second = nibabel.Nifti2Image(np.asarray(image.dataobj)[..., None], image.affine, image.header)
    nibabel.save(second, root / "images" / "two.nii.gz")
    masks, _ = predicted(coarse, [root / "images"], tmp_path / "out")
    one, two = map(nibabel.load, masks)
    assert isinstance(two, nibabel.Nifti2Image)
    assert one.shape == two.shape == (14, 12, 10)
    assert np.array_equal(one.dataobj, two.dataobj)
    assert np.allclose(one.affine, two.affine)


@pytest.mark.parametrize(("factor", "warned"), [(0.1, True), (0.4, False), (3.0, False), (8.0, True)])
def test_voxels_of_another_size_are_warned_of(coarse, tmp_path, factor, warned):
    """Against the usual voxel in training, of 1.21 or 1.40 mm (cube roots of products), not against cubes of 2.2."""
    draw, root = np.random.default_rng(5), tmp_path / "new"
    for split in ("train", "valid", "test"):
        volume(root / split, "a", (6, 7, 5), tuple(factor * n for n in (1.2, 1.0, 1.9)), draw)
    _, said = predicted(coarse, [root / "test" / "images"], tmp_path / "out")
    out, also = ended(0, "evaluate", coarse, "--data", root, "--split", "all", "--json")
    assert json.loads(out)["images"] == 3
    side = factor * (1.2 * 1.0 * 1.9) ** (1 / 3)
    for text in (said, also):
        assert (f"has voxels of {side:.3g} mm, the network was trained on voxels of 1." in text) == warned


def test_a_bad_file_does_not_stop_the_others(coarse, brain, tmp_path):
    folder, out = tmp_path / "new", tmp_path / "out"
    folder.mkdir()
    for name in ("v3", "v0", "v8"):
        (folder / f"{name}.nii.gz").write_bytes((brain / "images" / f"{name}.nii.gz").read_bytes())
    whole = (folder / "v3.nii.gz").read_bytes()
    (folder / "v3.nii.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "v5.nii").write_bytes(b"nothing")
    listed, said = ended(1, "predict", coarse, folder, "--out", out, "--json")
    assert [row["image"] for row in json.loads(listed)] == [str(folder / f"{name}.nii.gz") for name in ("v0", "v8")]
    assert sorted(path.name for path in out.glob("[!.]*")) == ["v0.nii.gz", "v8.nii.gz"]
    assert "2 of 4 files have no prediction" in said
    assert f"{folder / 'v3.nii.gz'}: cannot be read as NIfTI" in said
    assert f"{folder / 'v5.nii'}: cannot be read as NIfTI" in said


@pytest.mark.parametrize(("names", "out", "says"), [
    (("a/v0.nii.gz", "b/v0.nii.gz"), "out", "v0: two images of the same name"),
    (("a/v0.nii.gz", "a/v1.nii.gz"), "new/a", "v0.nii.gz: a mask would take its place"),
])  # fmt: skip
def test_no_mask_takes_the_place_of_another_or_of_an_image(coarse, brain, tmp_path, names, out, says):
    for name in names:
        (tmp_path / "new" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "new" / name).write_bytes((brain / "images" / "v0.nii.gz").read_bytes())
    before = {name: (tmp_path / "new" / name).read_bytes() for name in names}
    assert says in ended(2, "predict", coarse, tmp_path / "new", "--out", tmp_path / out)[1]
    assert before == {name: (tmp_path / "new" / name).read_bytes() for name in names}


# ---- images ----

VALUES = (0, 128, 255)


def picture(root, name, size, draw, values=VALUES, dtype=np.uint8, suffix="png"):
    """A disc and a bar in noise, and their mask with these values."""
    y, x = np.mgrid[: size[0], : size[1]]
    mask = np.full(size, values[0], np.int64)
    cy, cx = draw.uniform(6, size[0] - 6), draw.uniform(6, size[1] - 6)
    mask[(y - cy) ** 2 + (x - cx) ** 2 < 36] = values[1]
    at = int(draw.integers(2, size[1] - 6))
    mask[:, at : at + 4] = values[2]
    grey = 40 + 70 * (mask == values[1]) + 140 * (mask == values[2]) + draw.normal(0, 20, size)
    for part, array in (("images", grey.clip(0, 255).astype(np.uint8)), ("masks", mask.astype(dtype))):
        (root / part).mkdir(parents=True, exist_ok=True)
        Image.fromarray(array).save(root / part / f"{name}.{suffix if part == 'images' else 'png'}")
    return mask


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """Fifteen pictures of odd and even sizes, named out of order, a third of them TIFF."""
    root, draw = tmp_path_factory.mktemp("cells") / "set", np.random.default_rng(1)
    for i in np.random.default_rng(2).permutation(15):
        picture(root, f"c{i}", (43 + i % 4, 21 + i % 5), draw, suffix="tif" if i % 3 == 0 else "png")
    return root


@pytest.fixture(scope="module")
def flat(cells, tmp_path_factory):
    """Halved twice, so that sides are continued to multiples of 4: before the first sample too."""
    run = tmp_path_factory.mktemp("runs") / "flat"
    more = ("--set", "widths=2,2,3", "--patch", 16, "--epochs", 3, "--set", "ema=0.7")
    return trained(cells, run, *PLAIN, *more)


def test_pictures_and_the_values_of_their_masks(flat, cells, tmp_path):
    check(flat, cells, tmp_path, VALUES)


def test_pictures_in_tiles(cells, tmp_path, monkeypatch):
    monkeypatch.setitem(TILE, 2, 36)
    run = trained(cells, tmp_path / "run", *PLAIN, "--patch", 16, "--epochs", 4)
    assert load(run).tiling((45, 25)).halo > 0
    check(run, cells, tmp_path / "out", VALUES)


def test_pictures_with_moved_grids_and_an_ensemble(cells, tmp_path):
    more = ("--group", "so2", "--elements", 4, "--grid-jitter", 1, "--set", "ensemble=2", "--patch", 16, "--epochs", 2)
    check(trained(cells, tmp_path / "run", *TINY, *more), cells, tmp_path / "out", VALUES)


def test_mean_over_grids_is_scored_once_it_is_trained(cells, tmp_path):
    """Epochs are scored on the grid that is trained, which is said; what is used is the mean over both."""
    run = tmp_path / "run"
    more = ("--group", "so2", "--elements", 2, "--tta-grids", 2, "--patch", 16, "--epochs", 1)
    said = liespline("train", "segment", "--data", cells, "--out", run, *TINY, *more)
    assert "--tta-grids 2: epochs are scored on one grid" in said
    one, pairs, names = load(run), [], names_of(run, "valid")
    one.network = one.network.networks[0]
    for name in names:
        file = next((cells / "images").glob(f"{name}.*"))
        pixels = torch.from_numpy(np.asarray(Image.open(file)) / np.float32(255))
        answer = np.array([0, 128, 255])[one.in_tiles(pixels[None, None])[0].argmax(0).numpy()]
        pairs.append((answer, np.asarray(Image.open(cells / "masks" / f"{name}.png"))))
    assert picked(run)["valid_dice"] == pytest.approx(dice(pairs, VALUES), abs=1e-6)
    masks, _ = predicted(run, [next((cells / "images").glob(f"{name}.*")) for name in names], tmp_path / "out")
    pairs = [(stored(mask), true) for mask, (_, true) in zip(masks, pairs, strict=True)]
    assert evaluated(run)["scores"]["dice"] == pytest.approx(dice(pairs, VALUES), abs=1e-6)


def test_masks_of_nothing_but_background_have_no_consistency(flat, tmp_path):
    """Which was written as NaN, a word that JSON does not know, and shown as nan %."""
    weights, about = read_weights(flat / "model.safetensors")
    (last,) = last_layers(load(flat).network)
    weights[f"{last}weight"] *= 0
    weights[f"{last}bias"] = torch.tensor([9.0, 0, 0])
    save_weights(tmp_path / "blind.safetensors", weights, about)
    whole = ("evaluate", tmp_path / "blind.safetensors", "--split", "all")
    found = json.loads(liespline(*whole, "--json"), parse_constant=pytest.fail)["rotated_masks"]
    assert found["rotation_consistency"] is None
    assert found["upright"] == found["rotated"] == 0
    assert re.search(r"\(Dice\) +│ undefined", liespline(*whole))


def test_values_above_255_listed_classes_and_ignored_ones(tmp_path):
    """The values are those of classes.csv, in its order; a value to be ignored is never written."""
    root, draw = tmp_path / "set", np.random.default_rng(4)
    for i in range(9):
        picture(root, f"c{i}", (30 + i % 3, 26), draw, (7, 300, 1000), np.uint16, "tif" if i % 2 else "png")
        path = root / "masks" / f"c{i}.png"
        mask = np.asarray(Image.open(path)).copy()
        mask[:4] = 2  # never to be written
        Image.fromarray(mask).save(path)
    (root / "classes.csv").write_text("value,name\n7,glass\n2,ignore\n1000,bar\n300,disc\n")
    run = trained(root, tmp_path / "run", *PLAIN, "--patch", 16, "--epochs", 2)
    pairs, checked = check(run, root, tmp_path / "out", (7, 1000, 300), (2,))
    assert {found.dtype for found, _ in pairs} == {np.dtype(np.uint16)}
    found, true = (np.concatenate([part.ravel() for part in parts]) for parts in zip(*pairs, strict=True))
    found, true = found[true != 2], true[true != 2]
    for name, value in (("bar", 1000), ("disc", 300)):
        expected = 2 * ((found == value) & (true == value)).sum() / ((found == value).sum() + (true == value).sum())
        assert checked["scores"][f"Dice, {name}"] == pytest.approx(expected, abs=1e-6)


def test_memory_does_not_grow_with_the_folder(flat, tmp_path):
    """The most that Python and numpy hold at once, for three pictures and for twelve of the same size."""
    draw, most = np.random.default_rng(0), []
    for count in (3, 3, 12):
        root = tmp_path / f"{len(most)}"
        for i in range(count):
            picture(root, f"p{i}", (300, 310), draw)
        tracemalloc.start()
        predicted(flat, [root / "images"], root / "out")
        most.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert most[2] < 1.1 * most[1] + 2**19


def test_what_was_decoded_by_another_version_is_decoded_anew(brain, coarse, tmp_path, monkeypatch):
    """Files of before have no masks on their own grid; those that are there are not taken for new ones."""
    monkeypatch.setenv("LIESPLINE_CACHE", str(tmp_path / "cache"))
    with monkeypatch.context() as patch:
        patch.setattr("liespline.lab.data.store.FORMAT", 1)
        patch.setattr("liespline.lab.data.patches.MaskStore.own_mask", lambda self, row: self.mask(row))
        evaluated(coarse)
    before = set((tmp_path / "cache").glob("*.items"))
    scores = evaluated(coarse)["scores"]
    after = set((tmp_path / "cache").glob("*.items"))
    assert len(before) == len(after) == 1
    assert before != after
    assert scores["dice"] == pytest.approx(picked(coarse)["valid_dice"], abs=1e-6)


def test_models_of_before_write_class_numbers(flat, cells, tmp_path):
    """They do not say what masks hold, nor how large the voxels were."""
    weights, about = read_weights(flat / "model.safetensors")
    for name in ("values", "voxels"):
        del about["signature"][name]
    save_weights(tmp_path / "old.safetensors", weights, about)
    files = [cells / "images" / "c1.png", cells / "images" / "c0.tif"]
    old, _ = predicted(tmp_path / "old.safetensors", files, tmp_path / "old")
    new, _ = predicted(flat, files, tmp_path / "new")
    for one, other in zip(old, new, strict=True):
        assert np.array_equal(np.array([0, 128, 255], np.uint8)[stored(one)], stored(other))


def test_a_model_whose_values_are_not_those_of_its_classes_is_refused(flat, cells, tmp_path):
    weights, about = read_weights(flat / "model.safetensors")
    about["signature"]["values"] = [0, 255]
    save_weights(tmp_path / "odd.safetensors", weights, about)
    given = ("predict", tmp_path / "odd.safetensors", cells / "images" / "c1.png", "--out", tmp_path / "out")
    assert re.search("odd.safetensors: .*2 values of masks for 3 classes", ended(2, *given)[1])
