"""Large images: windows against the whole image, tiles against one piece, killed work against uninterrupted."""

import itertools
from contextlib import ExitStack

import numpy as np
import pytest
import tifffile
import torch
from torch import nn

from liespline.lab.data import DataError
from liespline.lab.data.large import open_windows, read_window
from liespline.lab.data.large import tiff as tiff_module
from liespline.lab.data.pictures import read_array
from liespline.lab.evaluation.mask_files import segment_large
from liespline.lab.tiles import Tiling, halo_of, in_tiles


@pytest.fixture
def opened(monkeypatch):
    """Large images that are closed when the test ends; all count as larger than memory."""
    monkeypatch.setattr("liespline.lab.data.large.MOST_PIXELS", 0)
    with ExitStack() as stack:
        yield lambda path, level=0: stack.enter_context(open_windows(path, level))


DRAW = np.random.default_rng(0)
WINDOWS = [(0, 0, 70, 90), (3, 5, 4, 6), (15, 30, 49, 90), (60, 0, 70, 17), (16, 16, 32, 32)]
GEO = [
    (33550, "d", 3, (0.5, 0.5, 0.0), True),
    (33922, "d", 6, (0.0, 0.0, 0.0, 440720.0, 3751320.0, 0.0), True),
    (34735, "H", 8, (1, 1, 0, 1, 1024, 0, 1, 1), True),
    (34737, "s", 0, "WGS 84|", True),
]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize("layout", ["tiles", "strips", "separate", "pages", "deflate"])
def test_windows_are_those_of_the_whole_image(tmp_path, dtype, channels, layout, opened):
    image = (DRAW.random((channels, 70, 90)) * 200).astype(dtype)
    last = image[0] if channels == 1 else np.moveaxis(image, 0, -1)
    path, kind = tmp_path / "a.tif", "rgb" if channels == 3 else "minisblack"
    if layout == "strips":
        tifffile.imwrite(path, last, rowsperstrip=7, photometric=kind, planarconfig=None if channels == 1 else "contig")
    elif layout == "pages":
        tifffile.imwrite(path, image, tile=(16, 32), photometric="minisblack", metadata={"axes": "CYX"})
    elif layout == "separate" and channels > 1:
        tifffile.imwrite(path, image, tile=(16, 32), photometric=kind, planarconfig="separate")
    else:
        plan = None if channels == 1 else "contig"
        compression = "zlib" if layout == "deflate" else None
        tifffile.imwrite(path, last, tile=(16, 32), photometric=kind, planarconfig=plan, compression=compression)
    source = opened(path)
    assert source.shape == image.shape
    assert source.dtype == dtype
    for top, left, bottom, right in WINDOWS:
        assert np.array_equal(source.read(top, left, bottom, right), image[:, top:bottom, left:right])
    wide = np.pad(image, ((0, 0), (2, 4), (3, 1)), mode="edge")
    assert np.array_equal(read_window(source, -2, -3, 74, 91), wide)


