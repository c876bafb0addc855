"""Whole networks keep the symmetries of their pixels exactly: moves × networks × sizes."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from exported import change, quarter_turn, rotated, settled
from liespline import models
from liespline.nn import Centre
from networks import TURNS
from plain_networks import ResNet18, every_kind

X64 = torch.float64
FLIPS = ls.uniform(ls.O2(), 8)
ZOOMS = ls.uniform(ls.Product(ls.SO2(), ls.Scale(2)), (4, 2), spacing=(None, 0.35))
CUBE = ls.uniform(ls.SO3(), 24)
MOVES: dict[str, Callable[[Tensor], Tensor]] = {
    "turn": quarter_turn,
    "flip": lambda t: t.flip(-1),
    "transpose": lambda t: t.transpose(-2, -1),
}
WIDTHS = {"classifier": (3, 4, 4, 5, 4, 12), "resnet": (3, 3, 4, 12), "unet": (3, 4, 5)}
every_model = pytest.mark.parametrize("model", WIDTHS)


def ready(model: str, grid: ls.Grid = TURNS, **options: object) -> nn.Module:
    return getattr(models, model)(3, 4, grid, **{"widths": WIDTHS[model]} | options)


def as_they_are() -> dict[str, tuple[Callable[[], nn.Module], tuple[str, ...]]]:
    """Each network, and the moves it keeps."""
    found = {}
    for model in WIDTHS:
        found[model] = (lambda model=model: ready(model)), ("turn",)
        found[f"{model}, separable"] = (lambda model=model: ready(model, separable=True)), ("turn",)
        found[f"{model} with flips"] = (lambda model=model: ready(model, FLIPS, widths=(2, 2, 4))), tuple(MOVES)
        found[f"{model} with zooms"] = (lambda model=model: ready(model, ZOOMS, widths=(3, 4))), ("turn",)
    for kernel in ("local", "atrous"):
        found[f"{kernel} classifier"] = (lambda kernel=kernel: ready("classifier", kernel=kernel)), ("turn",)
    found["classifier, stride 2"] = (lambda: ready("classifier", stride=2)), ("turn",)
    found["resnet, version 2"] = (lambda: ready("resnet", version=2)), ("turn",)
    found["resnet of a disc, version 2"] = (lambda: ready("resnet", disc=True, version=2)), ("turn",)
    for model in ("classifier", "resnet"):
        found[f"{model} of a disc"] = (lambda model=model: ready(model, disc=True)), ("turn",)
    found["converted ResNet-18"] = (lambda: ls.convert(ResNet18(4), TURNS)), ("turn",)
    found["converted ResNet-18 with flips"] = (lambda: ls.convert(ResNet18(2), FLIPS)), tuple(MOVES)
    found["converted layers of every kind"] = (lambda: ls.convert(every_kind(3), TURNS)), ("turn",)
    return found


NETWORKS = as_they_are()


def prepared(net: nn.Module, *shape: int) -> nn.Module:
    return settled(net, torch.randn(8, *shape)).double()


@pytest.mark.parametrize("name", NETWORKS)
def test_moves_are_exact_at_every_size(name: str) -> None:
    make, kept = NETWORKS[name]
    net = prepared(make(), 3, 28, 28)
    for size in (28, 29, 63, 64, *([96] if "version 2" in name else [])):
        x = torch.randn(2, 3, size, size, dtype=X64)
        assert max(change(net, x, MOVES[move]) for move in kept) <= 1e-10, size


@every_model
@pytest.mark.parametrize("shape", [(8, 8), (9, 9), (13, 13), (28, 33), (100, 37)])
def test_half_turns_are_exact_at_small_and_oblong_sizes(model: str, shape: tuple[int, int]) -> None:
    net = prepared(ready(model), 3, 28, 28)
    assert change(net, torch.randn(4, 3, *shape, dtype=X64), lambda t: t.flip(-2, -1)) <= 1e-10


@pytest.mark.parametrize(
    ("net", "size"),
    [
        (lambda: models.unet(1, 2, CUBE, widths=(2, 2), kernel="local"), 8),
        (lambda: models.classifier(1, 2, CUBE, widths=(2, 2, 2), kernel="local", n_k=7, stride=2), 18),
    ],
    ids=["unet", "classifier"],
)
def test_rotations_of_the_cube_are_exact(net: Callable[[], nn.Module], size: int) -> None:
    ready = prepared(net(), 1, *3 * (size,))
    x = torch.randn(2, 1, *3 * (size,), dtype=X64)
    for h in CUBE.elements[1::3]:
        assert change(ready, x, lambda t, h=h: rotated(t, h)) < 1e-10


@pytest.mark.parametrize("stride", [2, 3, 4])
def test_every_stride_is_centred_at_every_size(stride: int) -> None:
    for size in range(24, 37):
        x = torch.randn(1, 1, size, size, dtype=X64)
        found = Centre(stride)(x)
        assert all((n - 1) % stride == 0 for n in found.shape[2:])
        assert size - stride <= found.shape[2] <= size
        assert (Centre(stride)(quarter_turn(x)) - quarter_turn(found)).abs().max() < 1e-14


@pytest.mark.parametrize("model", ["classifier", "resnet"])
@pytest.mark.parametrize("n", [11, 36, 37])
def test_a_network_of_a_disc_sees_no_corner(model: str, n: int) -> None:
    check_sees_no_corner(ready(model, disc=True), n)


def test_nor_does_one_that_begins_with_a_stride() -> None:
    check_sees_no_corner(ready("classifier", disc=True, stride=2), 36)


def check_sees_no_corner(net: nn.Module, n: int) -> None:
    net = net.double().eval()
    x = torch.rand(2, 3, n, n, dtype=X64)
    middle = ((n - 1) / 2,) * 2
    corners = torch.tensor([[math.dist((i, j), middle) >= n / 2 for j in range(n)] for i in range(n)])
    other = torch.where(corners, torch.rand_like(x) * 9, x)
    with torch.no_grad():
        still = net(x)
        assert torch.equal(net(other), still)
        assert not torch.equal(net(torch.where(corners, x, other + 0.1)), still)
