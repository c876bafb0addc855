"""An exported network is plain torch and computes what the network computes; checks.py takes it to ONNX."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from exported import Residual, distance, same, stirred
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


def test_a_sequential_becomes_the_network_one_would_write_by_hand() -> None:
    relu = nn.ReLU()  # one object in several places
    net = nn.Sequential(
        nn.Sequential(Lift(3, 4, 5, SO2, bias=False), nn.BatchNorm3d(4, eps=1e-3), relu),
        nn.MaxPool3d((1, 2, 2)),
        nn.Sequential(nn.Sequential(GConv(4, 5, 5, SO2)), ls.nn.BatchNorm(5), nn.Dropout3d(), relu, ls.nn.MaxPool(2)),
        GConv(5, 6, 1, SO2, bias=False),
        Project("mean", SO2),
        nn.Conv2d(6, 7, 1, bias=False),
        nn.BatchNorm2d(7, affine=False),
        nn.Flatten(),
    )
    plain = same(net, torch.randn(2, 3, 18, 18))
    leaves = [type(m).__name__ for m in plain.modules() if not isinstance(m, nn.Sequential | nn.Identity)]
    layers = "Conv2d ReLU MaxPool2d Conv2d Dropout3d MaxPool2d Conv2d Unflatten Project Conv2d Flatten"
    assert leaves == layers.split()  # modules() names the shared ReLU once


POOLS = [ls.nn.MaxPool(3, 2, 1), ls.nn.MaxPool(2, 3), nn.MaxPool3d((1, 3, 2), (1, 2, 3), (0, 1, 0))]


@pytest.mark.parametrize("pool", POOLS)
def test_pools_whose_windows_overlap_or_leave_gaps(pool: nn.Module) -> None:
    net = nn.Sequential(Lift(1, 2, 5, SO2), pool, nn.ReLU(), GConv(2, 2, 1, SO2), pool, Project("mean", SO2))
    same(net, torch.randn(2, 1, 25, 22))


@pytest.mark.parametrize("batch", [1, 2])
def test_channels_last_lasts_through_a_sequential(batch: int) -> None:
    net = nn.Sequential(Lift(3, 4, 5, SO2), nn.ReLU(), nn.MaxPool3d((1, 2, 2)), GConv(4, 4, 3, SO2, padding=1))
    plain = export(net).to(memory_format=torch.channels_last)
    formats = []
    for conv in plain.modules():
        if isinstance(conv, nn.Conv2d):
            conv.register_forward_pre_hook(
                lambda _, args: formats.append(args[0].is_contiguous(memory_format=torch.channels_last))
            )
    plain(torch.randn(batch, 3, 20, 20).contiguous(memory_format=torch.channels_last))
    assert formats == [True, True]


def test_inside_a_forward_of_ones_own() -> None:
    net = Residual(SO2)
    plain = same(net, torch.randn(2, 2, 10, 11))
    assert plain.twice is plain.block[3]
    assert type(plain.block[2]) is nn.Identity
    assert type(plain.norms[0]) is nn.BatchNorm3d


class Halved(nn.BatchNorm3d):
    """A batch norm that does something else as well."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) / 2


class Doubled(nn.Sequential):
    """A Sequential that does not only run its children in order."""

    def forward(self, input: Tensor) -> Tensor:
        for module in self:
            input = 2 * module(input)
        return input


def shared_layer() -> nn.Module:
    layer = GConv(2, 2, 3, SO2, padding=1)
    return nn.Sequential(layer, nn.BatchNorm3d(2), layer)


def shared_block() -> nn.Module:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(GConv(2, 2, 3, SO2, padding=1))
            self.both = nn.Sequential(self.first, nn.BatchNorm3d(2))

        def forward(self, x: Tensor) -> Tensor:
            return self.first(x) + self.both(x)

    return Net()


def shared_norm() -> nn.Module:
    norm = nn.BatchNorm3d(2)
    return nn.Sequential(GConv(2, 2, 3, SO2), norm, GConv(2, 2, 3, SO2), nn.ReLU(), norm)


def nonlinearity_between() -> nn.Module:
    relu = nn.ReLU()
    return nn.Sequential(relu, GConv(2, 2, 3, SO2), relu, nn.BatchNorm3d(2))


def hooked_norm() -> nn.Module:
    net = nn.Sequential(GConv(2, 2, 3, SO2), nn.BatchNorm3d(2), GConv(2, 2, 1, SO2))
    net[1].register_forward_hook(lambda module, args, output: output + 1)
    return net


def pool_over_elements() -> nn.Module:
    return nn.Sequential(GConv(2, 4, 3, SO2), nn.MaxPool3d(2), GConv(4, 2, 1, ls.uniform(ls.SO2(), 2)))


UNSAFE: list[Callable[[], nn.Module]] = [
    shared_layer,
    shared_block,
    shared_norm,
    nonlinearity_between,
    hooked_norm,
    pool_over_elements,
    lambda: nn.Sequential(GConv(2, 2, 3, SO2), Halved(2)),
    lambda: Doubled(GConv(2, 2, 3, SO2), nn.BatchNorm3d(2)),
    lambda: nn.Sequential(GConv(2, 2, 3, SO2), nn.BatchNorm3d(2, track_running_stats=False)),
    lambda: nn.Sequential(GConv(2, 2, 3, SO2), nn.BatchNorm3d(2), nn.BatchNorm3d(2)),
    lambda: nn.Sequential(GConv(2, 2, 3, SO2), nn.Softmax(2), GConv(2, 2, 1, SO2)),
    lambda: nn.Sequential(GConv(2, 2, 3, SO2), nn.PReLU(2), GConv(2, 2, 1, SO2)),
]


@pytest.mark.parametrize("make", UNSAFE)
def test_nothing_is_folded_where_that_would_change_the_result(make: Callable[[], nn.Module]) -> None:
    same(make(), torch.randn(2, 2, 4, 7, 7))


def test_the_original_stays_as_it_is() -> None:
    net = Residual(SO2).train()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    random = torch.get_rng_state()
    plain = export(torch.compile(net, backend="eager"))
    assert torch.equal(random, torch.get_rng_state())
    assert isinstance(plain, Residual)
    assert not plain.training
    assert not any(p.requires_grad for p in plain.parameters())
    assert net.training
    assert all(p.requires_grad for p in net.parameters())
    assert isinstance(net.twice, GConv)
    assert before.keys() == net.state_dict().keys()
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())
    shared = {p.data_ptr() for p in net.parameters()} & {p.data_ptr() for p in plain.parameters()}
    assert not shared
