"""Batch norm in evaluation as an operator, against torch's own in values and in first and second derivatives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from liespline.nn import BatchNorm, NormReLU, norm
from liespline.nn.evaluated import evaluated


def drawn(shape: tuple[int, ...]) -> tuple[Tensor, ...]:
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=torch.float64).movedim(1, -1).contiguous().movedim(-1, 1)  # channels innermost
    return tuple(t.requires_grad_() for t in (x, *torch.randn(2, shape[1], dtype=torch.float64).unbind()))


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4, 5, 6), (2, 3, 4, 2, 3, 2)])
def test_it_is_torch_s_own(shape: tuple[int, ...], relu: bool) -> None:
    x, scale, shift = drawn(shape)
    torch.library.opcheck(evaluated, (x, scale, shift, relu))
    one = torch.ones(shape[1], dtype=x.dtype)
    right = F.batch_norm(x, 0 * one, one, scale, shift, False, 0.0, 0.0)
    right, found = right.relu() if relu else right, evaluated(x, scale, shift, relu)
    assert torch.allclose(found, right, rtol=1e-12)
    grad = torch.randn(shape, dtype=x.dtype)
    for again in (False, True):
        pairs = [
            torch.autograd.grad(out, (x, scale, shift), grad, create_graph=True, materialize_grads=True)
            for out in (found, right)
        ]
        for ours, theirs in zip(*pairs, strict=True):
            assert torch.allclose(ours, theirs, rtol=1e-10), f"again: {again}"
        found, right = (torch.stack([part.square().sum() for part in parts]).sum() for parts in pairs)
        grad = torch.ones((), dtype=x.dtype)
    # Once more without a graph of the gradient, which the operator then computes itself.
    direction, columns = torch.randn(shape, dtype=x.dtype), (-1, *(1,) * (x.ndim - 2))
    dx, dscale, dshift = torch.autograd.grad(evaluated(x, scale, shift, relu), (x, scale, shift), direction)
    through = direction * (x * scale.view(columns) + shift.view(columns) > 0) if relu else direction
    others = [axis for axis in range(x.ndim) if axis != 1]
    assert torch.allclose(dx, through * scale.view(columns))
    assert torch.allclose(dscale, (through * x).sum(others))
    assert torch.allclose(dshift, through.sum(others))


@pytest.mark.parametrize(
    "layer", [NormReLU(3), nn.Sequential(BatchNorm(3, affine=False), nn.ReLU())], ids=["one", "two"]
)
def test_layers_take_it_where_a_compiler_wants_gradients_on_a_gpu(
    layer: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 3, 4, 5, 5, requires_grad=True)
    layer.train()
    layer(x)
    layer.eval()
    wanted = [x, *layer.parameters()]
    right = layer(x)
    expected = torch.autograd.grad(right.square().sum(), wanted)
    asked = []
    monkeypatch.setattr(norm, "wanted", lambda x: asked.append(x.shape) or True)
    found = layer(x)
    assert torch.allclose(found, right, atol=1e-5)
    assert asked
    for ours, theirs in zip(torch.autograd.grad(found.square().sum(), wanted), expected, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    layer.train()
    assert layer(x).shape == x.shape  # training is another matter
