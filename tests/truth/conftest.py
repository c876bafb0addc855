"""Small runs on made-up files, each trained once by the command: nothing about them is sorted, square or even."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import nibabel
import numpy as np
import pytest
from PIL import Image

from lab.conftest import liespline
from truth.new_images import balls, mixed, spots
from truth.road import Array, Road, boxed, normalised, pixels, train

__all__ = ["balls", "liespline", "mixed", "spots"]


def blob(draw: np.random.Generator, size: Sequence[int], width: float, light: float) -> Array:
    """A bright blob somewhere near the middle, on noise."""
    axes = np.meshgrid(*[np.arange(n) - (n - 1) / 2 + draw.uniform(-2, 2) for n in size], indexing="ij")
    shape = np.exp(-sum(axis**2 for axis in axes) / (2 * width**2))
    return (30 + light * shape + draw.normal(0, 12, size)).clip(0, 255).astype(np.uint8)


def shuffled(count: int, draw: np.random.Generator) -> list[str]:
    """Names whose order by number, by letter and in the table are three orders."""
    return [f"{n}.png" for n in draw.permutation(np.arange(7, 7 + count))]


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    with open(path, "w", newline="") as stream:
        csv.writer(stream).writerows([columns, *rows])
    return path


@pytest.fixture(scope="session")
def folders(tmp_path_factory) -> Road:
    """Class folders with splits: 14 to 6 in training, 5 to 4 in validation, which is no full batch, 6 to 7 in test."""
    root, draw = tmp_path_factory.mktemp("folders"), np.random.default_rng(16)  # its epochs by AUC and accuracy differ
    truth, inputs = {}, {}
    for split, counts in {"test": (6, 7), "train": (14, 6), "valid": (5, 4)}.items():
        for name, count, width in zip(("zebra", "ant"), counts, (2.6, 3.6), strict=True):
            folder = root / "data" / split / name
            folder.mkdir(parents=True)
            for file in shuffled(count, draw):
                image = blob(draw, (15, 20), width + draw.uniform(-0.8, 0.8), draw.uniform(60, 200))
                Image.fromarray(image).save(folder / file)
                truth[f"{split}/{name}/{file}"] = name
                inputs[f"{split}/{name}/{file}"] = pixels(folder / file)
    return Road(train("images", root / "data", root / "run", epochs=6, lr=0.02), truth, inputs)


@pytest.fixture(scope="session")
def classes(tmp_path_factory) -> Road:
    """A shuffled table of three classes that are numbers, in groups; some images are grey and some in colours."""
    root, draw = tmp_path_factory.mktemp("classes"), np.random.default_rng(1)
    (root / "data" / "more").mkdir(parents=True)
    truth, inputs, rows = {}, {}, []
    for i, name in enumerate(shuffled(46, draw)):
        file, kind = f"more/{name}" if i % 3 else name, int(draw.choice(3, p=(0.5, 0.3, 0.2)))
        image = blob(draw, (17, 14), (2.0, 3.0, 4.0)[kind], draw.uniform(60, 200))
        if i % 2:
            image = np.stack([image, image[::-1], 255 - image], -1)  # a channel that is taken for another shows
        Image.fromarray(image).save(root / "data" / file)
        truth[file], inputs[file] = ("10", "9", "2")[kind], np.broadcast_to(pixels(root / "data" / file), (3, 17, 14))
        rows.append((truth[file], file, f"p{i // 3}"))
    write_table(root / "table.csv", ("kind", "file", "group"), draw.permutation(rows).tolist())
    run = train("images", root / "data", root / "run", labels=root / "table.csv", lr=0.03)
    return Road(run, truth, inputs, {file: group for _, file, group in rows})


@pytest.fixture(scope="session")
def numbers(tmp_path_factory) -> Road:
    """A shuffled table of one measurement in a unit of its own, and of splits; in training they scatter less."""
    root, draw = tmp_path_factory.mktemp("numbers"), np.random.default_rng(2)
    (root / "data").mkdir()
    truth, inputs, rows = {}, {}, []
    for i, file in enumerate(shuffled(37, draw)):
        split = ("valid", "test", "train", "train")[i % 4]
        width = 3 + draw.uniform(-1, 1) * (0.5 if split == "train" else 1)
        Image.fromarray(blob(draw, (12, 19), width, 150)).save(root / "data" / file)
        truth[file], inputs[file] = [round(40 * width + 3000, 2)], pixels(root / "data" / file)
        rows.append((file, split, truth[file][0]))
    write_table(root / "table.csv", ("file", "split", "height"), draw.permutation(rows).tolist())
    run = train("images", root / "data", root / "run", labels=root / "table.csv", lr=0.03)
    return Road(run, truth, inputs, {file: split for file, split, _ in rows})


@pytest.fixture(scope="session")
def tags(tmp_path_factory) -> Road:
    """A shuffled table of three tags, each there and absent in every split."""
    root, draw = tmp_path_factory.mktemp("tags"), np.random.default_rng(3)
    (root / "data").mkdir()
    truth, inputs, rows = {}, {}, []
    for i, file in enumerate(shuffled(58, draw)):
        wide, bright, odd = draw.random() < 0.4, draw.random() < 0.6, i % 2
        image = blob(draw, (18, 13), 4.5 if wide else 2.5, 200 if bright else 70)
        Image.fromarray(image).save(root / "data" / file)
        truth[file], inputs[file] = [int(wide), int(bright), odd], pixels(root / "data" / file)
        rows.append((file, *truth[file]))
    write_table(root / "table.csv", ("file", "wide", "bright", "odd"), draw.permutation(rows).tolist())
    return Road(train("images", root / "data", root / "run", labels=root / "table.csv", lr=0.03), truth, inputs)


@pytest.fixture(scope="session")
def points(tmp_path_factory) -> Road:
    """A shuffled table of two points on images of 36 by 50, the later one's columns first."""
    root, draw = tmp_path_factory.mktemp("points"), np.random.default_rng(4)
    (root / "data").mkdir()
    truth, inputs, rows = {}, {}, []
    for file in shuffled(25, draw):
        places = np.stack([draw.uniform(4, 32, 2), draw.uniform(4, 46, 2)], 1).round(1)  # of eye and nose
        y, x = np.mgrid[:36, :50]
        image = sum(
            light * np.exp(-((y - row) ** 2 + (x - column) ** 2) / 12)
            for light, (row, column) in zip((110, 220), places, strict=True)
        )
        image = (image + draw.normal(9, 3, image.shape)).clip(0, 255).astype(np.uint8)
        Image.fromarray(image).save(root / "data" / file)
        truth[file], inputs[file] = places[::-1].tolist(), pixels(root / "data" / file)
        rows.append((file, *places[1, ::-1], *places[0]))
    columns = ("file", "nose_column", "nose_row", "eye_row", "eye_column")
    write_table(root / "table.csv", columns, draw.permutation(rows).tolist())
    plain = {"group": "none", "elements": None, "widths": None, "lr": 0.01, "epochs": 2}
    run = train("landmarks", root / "data", root / "run", labels=root / "table.csv", **plain)
    return Road(run, truth, inputs)


