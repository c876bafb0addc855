"""An exported network is plain torch and computes what the network computes; checks.py takes it to ONNX."""

import math

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from exported import distance, same, stirred
from liespline import GConv, Lift, Project, export
from networks import NETWORKS

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")

SO2 = ls.uniform(ls.SO2(), 4)
CUBE = ls.uniform(ls.SO3(), 12)


def test_between_grids_and_without_space() -> None:
    sphere = ls.uniform(ls.Sphere(), 6)
    functions = nn.Sequential(
        *(GConv(1, 2, None, sphere, out_grid=CUBE), nn.BatchNorm1d(2), nn.ReLU()),
        *(GConv(2, 3, None, CUBE), Project("max", CUBE)),
    )
    plain = same(functions, torch.randn(3, 1, 6))
    assert [type(m) for m in plain.modules() if isinstance(m, nn.Linear | nn.Conv1d)] == [nn.Linear, nn.Linear]
    finer = ls.uniform(ls.SO2(), 8)
    same(nn.Sequential(Lift(1, 2, 5, SO2), GConv(2, 2, 5, SO2, out_grid=finer)), torch.randn(2, 1, 12, 12))


def test_what_cannot_be_exported_says_why() -> None:
    net = nn.Sequential(Lift(1, 2, 3, SO2), nn.ReLU(), GConv(2, 2, 3, SO2))
    with torch.no_grad():
        net[2].weight[0, 0, :2] = math.nan
    with pytest.raises(ValueError, match=r"8 of the 144 numbers in '2.weight' are NaN or infinite"):
        export(net)

    class Wrapped(Lift):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x).relu()

    with pytest.raises(ValueError, match=r"layer '0' is a Wrapped with a forward of its own.*hold a Lift"):
        export(nn.Sequential(Wrapped(1, 2, 3, SO2)))
    hooked = Lift(1, 2, 3, SO2)
    hooked.register_forward_hook(lambda module, args, output: output + 1)
    with pytest.raises(ValueError, match=r"layer '0' has forward hooks"):
        export(nn.Sequential(hooked))
    with pytest.raises(ValueError, match=r"net is a list, must be an nn.Module"):
        export([Lift(1, 2, 3, SO2)])  # type: ignore[arg-type]


def test_double_precision_and_parametrised_weights() -> None:
    net = nn.Sequential(Lift(2, 3, 5, SO2), nn.BatchNorm3d(3), GConv(3, 2, 3, SO2, padding=1)).double()
    nn.utils.parametrizations.weight_norm(net[2])
    stirred(net)
    assert distance(net, export(net), torch.randn(2, 2, 8, 8, dtype=torch.float64)) < 1e-13


@pytest.mark.parametrize("name", ["1-D", "3-D", "residual", "CelebA", "classifier", "resnet"])
def test_compact_networks_hold_no_more_than_what_was_trained(name: str) -> None:
    net = NETWORKS[name]()
    compact, plain, trained = (
        sum(p.numel() for p in one.parameters()) for one in (export(net, compact=True), export(net), net)
    )
    assert compact <= 1.05 * trained + 200  # biases, once for each element
    assert plain > 2 * trained


def test_channel_groups_are_those_of_convolutions() -> None:
    plain = export(NETWORKS["channel groups"]())
    assert [m.groups for m in plain.modules() if isinstance(m, nn.Conv2d)] == [2, 4]
