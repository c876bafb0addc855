"""Users' own images and volumes, MNIST and digits: what is read, and what is refused before training."""

import gzip
import io
import struct
import zipfile
from pathlib import Path

import kornia_rs.io
import numpy as np
import pytest
import torch
from PIL import Image

from liespline.lab.data import DataError, Split, as_float, digits, images, mnist, volumes
from liespline.lab.data.augment import Plain, Rotate
from liespline.lab.data.split import stratified

RNG = np.random.default_rng(0)


def picture(path: Path, shape=(12, 16), value=None, **options) -> np.ndarray:
    path.parent.mkdir(parents=True, exist_ok=True)
    array = RNG.integers(0, 256, shape, np.uint8) if value is None else np.full(shape, value, np.uint8)
    Image.fromarray(array).save(path, **options)
    return array


def folder(path: Path, count: int = 10, shape=(12, 16)) -> dict[str, np.ndarray]:
    return {f"{c}/{i}.png": picture(path / c / f"{i}.png", shape) for c in ("cat", "dog") for i in range(count)}


def everything(path: Path, size=None) -> list[tuple[torch.Tensor, int]]:
    splits = [images.load(path, split, size) for split in ("train", "valid", "test")]
    return [(image, int(label)) for data in splits for image, label in data]


def test_one_folder_a_class(tmp_path):
    arrays = folder(tmp_path / "data")
    assert images.check(tmp_path / "data") == []
    splits = {split: images.load(tmp_path / "data", split) for split in ("train", "valid", "test")}
    assert [len(data) for data in splits.values()] == [12, 4, 4]
    assert splits["train"].classes == ("cat", "dog")
    assert (splits["train"].in_channels, splits["train"].space) == (1, (12, 16))
    seen = [(image.numpy().tobytes(), int(label)) for image, label in everything(tmp_path / "data")]
    assert sorted(seen) == sorted((array.tobytes(), int(name[0] == "d")) for name, array in arrays.items())
    assert all(set(data.targets.tolist()) == {0, 1} for data in splits.values()), "each split has both classes"


def test_kinds_of_files(tmp_path):
    data = tmp_path / "data"
    wide = RNG.integers(0, 65536, (12, 16), np.uint16)
    colour = RNG.integers(0, 65536, (12, 16, 3), np.uint16)
    grey = [picture(data / "a" / name) for name in ("grey8.png", "grey8.tif", "other.tiff")]
    (data / "b").mkdir()
    Image.fromarray(wide).save(data / "b" / "grey16.png")
    Image.fromarray(wide).save(data / "b" / "grey16.tif")
    kornia_rs.io.write_image_png_u16(str(data / "b" / "rgb16.png"), colour, "rgb")
    kornia_rs.io.write_image_tiff_u16(str(data / "b" / "rgb16.tif"), colour, "rgb")
    picture(data / "b" / "photo.JPG", (12, 16, 3), 200, quality=95)
    found = {}
    for image, label in everything(data):
        assert image.dtype == torch.uint16
        assert image.shape == (3, 12, 16)
        found.setdefault(label, []).append(image.numpy().astype(int))
    of_b = [image.transpose(1, 2, 0) for image in found[1]]
    for expected, times in ((np.repeat(wide[..., None], 3, -1), 2), (colour, 2)):
        assert sum(np.array_equal(image, expected) for image in of_b) == times, "all sixteen bits survive"
    assert sum(np.allclose(image, 200 * 257, atol=3 * 257) for image in of_b) == 1, "and the JPEG"
    stretched = sorted((image.astype(int) * 257).tobytes() for image in grey)  # 255 becomes 65,535
    assert sorted(image[0].tobytes() for image in found[0]) == stretched, "8 bit among 16"
    assert as_float(torch.from_numpy(colour)).max() <= 1


