"""R^d ⋊ H against homogeneous matrices, and its left-regular action on sampled functions."""

import math

import numpy as np
import pytest
import torch

import oracle
from liespline import SO2, SO3, Group, Scale, uniform
from liespline.functional import left_regular
from liespline.groups import Element, Semidirect
from own_group import DTYPES, TOLERANCE, Triangular, name, points, vectors

each = pytest.mark.parametrize("h", [SO2(), Scale(2), Triangular(), Scale(3), SO3()], ids=name)


def elements(h: Group, n: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Element:
    return Element(points(h, n, dtype, seed), h.exp(vectors(h, n, dtype, seed + 1)))


def homogeneous(h: Group, element: torch.Tensor) -> np.ndarray:
    """Return [[h, x], [0, 1]], whose matrix product is the product of R^d ⋊ H."""
    g = Semidirect(h).split(element)
    matrix = np.tile(np.eye(h.space_dim + 1), (len(g.x), 1, 1))
    matrix[:, :-1, :-1] = [oracle.matrix(h, one) for one in g.h.numpy()]
    matrix[:, :-1, -1] = g.x
    return matrix


@each
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_product_inverse_identity_and_action_against_matrices(h, dtype):
    group = Semidirect(h)
    g, other = (group.join(*elements(h, 500, dtype, seed)) for seed in (0, 7))
    x = points(h, 500, dtype, seed=9)
    tolerance = 40 * TOLERANCE[dtype]  # entries reach e⁴
    left, right = homogeneous(h, g), homogeneous(h, other)
    np.testing.assert_allclose(homogeneous(h, group.product(g, other)), left @ right, rtol=0, atol=tolerance)
    np.testing.assert_allclose(homogeneous(h, group.inverse(g)), np.linalg.inv(left), rtol=0, atol=tolerance)
    np.testing.assert_allclose(
        homogeneous(h, group.identity(dtype=dtype)[None])[0], np.eye(h.space_dim + 1), rtol=0, atol=0
    )
    moved = (left @ np.append(x, np.ones((len(x), 1)), -1)[..., None])[..., :-1, 0]
    np.testing.assert_allclose(group.act(g, x), moved, rtol=0, atol=tolerance)
    assert group.act(g, x).dtype == dtype


ORIGIN = torch.zeros(2, dtype=torch.float64)
QUARTER = torch.tensor([math.pi / 2], dtype=torch.float64)


def moved(g: Element, f: torch.Tensor, h: Group) -> torch.Tensor:
    """Return L_g f of one sampled function without batch and channels."""
    return left_regular(g, f[None, None], h)[0, 0]


def test_quarter_turns_are_rot90():
    image = torch.randn(2, 3, 7, 7, dtype=torch.float64)
    for turns in range(-1, 3):
        found = left_regular(Element(ORIGIN, turns * QUARTER), image, SO2())
        torch.testing.assert_close(found, torch.rot90(image, turns, (-2, -1)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("h", [Scale(1), SO2(), Scale(2), Triangular(), Scale(3), SO3()], ids=name)
def test_affine_functions_are_moved_exactly(h):
    """(L_g f)(y) = f(h⁻¹(y − x)): linear interpolation is exact for f affine, wherever it stays inside."""
    d, size = h.space_dim, 15
    axis = np.arange(size) - (size - 1) / 2
    y = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), -1)
    slope = np.arange(1, d + 1)
    g = Element(points(h, 1)[0] + 3, h.exp(0.3 * vectors(h, 1, seed=5)[0]))
    back = (y - g.x.numpy()) @ np.linalg.inv(oracle.matrix(h, g.h.numpy())).T
    inside = (np.abs(back) <= (size - 1) / 2).all(-1)
    found = moved(g, torch.from_numpy(y @ slope + 2.0), h).numpy()
    assert inside.mean() > 0.1
    np.testing.assert_allclose(found[inside], (back @ slope + 2.0)[inside], rtol=0, atol=1e-12)
    outside = (np.abs(back) >= (size + 1) / 2).any(-1)
    assert outside.any()
    assert not found[outside].any()


def test_left_regular_is_a_representation_that_splits():
    """L_g L_g′ = L_gg′ and L_(x,h) = L_x L_h, exactly where lattices map to themselves (eq. splitting)."""
    so3, octahedral = SO3(), uniform(SO3(), 24).elements
    group, e = Semidirect(so3), so3.identity(dtype=torch.float64)
    volume = torch.zeros(9, 9, 9, dtype=torch.float64)
    volume[3:6, 3:6, 3:6] = torch.randn(3, 3, 3, dtype=torch.float64)  # room to move without leaving
    g = Element(torch.tensor([1.0, 0, -2], dtype=torch.float64), octahedral[5])
    other = Element(torch.tensor([0.0, 1, 0], dtype=torch.float64), octahedral[13])
    twice = moved(g, moved(other, volume, so3), so3)
    both, swapped = (group.split(group.product(group.join(*a), group.join(*b))) for a, b in ((g, other), (other, g)))
    torch.testing.assert_close(moved(both, volume, so3), twice, rtol=0, atol=1e-12)
    assert float((moved(swapped, volume, so3) - twice).abs().max()) > 0.1, "the order matters"
    turned = moved(Element(torch.zeros_like(g.x), g.h), volume, so3)
    torch.testing.assert_close(moved(g, volume, so3), moved(Element(g.x, e), turned, so3), rtol=0, atol=1e-12)
    shifted = torch.roll(volume, (1, -2), (0, 2))
    torch.testing.assert_close(moved(Element(g.x, e), volume, so3), shifted, rtol=0, atol=1e-12)


def test_feature_maps_move_on_h_too():
    features = torch.randn(2, 3, 8, 5, 5, dtype=torch.float64)
    found = left_regular(Element(ORIGIN, QUARTER), features, SO2(), uniform(SO2(), 8))
    torch.testing.assert_close(found, torch.rot90(features.roll(2, 2), 1, (-2, -1)), rtol=0, atol=1e-12)
    scales = uniform(Scale(2), 3, spacing=math.log(2))
    ones = torch.ones(1, 1, 3, 5, 5, dtype=torch.float64)
    grown = left_regular(Element(ORIGIN, scales.elements[1]), ones, Scale(2), scales)
    assert grown[0, 0, :, 2, 2].tolist() == pytest.approx([0, 1, 1]), "nothing is known below the smallest scale"
    halfway = left_regular(Element(ORIGIN, QUARTER / 2), features[:, :, ::2], SO2(), uniform(SO2(), 4))
    between = (features[:, :, ::2] + features[:, :, ::2].roll(1, 2))[..., 2, 2] / 2
    torch.testing.assert_close(halfway[..., 2, 2], between, rtol=0, atol=1e-12)