@pytest.fixture(scope="session")
def volumes(tmp_path_factory) -> Road:
    """Class folders of scans of several sizes, voxels of 2 mm, some stored from left to right and some from right."""
    root, draw = tmp_path_factory.mktemp("volumes"), np.random.default_rng(5)
    truth, inputs = {}, {}
    for name, count, width in (("small", 17, 1.5), ("large", 13, 2.2)):
        (root / "data" / name).mkdir(parents=True)
        for i, file in enumerate(shuffled(count, draw)):
            scan = blob(draw, (7, 9 - i % 3, 8), width + draw.uniform(-0.4, 0.4), draw.uniform(60, 200))
            stored, affine = (scan[::-1], np.diag([-2.0, 2, 2, 1])) if i % 3 else (scan, np.diag([2.0, 2, 2, 1]))
            file = f"{name}/{file.replace('png', 'nii.gz')}"
            nibabel.save(nibabel.Nifti1Image(np.ascontiguousarray(stored), affine), root / "data" / file)
            truth[file], inputs[file] = name, boxed(normalised(scan[None]), (7, 9, 8))
    run = train(
        "volumes", root / "data", root / "run", group="so3", elements=12, widths="2,2", basis=1, lr=0.1, epochs=4
    )
    return Road(run, truth, inputs)