def test_given_splits_are_kept(tmp_path):
    for split, count in (("train", 5), ("val", 3), ("test", 4)):
        folder(tmp_path / "data" / split, count)
    assert images.check(tmp_path / "data") == []
    assert [len(images.load(tmp_path / "data", split)) for split in ("train", "valid", "test")] == [10, 6, 8]
    (tmp_path / "data" / "val").rename(tmp_path / "data" / "dev")
    assert "none named valid or val" in images.check(tmp_path / "data")[0]
    (tmp_path / "data" / "dev").rename(tmp_path / "data" / "valid")
    (tmp_path / "data" / "valid" / "dog").rename(tmp_path / "data" / "valid" / "wolf")
    assert "has classes ('cat', 'wolf'); train has ('cat', 'dog')" in images.check(tmp_path / "data")[0]


def test_size_scales_and_cuts_the_centre(tmp_path):
    data = tmp_path / "data"
    for i, shape in enumerate([(20, 40), (40, 20), (30, 30), (10, 10)]):
        for name in ("a", "b"):
            array = np.zeros((*shape, 3), np.uint8)
            array[..., 0] = 100
            array[:, : shape[1] // 2] += 50  # left half brighter
            picture(data / name / f"{i}.png")
            Image.fromarray(array).save(data / name / f"{i}.png")
    with pytest.raises(DataError, match=r"is \d+×\d+ where 2 images are .*--size"):
        images.load(data, "train")
    for image, _ in everything(data, size=10):
        assert image.shape == (3, 10, 10)
        assert image[0, 5, :3].tolist() == pytest.approx([150] * 3, abs=8)
        assert image[0, 5, 7:].tolist() == pytest.approx([100] * 3, abs=8)
    with pytest.raises(ValueError, match="size 0"):
        images.load(data, "train", size=0)


def test_changed_files_are_decoded_again_and_others_are_not(tmp_path, monkeypatch):
    data = tmp_path / "data"
    folder(data)
    images.load(data, "train")
    with monkeypatch.context() as patch:
        patch.setattr(images, "read_array", lambda path: pytest.fail(f"{path} decoded again"))
        images.load(data, "test")
    picture(data / "cat" / "new.png", value=7)
    assert sum(int(image.float().mean() == 7) for image, _ in everything(data)) == 1
    monkeypatch.setenv("LIESPLINE_CACHE", str(tmp_path / "elsewhere"))
    images.load(data, "train")
    assert list((tmp_path / "elsewhere").glob("data.*.npy"))


def test_what_is_left_out_is_said(tmp_path):
    folder(tmp_path / "data")
    (tmp_path / "data" / "cat" / "notes.txt").write_text("")
    (tmp_path / "data" / "cat" / "more").mkdir()
    (tmp_path / "data" / "cat" / ".hidden.png").write_text("")
    notes = images.load(tmp_path / "data", "train").notes
    assert len(notes) == 1
    assert notes[0].startswith("2 entries are no PNG, JPEG or TIFF files")


def bomb(path: Path) -> None:
    """A PNG of a few hundred bytes that declares 100,000 × 100,000 pixels."""
    header = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    crc = struct.pack(">I", __import__("zlib").crc32(chunk))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + crc + bytes(200))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-60])


def postscript(path: Path) -> None:
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n(%pipe%touch /tmp/x) (w) file\n")


FOLDER_FAULTS = {
    "truncated": (lambda d: cut(d / "cat" / "3.png"), r"cat/3\.png: cannot be read as an image"),
    "not an image": (
        lambda d: (d / "dog" / "1.png").write_text("hello"),
        r"dog/1\.png: cannot be read as an image",
    ),
    "empty file": (
        lambda d: (d / "dog" / "1.png").write_bytes(b""),
        r"dog/1\.png: cannot be read as an image",
    ),
    "decompression bomb": (lambda d: bomb(d / "dog" / "1.png"), r"dog/1\.png: "),
    "a program": (lambda d: postscript(d / "dog" / "1.png"), r"dog/1\.png: cannot be read as an image"),
    "another format": (
        lambda d: Image.new("RGB", (16, 12)).save(d / "dog" / "1.png", format="BMP"),
        r"dog/1\.png: cannot be read as an image",
    ),
    "32-bit": (
        lambda d: Image.fromarray(np.ones((12, 16), np.float32)).save(d / "dog" / "1.tif"),
        r"kind 'F'; save it",
    ),
    "other size": (
        lambda d: picture(d / "dog" / "1.png", (9, 9)),
        r"dog/1\.png: is 9×9 where 19 images are 16×12",
    ),
    "one class": (lambda d: (d / "dog").rename(d.parent / "dog"), r"two class folders and has only 'cat'"),
    "too few": (
        lambda d: [(d / "dog" / f"{i}.png").unlink() for i in range(8)],
        r"dog: has 2 images .* at least 3",
    ),
    "no folder": (lambda d: d.rename(d.parent / "gone"), r"is no folder"),
}