def test_few_tiles_are_decoded_and_few_are_kept(tmp_path, monkeypatch, opened):
    image = DRAW.integers(0, 255, (256, 256), np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", image, tile=(16, 16))
    monkeypatch.setattr(tiff_module, "KEPT_BYTES", 4 * 256)
    source = opened(tmp_path / "a.tif")
    source.read(20, 20, 40, 40)
    assert source._segment.cache_info().misses == 4, "tiles 17, 18, 33 and 34"
    source.read(20, 20, 40, 40)
    assert source._segment.cache_info().misses == 4
    source.read(0, 0, 256, 256)
    assert source._segment.cache_info().currsize == 4


def shade(*shape):
    return np.random.default_rng(1).integers(0, 256, shape, np.uint8)


GREY, RGBA, PALETTE = shade(20, 30), shade(20, 30, 4), shade(3, 256)
PLANES = GREY[None].astype(np.uint16) * np.array([200, 100, 7], np.uint16)[:, None, None]
ON_WHITE = RGBA[..., 3:] / 255 * RGBA[..., :3] + 255.0 - RGBA[..., 3:]


@pytest.mark.parametrize(
    ("pixels", "how", "expected"),
    [
        (GREY, {"photometric": "palette", "colormap": PALETTE.astype(np.uint16) * 257}, PALETTE[:, GREY]),
        (GREY, {"photometric": "miniswhite"}, 255 - GREY[None]),
        (GREY, {"photometric": "minisblack", "extratags": [(274, "H", 1, 6, True)]}, np.rot90(GREY, -1)[None]),
        (RGBA, {"photometric": "rgb", "extrasamples": ["unassalpha"]}, np.rint(np.moveaxis(ON_WHITE, -1, 0))),
        (GREY > 99, {"photometric": "minisblack"}, 255 * (GREY > 99)[None]),
        (PLANES, {"photometric": "rgb", "planarconfig": "separate"}, PLANES),
    ],
    ids=["palette", "white is zero", "on its side", "transparent", "one bit", "planes"],
)
def test_what_fits_into_memory_is_read_as_training_reads_it(tmp_path, pixels, how, expected):
    """Not as it is stored: a palette's numbers are no colours, and a network would not notice."""
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, pixels, **how)
    with open_windows(path) as source:
        assert source.shape == expected.shape
        assert np.array_equal(source.read(3, 5, 20, 17), expected[:, 3:20, 5:17])
        assert np.array_equal(np.moveaxis(np.atleast_3d(read_array(path)), -1, 0), expected)


@pytest.mark.parametrize(
    ("pixels", "how", "says"),
    [
        (shade(20, 30), {"photometric": "palette", "colormap": shade(3, 256).astype(np.uint16)}, "stored as palette"),
        (shade(20, 30), {"photometric": "miniswhite"}, "stored as miniswhite"),
        (shade(20, 30), {"photometric": "minisblack", "extratags": [(274, "H", 1, 6, True)]}, "orientation 6"),
        (shade(20, 30).astype(np.int32), {"photometric": "minisblack"}, "of int32"),
    ],
)
def test_larger_ones_that_are_stored_in_another_way_are_refused(tmp_path, opened, pixels, how, says):
    tifffile.imwrite(tmp_path / "a.tif", pixels, **how)
    with pytest.raises(DataError, match=says):
        opened(tmp_path / "a.tif")


def pyramid(path):
    finest = DRAW.integers(0, 255, (128, 192, 3), np.uint8)
    with tifffile.TiffWriter(path) as writer:
        writer.write(finest, tile=(32, 32), photometric="rgb", subifds=1, extratags=GEO)
        writer.write(finest[::2, ::2], tile=(32, 32), photometric="rgb", subfiletype=1)
    return finest


def test_levels_of_a_pyramid(tmp_path, opened):
    finest = pyramid(tmp_path / "p.tif")
    source = opened(tmp_path / "p.tif", level=1)
    assert source.shape == (3, 64, 96)
    assert np.array_equal(source.read(10, 20, 50, 90), np.moveaxis(finest[::2, ::2], -1, 0)[:, 10:50, 20:90])
    assert source.place[33550][2] == (1.0, 1.0, 0.0)
    with pytest.raises(DataError, match="has no level 2; its pyramid has levels 0 to 1"):
        opened(tmp_path / "p.tif", level=2)


def test_openslide_reads_the_same_pixels(tmp_path, opened):
    finest = pyramid(tmp_path / "p.tif")
    (tmp_path / "p.tif").rename(tmp_path / "p.svs")
    source = opened(tmp_path / "p.svs")
    assert source.shape == (3, 128, 192)
    assert np.array_equal(source.read(10, 20, 50, 90), np.moveaxis(finest, -1, 0)[:, 10:50, 20:90])
    (tmp_path / "no.svs").write_text("no slide")
    with pytest.raises(DataError, match="cannot be read as a slide"):
        opened(tmp_path / "no.svs")