def cells(draw: np.random.Generator, size: Sequence[int], step: Sequence[float] | None = None) -> tuple[Array, Array]:
    """Grey cells (1) and now and then a bright speck (2) on dark ground, and their mask; `step` is that of voxels."""
    step = step or (1.0,) * len(size)
    axes = np.meshgrid(*[(np.arange(n) - (n - 1) / 2) * s for n, s in zip(size, step, strict=True)], indexing="ij")
    mask = np.zeros(size, np.uint8)
    for number, radius in ((1, 5.0), (1, 4.0), (2, 2.2)):
        if number == 1 or draw.random() < 0.7:
            centre = [draw.uniform(-0.3, 0.3) * n * s for n, s in zip(size, step, strict=True)]
            mask[sum((a - c) ** 2 for a, c in zip(axes, centre, strict=True)) < radius**2] = number
    image = np.array([50, 110, 190])[mask] + draw.normal(0, 18, size)
    return image.clip(0, 255).astype(np.uint8), mask


def write_pair(data: Path, name: str, image: Array, mask: Array, affine: Array | None = None) -> None:
    """An image with its mask: PNG, or NIfTI where there is an affine."""
    for part, values in (("images", image), ("masks", mask)):
        (data / part).mkdir(parents=True, exist_ok=True)
        if affine is None:
            Image.fromarray(values).save(data / part / f"{name}.png")
        else:
            nibabel.save(nibabel.Nifti1Image(values, affine), data / part / f"{name}.nii.gz")


SIZES = ((33, 46), (40, 29), (28, 31))


def make_cells(root: Path, seed: int = 6, other: Sequence[str] = ()) -> tuple[Path, dict[str, str]]:
    """Images of three sizes with masks of three classes, and a shuffled table of splits; `other` are drawn anew."""
    draw, names = np.random.default_rng(seed), [str(n) for n in np.random.default_rng(seed).permutation(range(5, 21))]
    splits = {name: ("train", "valid", "train", "test", "train")[i % 5] for i, name in enumerate(names)}
    for i, name in enumerate(names):
        image, mask = cells(draw, SIZES[i % 3])
        if name in other:
            image, mask = cells(np.random.default_rng(100 + i), SIZES[i % 3])
            image = 255 - image
        write_pair(root / "data", name, image if i % 4 else image.astype(np.uint16) * 200, mask)
    (root / "data" / "classes.csv").write_text("value,name\n0,glass\n1,cell\n2,dirt\n")
    rows = draw.permutation([(f"{name}.png", split) for name, split in splits.items()]).tolist()
    return write_table(root / "table.csv", ("file", "split"), rows), splits


SEGMENT = {"widths": "3,4", "patch": 16, "lr": 0.02, "augment": "none"}


@pytest.fixture(scope="session")
def masks(tmp_path_factory) -> Road:
    """A segmentation of images by a table of splits."""
    root = tmp_path_factory.mktemp("masks")
    table, splits = make_cells(root)
    run = train("segment", root / "data", root / "run", labels=table, epochs=4, label_smoothing=0.1, **SEGMENT)
    truth = {name: np.asarray(Image.open(root / "data" / "masks" / f"{name}.png")) for name in splits}
    return Road(run, truth, {name: pixels(root / "data" / "images" / f"{name}.png") for name in splits}, splits)


@pytest.fixture(scope="session")
def scans(tmp_path_factory) -> Road:
    """A segmentation of volumes of 1 mm by a shuffled table of patients."""
    root, draw = tmp_path_factory.mktemp("scans"), np.random.default_rng(7)
    names = [str(n) for n in draw.permutation(range(6, 17))]
    truth, inputs, groups = {}, {}, {}
    for i, name in enumerate(names):
        image, mask = cells(draw, ((15, 12, 18), (13, 16, 14))[i % 2])
        write_pair(root / "data", name, image, mask, np.eye(4))
        truth[name], inputs[name], groups[name] = mask, normalised(image[None]), f"p{i * 2 // 3}"
    rows = draw.permutation([(groups[name], f"{name}.nii.gz") for name in names]).tolist()
    table = write_table(root / "table.csv", ("group", "file"), rows)
    run = train(
        "segment", root / "data", root / "run", labels=table, group="none", elements=None, **SEGMENT | {"patch": 12}
    )
    return Road(run, truth, inputs, groups)