@pytest.mark.parametrize("fault", FOLDER_FAULTS)
def test_faulty_folders_are_reported_before_training(tmp_path, fault):
    plant, message = FOLDER_FAULTS[fault]
    folder(tmp_path / "data")
    assert images.check(tmp_path / "data") == []
    plant(tmp_path / "data")
    with pytest.raises(DataError, match=message):
        images.load(tmp_path / "data", "train")
    assert len(images.check(tmp_path / "data")) == 1, "one fault, one problem"


def test_all_bad_files_are_listed_at_once(tmp_path):
    folder(tmp_path / "data", count=30)
    for i in range(25):
        (tmp_path / "data" / "cat" / f"{i}.png").write_bytes(b"x")
    with pytest.raises(DataError) as caught:
        images.load(tmp_path / "data", "train")
    assert len(caught.value.problems) == 25
    assert "and 5 more problems" in str(caught.value)


def test_stratified_covers_all_rows_once():
    labels = RNG.permutation(np.repeat([0, 1, 2], [3, 50, 400]))
    parts = [stratified(labels, split, seed=4) for split in ("train", "valid", "test")]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(453))
    assert [np.bincount(labels[part]).tolist() for part in parts] == [[1, 34, 280], [1, 8, 60], [1, 8, 60]]


VOLUMES = {
    f"{split}_{what}": array
    for split, count in (("train", 9), ("val", 4), ("test", 5))
    for what, array in (
        ("images", RNG.integers(0, 256, (count, 6, 7, 8), np.uint8)),
        ("labels", np.arange(count, dtype=np.uint8).reshape(-1, 1) % 3),
    )
}


def archive(path: Path, **changes) -> Path:
    np.savez_compressed(path, **{key: value for key, value in (VOLUMES | changes).items() if value is not None})
    return path


