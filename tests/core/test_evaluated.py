"""Kernels kept in evaluation: results never differ from those of kernels sampled anew, and nothing outlives its use."""

import gc
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from liespline import models, ops
from liespline.models.kernels import h_basis
from liespline.ops.correlate import reference, whole

TURNS = ls.uniform(ls.SO2(), 8)
LAYERS: dict[str, Callable[[], nn.Module]] = {
    "lift": lambda: ls.Lift(2, 3, 5, TURNS),
    "dense": lambda: ls.GConv(2, 3, 5, TURNS),
    "blurred": lambda: ls.GConv(2, 3, 5, ls.uniform(ls.SO2(), 4)),
    "banded": lambda: ls.GConv(2, 3, 5, TURNS, h_basis=h_basis(TURNS, "local", 3)),
    "separable": lambda: ls.GConv(2, 3, 5, ls.uniform(ls.Scale(2), 3, spacing=0.7)),
}


def made(kind: str) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(0)
    layer = LAYERS[kind]()
    return layer, torch.randn(1, 2, *(() if kind == "lift" else (len(layer.grid),)), 12, 12)


def given(layer: nn.Module, x: Tensor, kind: str) -> Tensor:
    with ops.use(kind if kind != "lift" else "auto"):
        return layer(x)


@pytest.mark.parametrize("kind", LAYERS)
def test_a_second_image_samples_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = made(kind)
    right = given(layer, x, kind).detach()
    with torch.no_grad():
        assert torch.equal(given(layer, x, kind), right)

        def sample(*_: object, **__: object) -> Tensor:
            raise AssertionError("sampled again")

        monkeypatch.setattr(reference, "lift_kernel", sample)
        monkeypatch.setattr(whole, "kernel", sample)
        assert torch.equal(given(layer, x, kind), right)
        assert not torch.equal(given(layer, 2 * x, kind), right)


def stepped(layer: nn.Module) -> None:
    optimiser = torch.optim.SGD(layer.parameters(), 0.1)
    layer.weight.grad = torch.ones_like(layer.weight)
    optimiser.step()


def behind(layer: nn.Module) -> None:
    layer.weight.data.mul_(2)  # which torch's count of versions does not see


CHANGES: dict[str, Callable[[nn.Module], object]] = {
    "in place": lambda layer: layer.weight.mul_(2),
    "behind autograd's back": behind,
    "as new data": lambda layer: setattr(layer.weight, "data", torch.randn_like(layer.weight)),
    "a step": stepped,
    "a state": lambda layer: layer.load_state_dict({k: v + 1 for k, v in layer.state_dict().items()}),
    "another weight": lambda layer: setattr(layer, "weight", nn.Parameter(layer.weight + 1)),
    "a shift": lambda layer: ls.nn.shift(layer, torch.tensor([0.3])),
    "float64": lambda layer: layer.double(),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["lift", "dense", "blurred", "banded"])
def test_whatever_changes_is_seen(kind: str, change: str) -> None:
    layer, x = made(kind)
    with torch.no_grad():
        before = given(layer, x, kind)
        CHANGES[change](layer)
        x = x.to(layer.weight.dtype)
        found = [given(layer, x, kind) for _ in range(2)]
    right = given(layer, x, kind)
    assert torch.equal(found[0], right)
    assert torch.equal(found[1], right)
    assert not torch.allclose(found[0].float(), before, atol=1e-7, rtol=0)


def test_what_is_kept_goes_with_training_and_with_the_layer() -> None:
    whole._evaluated.clear()
    layer, x = made("dense")
    layer(x)
    torch.func.vmap(layer)(x[None])
    with torch.no_grad():
        torch.func.vmap(layer)(x[None])
        torch.compile(layer, backend="eager")(x)
        assert len(whole._evaluated) == 0, "nothing is kept of what was followed"
        for side in range(8, 40):
            layer(torch.randn(1, 2, 8, side, side))
        assert len(whole._evaluated) == 1
        assert len(whole._evaluated[layer.weight].found) <= 8
    layer(x).sum().backward()
    assert len(whole._evaluated) == 0
    with torch.inference_mode():
        right = layer(x).clone()
    with torch.no_grad():
        assert torch.equal(layer(x), right)
    assert torch.equal(layer(x), right)
    with torch.no_grad():
        layer(x)
    del layer
    gc.collect()
    assert len(whole._evaluated) == 0


def test_a_network_gives_the_same_image_after_image() -> None:
    torch.manual_seed(0)
    net = models.resnet(1, 2, TURNS, version=2, widths=(4, 4, 6)).eval()
    for side in (32, 40, 32):
        x = torch.randn(1, 1, side, side)
        right = net(x).detach()
        with torch.no_grad():
            assert torch.equal(net(x), right)
            assert torch.equal(net(x), right)
