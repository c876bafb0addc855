"""Images of any channels from the command to its answers: one reader for `images` and `segment`."""

import json

import numpy as np
import pytest
import tifffile
import torch

from liespline.lab import load
from truth.road import ended

SMALL = tuple("--elements 2 --set widths=2,2 --epochs 1 --batch-size 8 --accelerator cpu --quiet".split())


@pytest.mark.parametrize(("channels", "dtype"), [(2, np.uint8), (5, np.uint16), (3, np.float32), (1, np.float32)])
def test_images_take_tiff_of_any_channels(tmp_path, channels, dtype):
    """What `predict` says of a file is what the network says of its samples by numpy."""
    draw, root = np.random.default_rng(channels), tmp_path / "set"
    for name, bright in (("dark", 60), ("light", 120)):
        (root / name).mkdir(parents=True)
        for i in np.random.default_rng(0).permutation(8):
            values = (draw.random((17, 19, channels)) * bright).astype(dtype)
            plan = None if channels == 1 else "contig"
            stored = values[..., 0] if channels == 1 else values
            tifffile.imwrite(root / name / f"{i}.tif", stored, photometric="minisblack", planarconfig=plan)
    ended(0, "train", "images", "--data", root, "--out", tmp_path / "run", *SMALL)
    net, file = load(tmp_path / "run"), root / "light" / "3.tif"
    assert net.signature.in_channels == channels
    samples = np.atleast_3d(tifffile.imread(file)).astype(np.float32)
    samples = samples if dtype == np.float32 else samples / np.float32(np.iinfo(dtype).max)
    with torch.no_grad():
        shares = net(torch.from_numpy(samples).movedim(-1, 0)[None])[0].double().softmax(0).numpy()
    out = ended(0, "predict", tmp_path / "run", file, "--json")[0]
    assert list(json.loads(out)[0]["probabilities"].values()) == pytest.approx(shares, abs=1e-6)


def test_odd_ones_are_named(tmp_path):
    root = tmp_path / "set"
    for name in ("a", "b"):
        (root / name).mkdir(parents=True)
        for i in range(4):
            values = np.full((16, 16, 4 if (name, i) == ("b", 2) else 5), i, np.uint8)
            tifffile.imwrite(root / name / f"{i}.tif", values, photometric="minisblack", planarconfig="contig")
    said = ended(2, "train", "images", "--data", root, "--out", tmp_path / "run", *SMALL)[1]
    assert "b/2.tif: has 4 channels of uint8 where 7 images have 5 channels of uint8; save all alike" in said