@pytest.mark.parametrize("channels", [0, 2])
def test_volumes(tmp_path, channels):
    changes = {}
    if channels:
        changes = {k: np.stack([v, 255 - v], -1) for k, v in VOLUMES.items() if k.endswith("images")}
    path = archive(tmp_path / "v.npz", **changes)
    assert volumes.check(path) == []
    for split, name in (("train", "train"), ("valid", "val"), ("test", "test")):
        data = volumes.load(path, split)
        batch, labels = data.__getitems__(range(len(data)))
        expected = (VOLUMES | changes)[f"{name}_images"]
        expected = np.moveaxis(expected, -1, 1) if channels else expected[:, None]
        assert np.array_equal(batch.numpy(), expected)
        assert labels.tolist() == VOLUMES[f"{name}_labels"][:, 0].tolist()
        assert (data.classes, data.space) == (("0", "1", "2"), (6, 7, 8))
    other = archive(path, test_images=VOLUMES["test_images"] // 2)
    assert volumes.load(other, "test")[1][0].max() < 128, "a replaced file is read anew"


class Harm:
    """Unpickling this would leave a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def rewritten(path: Path, key: str, raw: bytes) -> None:
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    members[f"{key}.npy"] = raw
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(name, content)


def npy(shape, dtype: str, body: bytes, fortran: bool = False) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": fortran, "shape": shape})
    return stream.getvalue() + body


def pickled(path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, np.array([Harm(path.parent / "harm")], object), allow_pickle=True)
    rewritten(path, "train_labels", stream.getvalue())


def cut_archive(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-300])


def flipped(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[300:340] = bytes(40)
    path.write_bytes(raw)


NINE = np.zeros((9, 1), np.uint8)
BAD = VOLUMES["train_images"].astype(np.float32)
BAD[7, 0, 0, 0] = np.nan
NPZ_FAULTS = {
    "pickle": (pickled, r"train_labels holds pickled objects"),
    "missing array": (lambda p: archive(p, val_labels=None), r"has no array 'val_labels'", "valid"),
    "lengths differ": (
        lambda p: archive(p, train_labels=NINE[:8]),
        r"train_labels is uint8 \(8, 1\); expected .*\(9, 1\)",
    ),
    "one class": (lambda p: archive(p, train_labels=NINE), r"one class only \(\[0\]\)"),
    "unknown class": (
        lambda p: archive(p, val_labels=np.array([[0], [1], [7], [2]])),
        r"val_labels row 2: class 7 does not occur",
        "valid",
    ),
    "float labels": (lambda p: archive(p, train_labels=NINE.astype(float)), r"train_labels is float64"),
    "flat images": (
        lambda p: archive(p, train_images=np.zeros((9, 28, 28, 3), np.uint8)),
        r"\(9, 28, 28, 3\); expected vol",
    ),
    "no images": (lambda p: archive(p, train_images=np.zeros((0, 6, 7, 8), np.uint8)), r"no volumes at all"),
    "64-bit images": (
        lambda p: archive(p, train_images=np.zeros((9, 6, 7, 8))),
        r"dtype float64; expected uint8",
    ),
    "not finite": (
        lambda p: archive(p, train_images=BAD),
        r"train_images row 7: has values that are not finite",
    ),
    "a billion rows": (
        lambda p: rewritten(p, "train_images", npy((10**9, 6, 7, 8), "|u1", b"")),
        r"declares train_images of shape \(1000000000, 6, 7, 8\)",
    ),
    "body too short": (
        lambda p: rewritten(p, "train_images", npy((9, 6, 7, 8), "|u1", bytes(99))),
        r"train_images from row 0: ends too early",
    ),
    "Fortran order": (
        lambda p: rewritten(p, "train_images", npy((9, 6, 7, 8), "|u1", bytes(9 * 336), fortran=True)),
        r"Fortran order",
    ),
    "no array": (lambda p: rewritten(p, "train_images", b"\x80\x04N."), r"train_images is no NumPy array"),
    "code in a header": (
        lambda p: rewritten(p, "train_images", b"\x93NUMPY\x01\x00\x20\x00" + b"__import__('os').getcwd()".ljust(32)),
        r"train_images is no NumPy array",
    ),
    "truncated": (cut_archive, r"no readable \.npz"),
    "flipped bits": (flipped, r"train_images"),
    "no zip": (lambda p: p.write_bytes(b"PK" + bytes(99)), r"no readable \.npz"),
    "missing": (lambda p: p.unlink(), r"does not exist"),
}


@pytest.mark.parametrize("fault", NPZ_FAULTS)
def test_faulty_archives_are_refused(tmp_path, fault):
    plant, message, *split = NPZ_FAULTS[fault]
    path = archive(tmp_path / "v.npz")
    plant(path)
    with pytest.raises(DataError, match=message):
        volumes.load(path, split[0] if split else "train")
    assert volumes.check(path)
    assert not (tmp_path / "harm").exists(), "no code from a file is run"


def idx(array: np.ndarray) -> bytes:
    return b"\x00\x00\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def small_mnist(path: Path, train: int = 60, test: int = 12) -> dict[str, np.ndarray]:
    arrays = {}
    for name, count in (("train", train), ("t10k", test)):
        arrays[f"{name}-images-idx3-ubyte"] = RNG.integers(0, 256, (count, 28, 28), np.uint8)
        arrays[f"{name}-labels-idx1-ubyte"] = RNG.integers(0, 10, count).astype(np.uint8)
    for name, array in arrays.items():
        (path / f"{name}.gz").write_bytes(gzip.compress(idx(array), 1))
    return arrays


def test_upright_mnist_is_the_files(tmp_path):
    arrays = small_mnist(tmp_path)
    assert mnist.check(tmp_path) == []
    train, valid, test = (mnist.load(tmp_path, split, "upright") for split in ("train", "valid", "test"))
    assert [len(train), len(valid), len(test)] == [50, 10, 12]
    batch = torch.cat([train.__getitems__(range(50))[0], valid.__getitems__(range(10))[0]])
    assert np.array_equal(batch[:, 0].numpy(), arrays["train-images-idx3-ubyte"])
    assert np.array_equal(test.targets.numpy(), arrays["t10k-labels-idx1-ubyte"])
    for name in arrays:  # unpacked files do as well
        (tmp_path / name).write_bytes(gzip.decompress((tmp_path / f"{name}.gz").read_bytes()))
        (tmp_path / f"{name}.gz").unlink()
    assert np.array_equal(mnist.load(tmp_path, "test", "upright").targets.numpy(), test.targets.numpy())


def blob_mnist(path: Path, monkeypatch) -> None:
    """200 images with one bright dot right of the centre, whose place tells angle and scale."""
    monkeypatch.setattr(mnist, "_COUNTS", {"train": 60, "valid": 20, "test": 100})
    dot = np.exp(-((np.arange(28) - 13.5) ** 2) / 8)
    image = (255 * np.outer(dot, np.roll(dot, 8))).astype(np.uint8)
    for name, count in (("train", 150), ("t10k", 50)):
        labels = (np.arange(count) % 10).astype(np.uint8)
        (path / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(np.stack([image] * count))))
        (path / f"{name}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))


def centres(data: Split) -> np.ndarray:
    batch = data.__getitems__(range(len(data)))[0][:, 0].double().numpy()
    axis = np.arange(28) - 13.5
    mass = batch.sum((1, 2))
    return np.stack([(batch.sum(2) * axis).sum(1), (batch.sum(1) * axis).sum(1)], -1) / mass[:, None]


@pytest.mark.parametrize("variant", ["rotated", "scaled"])
def test_generated_variants_move_the_digit_as_said(tmp_path, monkeypatch, variant):
    blob_mnist(tmp_path, monkeypatch)
    radii, angles = [], []
    for split, count in (("train", 60), ("valid", 20), ("test", 100)):
        data = mnist.load(tmp_path, split, variant)
        assert len(data) == count
        assert torch.equal(
            data.__getitems__(range(count))[0],
            mnist.load(tmp_path, split, variant).__getitems__(range(count))[0],
        )
        rows, columns = centres(data).T
        radii += np.hypot(rows, columns).tolist()
        angles += np.arctan2(-rows, columns).tolist()
    if variant == "rotated":
        assert np.ptp(radii) < 0.3, "turning keeps the distance from the centre"
        assert np.histogram(angles, 6, (-np.pi, np.pi))[0].min() > 12, "all angles occur"
    else:
        assert np.abs(angles).max() < 0.1, "scaling keeps the direction"
        assert min(radii) == pytest.approx(0.3 * 8, abs=0.2)
        assert max(radii) == pytest.approx(8, abs=0.3)


def test_generated_splits_do_not_overlap(tmp_path, monkeypatch):
    small_mnist(tmp_path, 150, 50)
    monkeypatch.setattr(mnist, "_COUNTS", {"train": 60, "valid": 20, "test": 100})
    monkeypatch.setattr(mnist, "turned", lambda images, angles, side: (images * 255).round().astype(np.uint8))
    seen = [image.numpy().tobytes() for s in ("train", "valid", "test") for image, _ in mnist.load(tmp_path, s)]
    assert len(set(seen)) == len(seen) == 180
    monkeypatch.undo()
    with pytest.raises(DataError, match="has 200 digits; rotated MNIST needs 62000"):
        mnist.load(tmp_path, "train")
    with pytest.raises(ValueError, match="'rotatd' is unknown"):
        mnist.load(tmp_path, "train", "rotatd")


GZ = "train-images-idx3-ubyte.gz"
IDX_FAULTS = {
    "truncated gzip": (
        lambda p: (p / GZ).write_bytes((p / GZ).read_bytes()[:-900]),
        r"images.*cannot be unpacked",
    ),
    "no gzip": (lambda p: (p / GZ).write_bytes(b"hello"), r"images.*cannot be unpacked"),
    "no idx": (lambda p: (p / GZ).write_bytes(gzip.compress(b"hello")), r"begins with 68656c6c"),
    "short": (
        lambda p: (p / GZ).write_bytes(gzip.compress(idx(np.zeros((60, 28, 28), np.uint8))[:-1])),
        r"holds 47,039",
    ),
    "long": (
        lambda p: (p / GZ).write_bytes(gzip.compress(idx(np.zeros((60, 28, 28), np.uint8)) + b"x")),
        r"holds more",
    ),
    "shape": (
        lambda p: (p / GZ).write_bytes(gzip.compress(idx(np.zeros((60, 9, 9), np.uint8)))),
        r"\(60, 9, 9\)",
    ),
    "lengths": (
        lambda p: (p / GZ).write_bytes(gzip.compress(idx(np.zeros((59, 28, 28), np.uint8)))),
        r"for 59 images",
    ),
    "a billion rows": (
        lambda p: (p / GZ).write_bytes(gzip.compress(b"\0\0\x08\x03" + struct.pack(">3I", 10**9, 28, 28))),
        r"declares shape \(1000000000, 28, 28\)",
    ),
    "label": (
        lambda p: (p / GZ.replace("images-idx3", "labels-idx1")).write_bytes(
            gzip.compress(idx(np.array([3] * 41 + [77] * 19, np.uint8)))
        ),
        r"labels.*row 41: label 77 is no digit",
    ),
    "missing": (lambda p: (p / GZ).unlink(), r"does not exist; expected MNIST's four"),
}


@pytest.mark.parametrize("fault", IDX_FAULTS)
def test_faulty_idx_files_are_refused(tmp_path, fault):
    plant, message = IDX_FAULTS[fault]
    small_mnist(tmp_path)
    plant(tmp_path)
    with pytest.raises(DataError, match=message):
        mnist.load(tmp_path, "train", "upright")
    assert len(mnist.check(tmp_path)) == 1


def test_digits_upright_and_turned():
    upright = {split: digits.load(split) for split in ("train", "valid", "test")}
    assert sum(map(len, upright.values())) == 1797
    turned = digits.load("test", rotated=True)
    assert torch.equal(turned.targets, upright["test"].targets)
    assert turned.space == (24, 24)
    a, b = (data.__getitems__(range(450))[0].float() for data in (upright["test"], turned))
    ink = (b.sum((1, 2, 3)) / a.sum((1, 2, 3))).numpy()
    assert np.abs(ink - 1).max() < 0.05, "turning neither cuts nor adds ink"
    assert (a - b).abs().mean() > 20, "and it does turn"


@pytest.mark.parametrize("shape", [(4, 1, 9, 9), (4, 1, 9, 9, 9)])
def test_rotation_about_the_centre(shape):
    images = torch.zeros(shape, dtype=torch.uint8)
    images[(slice(None), 0, *[4] * (len(shape) - 2))] = 255  # the centre, which stays
    images[(slice(None), 0, *[4] * (len(shape) - 3), 8)] = 255
    labels = torch.arange(4)
    out, same = Rotate()(images, labels, torch.Generator().manual_seed(0))
    again, _ = Rotate()(images, labels, torch.Generator().manual_seed(0))
    assert torch.equal(out, again)
    assert torch.equal(same, labels)
    assert out[(slice(None), 0, *[4] * (len(shape) - 2))].min() > 0.95
    assert len({tuple(x.flatten().round(decimals=3).tolist()) for x in out}) == 4, "each image its own turn"
    plain, _ = Plain()(images, labels)
    assert torch.equal(plain, images.float() / 255)
    with pytest.raises(ValueError, match="cannot be turned"):
        Rotate()(torch.zeros(2, 3, 4), labels)


def test_split_refuses_mismatched_targets():
    with pytest.raises(DataError, match="5 images but 4 targets"):
        Split(np.zeros((5, 3, 3), np.uint8), np.zeros(4), ("a", "b"))
