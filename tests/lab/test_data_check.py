"""`data check`: what does not belong together, what is there twice, and what is left out, said in few lines."""

import numpy as np
import pytest
import tifffile
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from lab.data_files import discs
from lab.test_data_volumes import VOLUMES, archive
from liespline.lab.data import DataError
from liespline.lab.data.pictures import read_array, read_picture, strict_pillow
from truth.shell import fails, succeeds

RNG = np.random.default_rng(0)


def noise(*shape, top=256, dtype=np.uint8):
    return RNG.integers(0, top, shape, dtype)


def folder(path, count=8):
    for name in ("cat", "dog"):
        (path / name).mkdir(parents=True)
        for i in range(count):
            Image.fromarray(noise(12, 12)).save(path / name / f"{i}.png")
    return path


SPLITS_THAT_DIFFER = {
    "float 0 to 255 beside uint8": (
        {"train_images": lambda a: a.astype(np.float32)},
        "valid has uint8 images; train has float32",
    ),
    "16 bits that hold 12": (
        {
            "train_images": lambda a: a.astype(np.uint16) * 257,
            "val_images": lambda a: a.astype(np.uint16) * 16,
            "test_images": lambda a: a.astype(np.uint16) * 257,
        },
        "(uint16); train has 0 to 1 (uint16)",
    ),
    "another shape": (
        {"test_images": lambda a: a[:, :, :, :-1]},
        "test has images of 6×7×7 with 1 channel; train has 6×7×8 with 1 channel",
    ),
}


@pytest.mark.parametrize("kind", SPLITS_THAT_DIFFER)
def test_splits_that_do_not_belong_together(tmp_path, liespline, kind):
    changes, words = SPLITS_THAT_DIFFER[kind]
    assert liespline("data", "check", "volumes", archive(tmp_path / "right.npz"))[0] == 0
    path = archive(tmp_path / "v.npz", **{name: change(VOLUMES[name]) for name, change in changes.items()})
    for command in (
        ("data", "check", "volumes", path),
        ("train", "volumes", "--data", path, "--out", tmp_path / "run"),
    ):
        assert words in fails(*command)
    assert not (tmp_path / "run").exists()


def test_colours_in_one_split_only(tmp_path, liespline):
    for split in ("train", "valid", "test"):
        folder(tmp_path / split)
    assert liespline("data", "check", "images", tmp_path)[0] == 0
    Image.fromarray(noise(12, 12, 3)).save(tmp_path / "valid" / "cat" / "0.png")
    assert "47 of 48 images are grey, the others coloured" in succeeds("data", "check", "images", tmp_path)


def test_copies_are_reported(tmp_path):
    data = folder(tmp_path / "data", count=20)
    text = succeeds("data", "check", "images", data)
    assert "same in two classes" not in text
    assert "more than once" not in text
    (data / "dog" / "same.png").write_bytes((data / "cat" / "3.png").read_bytes())
    # Another format, the same pixels.
    Image.open(data / "cat" / "4.png").save(data / "dog" / "other.tif")
    (data / "cat" / "twice.png").write_bytes((data / "cat" / "5.png").read_bytes())
    text = succeeds("data", "check", "images", data)
    assert "4 images are the same in two classes" in text
    assert "2 images are in two splits" in text or "2 images are there more than once" in text


def test_what_is_left_out_is_listed(tmp_path):
    data = folder(tmp_path / "data")
    for name in ("notes.txt", "cat/a.bmp", "cat/b.gif"):
        (data / name).write_bytes(b"x")
    (data / "dog" / "more").mkdir()
    text = succeeds("data", "check", "images", data)
    assert "4 entries are left out, not PNG, JPEG or TIFF: notes.txt, cat/a.bmp, cat/b.gif, dog/more" in text