def test_truncated_and_damaged_files_name_the_tile(tmp_path, opened):
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, DRAW.integers(0, 255, (64, 96), np.uint8), tile=(32, 32), compression="zlib")
    whole = path.read_bytes()
    with tifffile.TiffFile(path) as file:
        offset = file.pages[0].dataoffsets[4]
    path.write_bytes(whole[: offset + 20])
    with pytest.raises(DataError, match="tile in row 1, column 1: lies beyond the end of the file"):
        opened(path)
    path.write_bytes(whole[:offset] + bytes(100) + whole[offset + 100 :])
    source = opened(path)
    assert source.read(0, 0, 32, 96).shape == (1, 32, 96)
    with pytest.raises(DataError, match="tile in row 1, column 1: cannot be decoded"):
        source.read(40, 40, 41, 41)
    path.write_text("no TIFF")
    with pytest.raises(DataError, match="cannot be read as TIFF"):
        opened(path)
    with pytest.raises(DataError, match="is no large image"):
        opened(path.rename(tmp_path / "a.bmp"))


def test_a_file_of_one_piece_is_refused_with_what_to_do(tmp_path, monkeypatch, opened):
    monkeypatch.setattr(tiff_module, "MOST_SEGMENT", 1000)
    tifffile.imwrite(tmp_path / "a.tif", np.zeros((64, 64), np.uint8), rowsperstrip=64)
    with pytest.raises(DataError, match="save it tiled"):
        opened(tmp_path / "a.tif")


class Hourglass(nn.Module):
    """A plain U-Net of one halving, with zeros around the image as every padded layer has them."""

    def __init__(self, d, channels=2, classes=3):
        super().__init__()
        torch.manual_seed(0)
        conv = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[d - 1]
        self.first = conv(channels, 4, 3, padding=1)
        self.down, self.up = (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)[d - 1](2), nn.Upsample(scale_factor=2)
        self.middle, self.last = conv(4, 4, 3, padding=1), conv(8, classes, 3, padding=1)

    def forward(self, x):
        fine = self.first(x).relu()
        return self.last(torch.cat([fine, self.up(self.middle(self.down(fine)).relu())], 1))


@pytest.mark.parametrize("d", [2, 3])
@torch.no_grad()
def test_tiles_give_what_one_piece_gives(d):
    network = Hourglass(d).eval()
    halo = halo_of(network, 2, d, 2, 12)
    assert 3 <= halo <= 8
    sizes = [(64, 48), (61, 47)] if d == 2 else [(32, 28, 30), (31, 20, 27)]
    for size in sizes:
        images = torch.rand(2, 2, *size)
        whole = in_tiles(network, images, Tiling(1000, halo, 2))
        tiled = in_tiles(network, images, Tiling(24, halo, 2))
        assert whole.shape == (2, 3, *size)
        assert float((whole - tiled).abs().max()) < 1e-4
    odd = torch.rand(1, 2, *(21, 34, 19)[:d])
    for side in (1000, 16):  # sides that are continued by 3 samples, 1 of them before
        assert torch.equal(in_tiles(lambda x: x, odd, Tiling(side, 0, 8)), odd), "each sample where it was"
    if d == 2:
        even = torch.rand(1, 2, 40, 40)
        assert torch.equal(in_tiles(network, even, Tiling(1000, halo, 2)), network(even))
    # The check can fail: without a halo, and where a tile begins between the coarse samples, the answer changes.
    images = torch.rand(1, 2, *(48,) * d)
    whole = network(images)
    assert float((whole - in_tiles(network, images, Tiling(24, 0, 2))).abs().max()) > 1e-3
    for start, same in ((4, True), (3, False)):
        part = network(images[(..., *[slice(start, start + 24)] * d)])[(..., *[slice(8, 16)] * d)]
        apart = float((part - whole[(..., *[slice(start + 8, start + 16)] * d)]).abs().max())
        assert (apart < 1e-4) == same


