"""A user's own images: what is read, and what is refused before training."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import tifffile
import torch
from PIL import Image

from lab.small_runs import problems
from liespline.lab.data import DataError, as_float
from liespline.lab.tasks import images

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


def test_kinds_of_files(tmp_path):
    data = tmp_path / "data"
    wide = RNG.integers(0, 65536, (12, 16), np.uint16)
    colour = RNG.integers(0, 65536, (12, 16, 3), np.uint16)
    grey = [picture(data / "a" / name) for name in ("grey8.png", "grey8.tif", "other.tiff")]
    (data / "b").mkdir()
    Image.fromarray(wide).save(data / "b" / "grey16.png")
    Image.fromarray(wide).save(data / "b" / "grey16.tif")
    deep_png(data / "b" / "rgb16.png", colour)
    tifffile.imwrite(data / "b" / "rgb16.tif", colour, photometric="rgb")
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
    assert problems("images", tmp_path / "data") == []
    assert [len(images.load(tmp_path / "data", split)) for split in ("train", "valid", "test")] == [10, 6, 8]
    (tmp_path / "data" / "val").rename(tmp_path / "data" / "dev")
    assert "none named valid or val" in problems("images", tmp_path / "data")[0]
    (tmp_path / "data" / "dev").rename(tmp_path / "data" / "valid")
    (tmp_path / "data" / "valid" / "dog").rename(tmp_path / "data" / "valid" / "wolf")
    assert "has classes ('cat', 'wolf'); train has ('cat', 'dog')" in problems("images", tmp_path / "data")[0]


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
    assert {image.shape for image, _ in everything(data, size=12)} == {(3, 12, 12)}, "decoded anew"
    with pytest.raises(ValueError, match="size 0"):
        images.load(data, "train", size=0)


def test_changed_files_are_decoded_again(tmp_path, monkeypatch):
    data = tmp_path / "data"
    folder(data)
    images.load(data, "train")
    picture(data / "cat" / "new.png", value=7)
    assert sum(int(image.float().mean() == 7) for image, _ in everything(data)) == 1
    monkeypatch.setenv("LIESPLINE_CACHE", str(tmp_path / "elsewhere"))
    images.load(data, "train")
    assert list((tmp_path / "elsewhere").glob("data.*.items"))


def chunk(kind: bytes, content: bytes) -> bytes:
    """A piece of a PNG."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def deep_png(path: Path, pixels: np.ndarray) -> None:
    """Colours of 16 bits, which Pillow cannot write: every second row as what is added to the one above."""
    rows = pixels.astype(">u2").view(np.uint8).reshape(len(pixels), -1)
    rows[1::2] -= rows[: len(rows) // 2 * 2 : 2]
    body = np.insert(rows, 0, 2 * (np.arange(len(rows)) % 2), axis=1).tobytes()
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 16, 2, 0, 0, 0)
    parts = {b"IHDR": header, b"IDAT": zlib.compress(body), b"IEND": b""}
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, content) for kind, content in parts.items()))


def written(name: str, pixels: np.ndarray, **options):
    return lambda data: Image.fromarray(pixels).save(data / name, **options)


FOLDER_FAULTS = {
    "not an image": (lambda d: (d / "dog" / "1.png").write_text("hello"), r"dog/1\.png: cannot be read as an image"),
    "another format": (
        written("dog/1.png", np.zeros((12, 16, 3), np.uint8), format="BMP"),
        r"dog/1\.png: cannot be read as an image",
    ),
    "32-bit": (
        written("dog/1.tif", np.ones((12, 16), np.float32)),
        r"dog/1\.tif: has 1 channel of float32 where 20 images have 1 channel of uint8",
    ),
    "other size": (written("dog/1.png", np.ones((9, 9), np.uint8)), r"1\.png: is 9×9 where 19 images are 16×12"),
    "one class": (lambda d: (d / "dog").rename(d.parent / "dog"), r"two class folders and has only 'cat'"),
    "too few": (lambda d: [(d / "dog" / f"{i}.png").unlink() for i in range(8)], r"dog: has 2 images .* at least 3"),
    "no folder": (lambda d: d.rename(d.parent / "gone"), r"is no folder"),
}


@pytest.mark.parametrize("fault", FOLDER_FAULTS)
def test_faulty_folders_are_reported_before_training(tmp_path, fault):
    plant, message = FOLDER_FAULTS[fault]
    folder(tmp_path / "data")
    assert problems("images", tmp_path / "data") == []
    plant(tmp_path / "data")
    with pytest.raises(DataError, match=message):
        images.load(tmp_path / "data", "train")
    assert len(problems("images", tmp_path / "data")) == 1, "one fault, one problem"


def test_a_class_with_too_few_hides_no_bad_file(tmp_path):
    folder(tmp_path / "data")
    (tmp_path / "data" / "owl").mkdir()
    (tmp_path / "data" / "cat" / "3.png").write_bytes(b"no picture")
    found = problems("images", tmp_path / "data")
    assert len(found) == 2
    assert "owl: has 0 images" in found[0]
    assert "3.png" in found[1]
