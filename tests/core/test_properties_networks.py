"""Random networks: exactly equivariant under symmetries of the lattice, and the same once exported."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor, nn

import liespline as ls
import oracle
from exported import distance, stirred
from liespline import GConv, Grid, Lift, export
from liespline.nn import SeparableGConv
from strategies import FAMILIES, built, examples, h_bases, layers, sized, x_bases

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")


@dataclass
class Symmetry:
    """A move that carries the lattice to itself and the grid to itself: a signed permutation of the axes."""

    grid: Grid
    matrix: np.ndarray

    def space(self, x: Tensor) -> Tensor:
        """Move the last d axes, all of one size, by indexing: out[p] = x[R⁻¹p]."""
        n, d = x.shape[-1], len(self.matrix)
        p = np.stack(np.meshgrid(*[np.arange(n) - (n - 1) / 2] * d, indexing="ij"), -1)
        source = np.rint(p @ self.matrix + (n - 1) / 2).astype(int)
        return x[(..., *(torch.from_numpy(source[..., i]) for i in range(d)))]

    def features(self, x: Tensor) -> Tensor:
        """Move a feature map: out(p, h) = x(R⁻¹p, R⁻¹h)."""
        group, elements = self.grid.group, self.grid.elements.numpy()
        points = isinstance(group, ls.Sphere)
        as_matrix = elements if points else np.stack([oracle.matrix(group, h) for h in elements])
        back = np.stack([self.matrix.T @ m for m in as_matrix])
        gaps = np.abs(back[:, None] - as_matrix[None]).reshape(len(back), len(back), -1).max(-1)
        assert (gaps.min(1) < 1e-9).all()
        return self.space(x[:, :, torch.from_numpy(gaps.argmin(1))])


QUARTER = np.array([[0.0, -1.0], [1.0, 0.0]])


@st.composite
def symmetries(draw: st.DrawFn, kind: str) -> Symmetry:
    turns = draw(st.integers(1, 3))
    match kind:
        case "quarter turns":
            return Symmetry(ls.uniform(ls.SO2(), draw(st.sampled_from([4, 8, 12, 16]))), _power(QUARTER, turns))
        case "quarter turns and flips":
            return Symmetry(ls.uniform(ls.O2(), draw(st.sampled_from([8, 16]))), _flipped(draw, turns))
        case "quarter turns, flips and scales":
            scales = draw(st.integers(1, 2))
            grid = ls.uniform(ls.Product(ls.O2(), ls.Scale(2)), (8, scales), spacing=(None, 0.3))
            return Symmetry(grid, _flipped(draw, turns))
        case "quarter turns and scales":
            group = ls.Product(ls.SO2(), ls.Scale(2))
            grid = ls.uniform(group, (4, draw(st.integers(1, 2))), spacing=(None, 0.4))
            return Symmetry(grid, _power(QUARTER, turns))
        case "cube":
            grid = ls.uniform(ls.SO3(), draw(st.sampled_from([12, 24])))
            return Symmetry(grid, draw(st.sampled_from(list(grid.elements.numpy()))))
        case "cube with its mirror images":
            grid = ls.uniform(ls.O3(), draw(st.sampled_from([24, 48])))
            return Symmetry(grid, draw(st.sampled_from(list(grid.elements.numpy()))))
    grid = ls.uniform(ls.Sphere(), draw(st.sampled_from([6, 8])))
    return Symmetry(grid, draw(st.sampled_from(list(ls.uniform(ls.SO3(), 24).elements.numpy()))))


def _power(matrix: np.ndarray, n: int) -> np.ndarray:
    return np.linalg.matrix_power(matrix, n)


def _flipped(draw: st.DrawFn, turns: int) -> np.ndarray:
    return _power(QUARTER, turns) @ np.diag([1.0, draw(st.sampled_from([1.0, -1.0]))])


KINDS = [
    "quarter turns",
    "quarter turns and flips",
    "quarter turns, flips and scales",
    "quarter turns and scales",
    "cube",
    "cube with its mirror images",
    "cube on the sphere",
]


@pytest.mark.parametrize("symmetric", KINDS)
@examples(15)
@given(data=st.data())
def test_symmetries_of_the_lattice_are_exact(symmetric: str, data: st.DataObject) -> None:
    torch.manual_seed(data.draw(st.integers(0, 2**16)))
    symmetry = data.draw(symmetries(symmetric))
    d = symmetry.grid.group.space_dim
    k, stride, padding = (
        data.draw(st.integers(1, 5 - d + 1)),
        data.draw(st.integers(1, 2)),
        data.draw(st.integers(0, 1)),
    )
    size = k - 2 * padding + stride * data.draw(st.integers(1, 3))  # so that outputs lie evenly about the centre
    assume(size > 0)
    common = {"grid": symmetry.grid, "dtype": torch.float64}
    first = built(Lift, 1, 2, kernel_size=k, stride=stride, padding=padding, x_basis=data.draw(x_bases(d)), **common)
    bases = {"x_basis": data.draw(x_bases(d)), "h_basis": data.draw(h_bases(symmetry.grid))}
    kind = data.draw(st.sampled_from([GConv, GConv, SeparableGConv]))
    second = built(kind, 2, 2, kernel_size=data.draw(st.sampled_from([1, 3])), padding=1, **bases, **common)
    net = nn.Sequential(first, nn.ReLU(), second)
    x = torch.randn(1, 1, *[size] * d, dtype=torch.float64)
    with torch.no_grad():
        close(net(symmetry.space(x)), symmetry.features(net(x)))
        for reduce in ("max", "mean"):
            whole = nn.Sequential(net, ls.Project(reduce, symmetry.grid).double())
            close(whole(symmetry.space(x)), symmetry.space(whole(x)))
        fields = nn.Sequential(net, ls.Project("vector", symmetry.grid).double())
        rotated = torch.einsum("ij,bcj...->bci...", torch.from_numpy(symmetry.matrix), symmetry.space(fields(x)))
        close(fields(symmetry.space(x)), rotated)


@pytest.mark.parametrize("family", FAMILIES)
@examples(12)
@given(data=st.data())
def test_export_is_the_network(family: str, data: st.DataObject) -> None:
    first = data.draw(layers(Lift, family))
    d = first.grid.group.space_dim
    bases = {"x_basis": data.draw(x_bases(d)), "h_basis": data.draw(h_bases(first.grid))}
    channels = first.out_channels, data.draw(st.integers(1, 3))
    second = built(GConv, *channels, kernel_size=1, grid=first.grid, padding=1, dtype=torch.float64, **bases)
    between: list[list[nn.Module]] = [
        [nn.ReLU()],
        [ls.nn.BatchNorm(channels[0]), nn.SiLU()],
        [nn.Dropout(0.5), ls.nn.MaxPool(1)],
        [nn.Softmax(2)],
    ]
    middle, reduce = data.draw(st.sampled_from(between)), data.draw(st.sampled_from(["max", "mean"]))
    last = ls.nn.BatchNorm(channels[1]), ls.Project(reduce, first.grid)
    net = stirred(nn.Sequential(first, *middle, second, *last).double())
    plain = export(net)
    assert not any(isinstance(module, Lift | GConv) for module in plain.modules())
    x = sized(data.draw, first)
    assert distance(net, plain, x) < 1e-10


def close(found: Tensor, right: Tensor) -> None:
    size = max(1.0, float(right.abs().max()))
    torch.testing.assert_close(found, right, rtol=0, atol=1e-10 * size)
