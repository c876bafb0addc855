"""Lifting of vector and tensor fields: loops over the formula, and fields that rotate with their vectors."""

import itertools
import math

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from liespline.testing.moving import moved

X64 = torch.float64
CUBE, FOUR = ls.uniform(ls.SO3(), 24), ls.uniform(ls.SO2(), 4)
ZOOMS = ls.uniform(ls.Product(ls.O2(), ls.Scale(2)), (8, 2), spacing=(None, 0.5 * math.log(2)))


@pytest.mark.parametrize("in_type", ["vector", "tensor"])
def test_lifting_is_that_of_plain_loops(in_type: str) -> None:
    """out(x, h) = Σ_y Σ_i k_i(h⁻¹(y − x)) (h⁻¹v(y))_i, with the kernel of a scalar layer for each component."""
    d, components = 2, 2 if in_type == "vector" else 4
    layer = ls.Lift(3, 2, 5, ZOOMS, in_type=in_type, dtype=X64)
    scalar = ls.Lift(3 * components, 2, 5, ZOOMS, bias=False, dtype=X64)
    with torch.no_grad():
        scalar.weight.copy_(layer.weight.movedim(-1, 2).flatten(1, 2))
    kernels = scalar.kernel().unflatten(2, (3, components))  # (2, N_h, 3, components, *window)
    x = torch.randn(2, 3, *(d,) * (1 if in_type == "vector" else 2), 9, 8, dtype=X64)
    found = layer(x)
    for a, h in enumerate(ZOOMS.elements):
        back = torch.linalg.inv(ZOOMS.group.matrix(h))
        seen = torch.zeros(2, 3, components, 9, 8, dtype=X64)
        if in_type == "vector":
            for i, j in itertools.product(range(d), repeat=2):
                seen[:, :, i] += back[i, j] * x[:, :, j]
        else:
            for i, j, k, m in itertools.product(range(d), repeat=4):
                seen[:, :, d * i + k] += back[i, j] * back[k, m] * x[:, :, j, m]
        right = nn.functional.conv2d(
            seen.flatten(1, 2), kernels[:, a].flatten(1, 2), layer.bias, padding=layer.borders.before
        )
        torch.testing.assert_close(found[:, :, a], right, rtol=0, atol=1e-12)


def rotated(field: Tensor, h: Tensor) -> Tensor:
    """h v(h⁻¹x) of `(B, C, 3, *space)`, h T(h⁻¹x) h⁻¹ of `(B, C, 3, 3, *space)`, exactly."""
    space = field.shape[-3:]
    there = moved(field.double().reshape(len(field), -1, *space), ls.SO3(), h).view(field.shape)
    if field.ndim == 6:
        return torch.einsum("ij,bcj...->bci...", h, there)
    return torch.einsum("ij,bcjl...,kl->bcik...", h, there, h)


def network(in_type: str) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        *(ls.Lift(2, 3, 3, CUBE, in_type=in_type, padding=1), ls.nn.NormReLU(3)),
        *(ls.GConv(3, 2, 3, CUBE, padding=1, bias=False), nn.ReLU(), ls.Project("vector", CUBE)),
    ).eval()


@pytest.mark.parametrize("in_type", ["vector", "tensor"])
def test_fields_rotate_with_their_vectors(in_type: str) -> None:
    """Field to vector field under the 24 rotations of the cube, to 1e-6 in float32."""
    net = network(in_type)
    x = torch.randn(1, 2, *(3,) * (1 if in_type == "vector" else 2), 5, 5, 5)
    with torch.no_grad():
        still = net(x)
        assert still.abs().max() > 1e-3
        for h in CUBE.elements:
            found, expected = net(rotated(x, h).float()).double(), rotated(still, h)
            assert (found - expected).abs().max() < 1e-6 * max(1.0, float(still.abs().max()))
    assert (found - still).abs().max() > 0.1 * still.abs().max(), "something moved"


def test_reflected_vectors_are_lifted_by_reflections() -> None:
    flips = ls.uniform(ls.O2(), 8)
    net = nn.Sequential(ls.Lift(1, 3, 5, flips, in_type="vector", dtype=X64), nn.ReLU(), ls.Project("max", flips))
    x = torch.randn(2, 1, 2, 9, 9, dtype=X64)
    mirrored = x.flip(-1) * torch.tensor([1.0, -1.0], dtype=X64).view(2, 1, 1)
    torch.testing.assert_close(net(mirrored), net(x).flip(-1), rtol=0, atol=1e-12)
    assert (net(x.flip(-1)) - net(x).flip(-1)).abs().max() > 0.01, "a field whose vectors stay is another one"


def test_vectors_follow_the_grid_when_it_is_shifted() -> None:
    """Lifting on h·H is lifting on a grid that was made there."""
    h = torch.tensor([0.3], dtype=X64)
    there = ls.Grid(ls.SO2(), FOUR.elements + h, FOUR.weights, FOUR.spacing)
    layer, other = (ls.Lift(1, 2, 5, grid, in_type="vector", dtype=X64) for grid in (FOUR, there))
    other.load_state_dict(layer.state_dict())
    x = torch.randn(1, 1, 2, 7, 7, dtype=X64)
    with ls.nn.shift(layer, h):
        torch.testing.assert_close(layer(x), other(x), rtol=0, atol=1e-12)


@torch.no_grad()
def test_activations_keep_their_size() -> None:
    torch.manual_seed(0)
    sizes = [
        float(ls.Lift(8, 64, 5, FOUR, in_type=in_type, bias=False)(torch.randn(4, 8, *more, 24, 24)).square().mean())
        for in_type, more in (("scalar", ()), ("vector", (2,)), ("tensor", (2, 2)))
    ]
    assert max(sizes) < 1.5 * min(sizes)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Lift: in_type = 'spinor', must be \"scalar\", \"vector\" or \"tensor\""):
        ls.Lift(1, 2, 5, FOUR, in_type="spinor")
    with pytest.raises(ValueError, match=r"expected \(B, 2, 2, S, S\), that is \(B, in, d, \*space\)"):
        ls.Lift(2, 2, 5, FOUR, in_type="vector")(torch.zeros(1, 2, 8, 8))
    with pytest.raises(ValueError, match=r"needs a group, not the quotient Sphere\(\): take SO3\(\)"):
        ls.Lift(2, 2, 3, ls.uniform(ls.Sphere(), 6), in_type="vector")