def test_many_alike_are_one_line(tmp_path):
    data = folder(tmp_path / "data", count=30)
    for i in range(25):
        (data / "cat" / f"{i}.png").write_bytes(b"x")
    for i, side in enumerate(range(13, 20)):
        Image.fromarray(noise(side, side)).save(data / "dog" / f"{i}.png")
    text = fails("data", "check", "images", data)
    lines = [line for line in text.splitlines() if line.strip()]
    assert len(lines) == 2, text
    assert "and 24 more like it" in lines[0]
    assert "and 6 more like it" in lines[1]


def test_transparency_is_shown_on_white_and_said(tmp_path):
    data = folder(tmp_path / "data")
    pixels = noise(12, 12, 4)
    pixels[..., 3] = 0
    pixels[:6, :, 3] = 255
    pixels[6:8, :, 3] = 128
    Image.fromarray(pixels, "RGBA").save(data / "cat" / "0.png")
    seen = read_array(data / "cat" / "0.png").astype(int)
    colours = pixels[..., :3].astype(int)
    assert np.array_equal(seen[:6], colours[:6])
    assert (seen[8:] == 255).all()
    half = colours[6:8] * 128 / 255 + 255 * 127 / 255
    assert np.abs(seen[6:8] - half).max() <= 0.5
    assert read_picture(data / "cat" / "0.png")[1]
    assert not read_picture(data / "cat" / "1.png")[1]
    text = succeeds("data", "check", "images", data)
    assert "1 image has transparent parts, which are shown on white: cat/0.png" in text


@pytest.mark.parametrize("name", ["pages.tif", "moving.png"])
def test_several_pages_are_refused(tmp_path, name):
    frames = [Image.fromarray(noise(6, 6)) for _ in range(3)]
    frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:])
    with pytest.raises(DataError, match="holds 3 pages or frames"):
        read_array(tmp_path / name)


UPRIGHT = {
    1: lambda a: a, 2: np.fliplr, 3: lambda a: np.rot90(a, 2), 4: np.flipud, 5: lambda a: np.swapaxes(a, 0, 1),
    6: lambda a: np.rot90(a, -1), 7: lambda a: np.rot90(np.swapaxes(a, 0, 1), 2), 8: np.rot90,
}  # fmt: skip


@pytest.mark.parametrize("orientation", UPRIGHT)
def test_every_orientation_of_every_depth(tmp_path, orientation):
    tags = ImageFileDirectory_v2()
    tags[274] = orientation
    exif = Image.Exif()
    exif[274] = orientation
    grey = {np.uint8: noise(4, 6), np.uint16: noise(4, 6, top=65536, dtype=np.uint16)}
    colour = noise(4, 6, 3, top=65536, dtype=np.uint16)
    with strict_pillow():
        for dtype, pixels in grey.items():
            for compression in ("raw", "tiff_lzw"):
                Image.fromarray(pixels).save(tmp_path / "a.tif", tiffinfo=tags, compression=compression)
                found = read_array(tmp_path / "a.tif")
                assert found.dtype == dtype
                assert np.array_equal(found, UPRIGHT[orientation](pixels))
            Image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
            assert np.array_equal(read_array(tmp_path / "a.png"), UPRIGHT[orientation](pixels))
        tag = [(274, 3, 1, orientation, True)]
        tifffile.imwrite(tmp_path / "c.tif", colour, photometric="rgb", extratags=tag, compression="zlib")
        assert np.array_equal(read_array(tmp_path / "c.tif"), UPRIGHT[orientation](colour))


def test_masks_are_checked_too(tmp_path):
    data = discs(tmp_path / "discs", 8, 20)
    assert "8 images with masks" in succeeds("data", "check", "segment", data)
    Image.fromarray(noise(4, 5)).save(data / "masks" / "03.png")
    (tmp_path / "who.csv").write_text("file,group\n00.png,a\nabsent.png,b\n")
    text = fails("data", "check", "segment", data, "--labels", tmp_path / "who.csv")
    assert text.count("03.png: is 5×4 and its image 03.png is 28×20") == 1
    assert text.count("'absent.png' does not exist") == 1
