"""The measurement of heads: digits turned about the right point, variants that differ in one thing, one tiny run."""

from __future__ import annotations

import gzip
import math
import time
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import liespline as ls

ROOT = Path(__file__).parents[2]


@pytest.fixture
def heads(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    import benchmarks.heads.training as training

    return training


def test_digits_are_turned_about_the_images_centre_or_their_own(heads: ModuleType) -> None:
    turn = heads.turn
    image = torch.zeros(1, 1, 28, 28)
    image[..., 8:20, 12:18] = torch.rand(12, 6) + 0.1
    quarter = turn(image, torch.tensor([math.pi / 2]), "image")
    assert (quarter - torch.rot90(image, 1, (-2, -1)).clamp(0, 1)).abs().max() < 1e-4
    wide = turn(image, torch.tensor([0.3]), "image", side=30)
    assert torch.allclose(wide[..., 1:-1, 1:-1], turn(image, torch.tensor([0.3]), "image"), atol=1e-5)
    odd = turn(image, torch.tensor([0.0]), "image", side=29)  # an odd number of points about the same centre
    assert (turn(image, torch.tensor([math.pi / 2]), "image", side=29) - odd.rot90(1, (-2, -1))).abs().max() < 1e-4
    axis = torch.arange(28.0)

    def mass(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([(x[0, 0].sum(1 - i) * axis).sum() for i in (0, 1)]) / x.sum()

    smooth = torch.nn.functional.avg_pool2d(image, 5, 1, 2)
    for angle in (0.4, 2.0, 4.5):
        turned = turn(smooth, torch.tensor([angle]), "mass")
        assert (mass(turned) - mass(smooth)).abs().max() < 0.02
        about_image = mass(turn(smooth, torch.tensor([angle]), "image")) - mass(smooth)
        assert about_image.abs().max() > 0.1
        bent = turn(smooth, torch.tensor([angle]), "mass", elastic=1.5)
        assert (bent - turned).abs().max() > 0.1
        assert (mass(bent) - mass(smooth)).abs().max() < 0.2


def test_the_chain_is_the_classifier(heads: ModuleType) -> None:
    from benchmarks.heads.variants import SMALL, VARIANTS, chain

    theirs = ls.models.classifier(1, 10, ls.uniform(ls.SO2(), 16), widths=SMALL)
    ours = chain(last=7)
    assert [p.shape for p in ours.parameters()] == [p.shape for p in theirs.parameters()]
    theirs.load_state_dict(dict(zip(theirs.state_dict(), ours.state_dict().values(), strict=True)))
    x = torch.randn(1, 1, 28, 28)
    assert torch.allclose(ours.eval()(x), theirs.eval()(x), atol=1e-5)
    for name, variant in VARIANTS.items():
        if "classifier" not in name and "resnet" not in name:
            assert variant.network()(torch.randn(2, 1, variant.side, variant.side)).shape == (2, 10), name


def test_a_disc_of_features_turns_with_the_image(heads: ModuleType) -> None:
    """A constant stays the same inside the disc, and zero padding adds no square to it."""
    from benchmarks.heads.discs import Disc, in_discs
    from benchmarks.heads.variants import chain

    found = Disc()(torch.ones(1, 2, 4, 28, 28))
    radius = (torch.cartesian_prod(torch.arange(28.0), torch.arange(28.0)) - 13.5).norm(dim=1).view(28, 28)
    assert (found[..., radius <= 13.5] == 1).all()
    assert (found[..., radius >= 14.5] == 0).all()
    assert torch.equal(found, found.rot90(1, (-2, -1)))
    net = chain(last=7, n_h=4, widths=(2, 2, 2))
    discs = [layer for layer in in_discs(net) if isinstance(layer, Disc)]
    assert len(discs) == 3
    assert [p.shape for p in in_discs(net).parameters()] == [p.shape for p in net.parameters()]


def test_a_run_measures_and_stops_at_its_deadline(heads: ModuleType, tmp_path: Path) -> None:
    from benchmarks.heads.variants import Variant

    draw = np.random.default_rng(0)
    for part, count in (("train", 12_000), ("t10k", 100)):
        images = draw.integers(0, 255, (count, 28, 28), np.uint8)
        labels = (images[:, 0, 0] % 10).astype(np.uint8)
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            (tmp_path / f"{part}-{kind}-ubyte.gz").write_bytes(gzip.compress(header + array.tobytes(), 1))
    grid = ls.uniform(ls.SO2(), 4)
    network = partial(ls.models.classifier, 1, 10, grid, widths=(2, 2, 2))
    variant = Variant(network, augment=True, elastic=0.5, about="mass")
    settings = heads.Settings(tmp_path, epochs=2, batch=8, limit=24)
    upright = Variant(variant.network, upright=math.pi / 2, shifted=2)
    assert 0 <= heads.train(upright, 0, settings, time.time() + 600)["half-way"] <= 100
    result = heads.train(variant, 0, settings, time.time() + 600)
    assert 0 <= result["error"] <= 100
    assert 0 <= result["change, two grids"] < result["change"]  # a network that is nearly untrained
    assert result["weights"] == sum(p.numel() for p in variant.network().parameters())
    assert heads.train(variant, 0, settings, time.time() - 1) is None