def test_a_network_that_sees_everything_is_refused():
    class Global(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = nn.Conv2d(1, 1, 1)

        def forward(self, x):
            return self.mix(x) * x.mean((2, 3), keepdim=True)

    assert halo_of(Global(), 1, 2, 1, 8) is None
    with pytest.raises(ValueError, match="nothing left inside a halo of 8"):
        Tiling(16, 8)


def test_every_sample_is_kept_once():
    for size, side, halo in itertools.product((4, 8, 20, 36), (10, 14), (0, 1, 3)):
        tiling = Tiling(side, halo, 2)
        seen = np.zeros(size, int)
        for span in tiling.spans(size):
            seen[span.outer] += 1
            assert span.read[0] % 2 == 0
            assert span.read[1] - span.read[0] <= side
            assert span.keep[0] - span.read[0] >= halo or span.read[0] == 0
            assert span.read[1] - span.keep[1] >= halo or span.read[1] == size
        assert np.all(seen == 1)


@pytest.fixture
def georeferenced(tmp_path):
    image = DRAW.integers(0, 255, (101, 75, 2), np.uint8)
    path = tmp_path / "in.tif"
    tifffile.imwrite(path, image, tile=(32, 32), photometric="minisblack", planarconfig="contig", extratags=GEO)
    return path, np.moveaxis(image, -1, 0)


def answer_of(network):
    return lambda samples: network(torch.from_numpy(samples)[None].float() / 255)[0]


def test_a_file_is_segmented_as_in_one_piece_and_keeps_its_place(tmp_path, georeferenced, opened):
    path, image = georeferenced
    network, tiling = Hourglass(2).eval(), Tiling(32, 6, 2)
    steps = []
    segment_large(opened(path), tmp_path / "out.tif", answer_of(network), tiling, "k", lambda *at: steps.append(at))
    whole = in_tiles(network, torch.from_numpy(image)[None] / 255, Tiling(1000, 6, 2)).argmax(1)[0]
    with tifffile.TiffFile(tmp_path / "out.tif") as file:
        page = file.pages[0]
        assert page.is_tiled
        assert np.array_equal(page.asarray(), whole.numpy())
        for code, _, _, value, _ in GEO:
            assert page.tags[code].value == value
    assert steps[0] == (0, 24)
    assert steps[-1] == (24, 24)
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


@pytest.mark.parametrize(("cut", "key", "bands"), [(0, "k", 2), (1, "k", 1), (500, "k", 1), (0, "another network", 0)])
def test_killed_and_started_again_it_goes_on(tmp_path, georeferenced, cut, key, bands, opened):
    """With the whole bands of the same network that are there; each is of four tiles."""
    path, _ = georeferenced
    network, tiling, asked = Hourglass(2).eval(), Tiling(32, 6, 2), []

    def dies(samples):
        asked.append(samples.shape)
        if len(asked) == 11:  # in the third band
            raise KeyboardInterrupt
        return answer_of(network)(samples)

    with pytest.raises(KeyboardInterrupt):
        segment_large(opened(path), tmp_path / "out.tif", dies, tiling, "k")
    assert not (tmp_path / "out.tif").exists()
    (rows,) = tmp_path.glob(".out.tif.*.rows")
    rows.write_bytes(rows.read_bytes()[: rows.stat().st_size - cut])  # killed while a row was being written
    segment_large(opened(path), tmp_path / "out.tif", dies, tiling, key)
    assert len(asked) == 11 + 24 - 4 * bands
    segment_large(opened(path), tmp_path / "new.tif", answer_of(network), tiling, key)
    assert (tmp_path / "out.tif").read_bytes() == (tmp_path / "new.tif").read_bytes()
