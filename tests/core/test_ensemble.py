"""nn.Ensemble: the mean of several networks' answers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import liespline as ls
from liespline.nn import Ensemble
from networks import NETWORKS, image


def test_it_is_the_mean_of_linear_maps() -> None:
    parts = [nn.Linear(3, 2, bias=False).double() for _ in range(4)]
    x = torch.randn(5, 3, dtype=torch.float64)
    mean = sum(part.weight for part in parts) / 4
    assert torch.allclose(Ensemble(parts)(x), x @ mean.T, atol=1e-14)
    each = Ensemble(parts).each(x)
    assert all(torch.equal(one, part(x)) for one, part in zip(each, parts, strict=True))
    assert len(each) == 4


def test_it_is_exported() -> None:
    net = Ensemble(NETWORKS["SO2 dense"]() for _ in range(2)).double().eval()
    x = image(net.networks[0], dtype=torch.float64)
    plain = ls.export(net)
    assert not any(isinstance(layer, ls.nn.Lift | ls.nn.GConv) for layer in plain.modules())
    assert torch.allclose(plain(x), net(x), atol=1e-12)


def test_none_is_refused() -> None:
    with pytest.raises(ValueError, match="Ensemble: no networks"):
        Ensemble([])
