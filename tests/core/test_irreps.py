"""Irreducible representations: against spherical harmonics, e3nn where it is installed, and loops over the group."""

import math

import pytest
import torch
from torch import Tensor

import liespline as ls
from liespline.functional import wigner
from liespline.nn import FromIrreps, ToIrreps

X64 = torch.float64
TETRAHEDRON, CUBE, ICOSAHEDRON = (ls.uniform(ls.SO3(), n) for n in (12, 24, 60))
EIGHT, NINE = (ls.uniform(ls.SO2(), n) for n in (8, 9))
exactly = pytest.mark.parametrize(
    ("grid", "l_max"), [(TETRAHEDRON, 1), (CUBE, 1), (ICOSAHEDRON, 2), (NINE, 4), (EIGHT, 3)]
)


def rotations(n: int) -> Tensor:
    return ls.SO3().exp(4 * torch.randn(n, 3, dtype=X64, generator=torch.Generator().manual_seed(0)))


def harmonics(degree: int, r: Tensor) -> Tensor:
    """The table of real spherical harmonics, up to one factor per degree; its x, y, z are our axes 2, 0, 1."""
    y, z, x = r.unbind(-1)
    rr = r.square().sum(-1)
    table = {
        0: [torch.ones_like(x)],
        1: [y, z, x],
        2: [x * y, y * z, (3 * z * z - rr) / (2 * 3**0.5), x * z, (x * x - y * y) / 2],
        3: [
            10**0.5 * y * (3 * x * x - y * y) / 2, 2 * 15**0.5 * x * y * z, 6**0.5 * y * (5 * z * z - rr) / 2,
            z * (5 * z * z - 3 * rr), 6**0.5 * x * (5 * z * z - rr) / 2, 15**0.5 * (x * x - y * y) * z,
            10**0.5 * x * (x * x - 3 * y * y) / 2,
        ],
    }  # fmt: skip
    return torch.stack(table[degree], -1)


@pytest.mark.parametrize("degree", range(4))
def test_harmonics_rotate_with_them(degree: int) -> None:
    r = torch.randn(20, 1, 3, dtype=X64)
    h = rotations(6)
    found = torch.einsum("hmn,pn->phm", wigner(degree, h), harmonics(degree, r[:, 0]))
    torch.testing.assert_close(found, harmonics(degree, torch.einsum("hij,pj->phi", h, r[:, 0])), rtol=0, atol=1e-10)


def test_they_are_representations() -> None:
    g, h = rotations(8).chunk(2)
    for degree in range(6):
        torch.testing.assert_close(wigner(degree, g @ h), wigner(degree, g) @ wigner(degree, h), rtol=0, atol=1e-12)
        eye = torch.eye(2 * degree + 1, dtype=X64)
        torch.testing.assert_close(wigner(degree, g) @ wigner(degree, g).mT, eye.expand(4, -1, -1), rtol=0, atol=1e-12)
    torch.testing.assert_close(wigner(1, g), g, rtol=0, atol=1e-12)


def test_e3nn_has_the_same() -> None:
    o3 = pytest.importorskip("e3nn.o3")
    for degree in range(6):
        expected = o3.Irrep(degree, 1).D_from_matrix(rotations(5))
        # Angles of Euler, which e3nn goes through, cost it digits: 1.2e-6 with e3nn 0.6.0.
        torch.testing.assert_close(wigner(degree, rotations(5)), expected, rtol=0, atol=1e-5)
    to = ToIrreps(CUBE, 1)
    assert (o3.Irreps(to.irreps) * 3).dim == 3 * to.coefficients


@exactly
def test_coefficients_lead_to_the_function_and_back(grid: ls.Grid, l_max: int) -> None:
    to, back = ToIrreps(grid, l_max).double(), FromIrreps(grid, l_max).double()
    coefficients = torch.randn(2, 3, to.coefficients, 4, 2, dtype=X64)
    function = back(coefficients)
    assert function.shape == (2, 3, len(grid), 4, 2)
    assert (to(function) - coefficients).abs().max() < 1e-10
    assert (back(to(function)) - function).abs().max() < 1e-10


def test_coefficients_are_those_of_plain_loops() -> None:
    x = torch.randn(1, 2, 24, 3, 3, 3, dtype=X64)
    found, at = ToIrreps(CUBE, 1).double()(x), 0
    for degree in range(2):
        for column in range(2 * degree + 1):
            for row in range(2 * degree + 1):
                right = torch.zeros(1, 2, 3, 3, 3, dtype=X64)
                for h, w, value in zip(CUBE.elements, CUBE.weights, x.unbind(2), strict=True):
                    right += w * value * wigner(degree, h)[row, column]
                torch.testing.assert_close(found[:, :, at], right, rtol=0, atol=1e-12)
                at += 1
    assert at == found.shape[2]


@exactly
def test_every_copy_rotates_with_its_irrep(grid: ls.Grid, l_max: int) -> None:
    """(L_g F)(h) = F(g⁻¹h) has the coefficients D^l(g) F̂_l."""
    x, to = torch.randn(2, 3, len(grid), dtype=X64), ToIrreps(grid, l_max).double()
    for g in grid.elements[[1, len(grid) // 2]]:
        order = (
            grid.group.offset(grid.group.relative(g, grid.elements).unsqueeze(1), grid.elements).norm(dim=-1)
        ).argmin(1)
        moved, still = to(x[:, :, order]), to(x)
        at = 0
        for degree in range(l_max + 1):
            if isinstance(grid.group, ls.SO3):
                copies, matrix = 2 * degree + 1, wigner(degree, g)
            else:
                angle, copies = degree * float(g), 1
                turn = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
                matrix = torch.tensor(turn if degree else [[1.0]], dtype=X64)
            for _ in range(copies):
                part = slice(at, at + len(matrix))
                expected = torch.einsum("mn,bcn->bcm", matrix, still[:, :, part])
                torch.testing.assert_close(moved[:, :, part], expected, rtol=0, atol=1e-10)
                at += len(matrix)


def test_they_move_with_the_grid() -> None:
    to = ToIrreps(CUBE, 1).double()
    x, h = torch.randn(1, 2, 24, dtype=X64), rotations(1)[0]
    still = to(x)
    with ls.nn.shift(to, h):
        torch.testing.assert_close(to(x)[:, :, 1:4], still[:, :, 1:4] @ h.T, rtol=0, atol=1e-12)
    assert torch.equal(to(x), still)


def test_what_is_refused() -> None:
    assert ToIrreps(ICOSAHEDRON, 2).irreps == "1x0e+3x1e+5x2e"
    with pytest.raises(ValueError, match="l_max = 2 has 35 coefficients, more than 24 elements"):
        ToIrreps(CUBE, 2)
    with pytest.raises(ValueError, match=r"irreps of Scale.* are not known here, only those of SO2\(\)"):
        ToIrreps(ls.uniform(ls.Scale(2), 3, spacing=0.3), 1)
    with pytest.raises(ValueError, match=r"ToIrreps: x has shape \(1, 2, 8\); expected \(B, C, 24, \*space\)"):
        ToIrreps(CUBE, 1)(torch.zeros(1, 2, 8))
