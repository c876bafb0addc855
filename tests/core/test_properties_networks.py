"""Random networks: exactly equivariant under symmetries of the lattice, and the same once exported."""

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


def in_space(matrix: np.ndarray, x: Tensor) -> Tensor:
    """Move the last d axes, all of one size, by a signed permutation R of the axes: out[p] = x[R⁻¹p]."""
    n, d = x.shape[-1], len(matrix)
    p = np.stack(np.meshgrid(*[np.arange(n) - (n - 1) / 2] * d, indexing="ij"), -1)
    source = np.rint(p @ matrix + (n - 1) / 2).astype(int)
    return x[(..., *(torch.from_numpy(source[..., i]) for i in range(d)))]


def of_features(matrix: np.ndarray, x: Tensor, grid: Grid) -> Tensor:
    """Move a feature map by R, which carries the grid to itself: out(p, h) = x(R⁻¹p, R⁻¹h)."""
    elements = grid.elements.numpy()
    points = isinstance(grid.group, ls.Sphere)
    as_matrix = elements if points else np.stack([oracle.matrix(grid.group, h) for h in elements])
    back = np.stack([matrix.T @ m for m in as_matrix])
    gaps = np.abs(back[:, None] - as_matrix[None]).reshape(len(back), len(back), -1).max(-1)
    assert (gaps.min(1) < 1e-9).all()
    return in_space(matrix, x[:, :, torch.from_numpy(gaps.argmin(1))])


TURNS = [np.linalg.matrix_power(np.array([[0.0, -1.0], [1.0, 0.0]]), n) for n in (1, 2, 3)]
FLIPPED = [*TURNS, *(turn @ np.diag([1.0, -1.0]) for turn in TURNS)]
ZOOMED, BOTH = ls.Product(ls.SO2(), ls.Scale(2)), ls.Product(ls.O2(), ls.Scale(2))
OF_SPACE = [ls.uniform(group, n) for group, n in ((ls.SO3(), 12), (ls.SO3(), 24), (ls.O3(), 24), (ls.O3(), 48))]
# Grids, and the moves that carry each of them and the lattice to themselves.
SYMMETRIES: dict[str, list[tuple[Grid, list[np.ndarray]]]] = {
    "quarter turns": [(ls.uniform(ls.SO2(), n), TURNS) for n in (4, 8, 12, 16)],
    "quarter turns and flips": [(ls.uniform(ls.O2(), n), FLIPPED) for n in (8, 16)],
    "quarter turns and scales": [(ls.uniform(ZOOMED, (4, n), spacing=(None, 0.4)), TURNS) for n in (1, 2)],
    "quarter turns, flips and scales": [(ls.uniform(BOTH, (8, n), spacing=(None, 0.3)), FLIPPED) for n in (1, 2)],
    "cube": [(grid, list(grid.elements.numpy())) for grid in OF_SPACE[:2]],
    "cube with its mirror images": [(grid, list(grid.elements.numpy())) for grid in OF_SPACE[2:]],
    "cube on the sphere": [(ls.uniform(ls.Sphere(), n), list(OF_SPACE[1].elements.numpy())) for n in (6, 8)],
}


@pytest.mark.parametrize("symmetric", SYMMETRIES)
@examples(15)
@given(data=st.data())
def test_symmetries_of_the_lattice_are_exact(symmetric: str, data: st.DataObject) -> None:
    torch.manual_seed(data.draw(st.integers(0, 2**16)))
    grid, moves = data.draw(st.sampled_from(SYMMETRIES[symmetric]))
    matrix, d = data.draw(st.sampled_from(moves)), grid.group.space_dim
    k, stride, padding = (
        data.draw(st.integers(1, 5 - d + 1)),
        data.draw(st.integers(1, 2)),
        data.draw(st.integers(0, 1)),
    )
    size = k - 2 * padding + stride * data.draw(st.integers(1, 3))  # so that outputs lie evenly about the centre
    assume(size > 0)
    common = {"grid": grid, "dtype": torch.float64}
    first = built(Lift, 1, 2, kernel_size=k, stride=stride, padding=padding, x_basis=data.draw(x_bases(d)), **common)
    bases = {"x_basis": data.draw(x_bases(d)), "h_basis": data.draw(h_bases(grid))}
    kind = data.draw(st.sampled_from([GConv, GConv, SeparableGConv]))
    second = built(kind, 2, 2, kernel_size=data.draw(st.sampled_from([1, 3])), padding=1, **bases, **common)
    net = nn.Sequential(first, nn.ReLU(), second)
    x = torch.randn(1, 1, *[size] * d, dtype=torch.float64)
    with torch.no_grad():
        close(net(in_space(matrix, x)), of_features(matrix, net(x), grid))
        for reduce in ("max", "mean"):
            whole = nn.Sequential(net, ls.Project(reduce, grid).double())
            close(whole(in_space(matrix, x)), in_space(matrix, whole(x)))
        fields = nn.Sequential(net, ls.Project("vector", grid).double())
        rotated = torch.einsum("ij,bcj...->bci...", torch.from_numpy(matrix), in_space(matrix, fields(x)))
        close(fields(in_space(matrix, x)), rotated)


@pytest.mark.parametrize("family", FAMILIES)
@examples(12)
@given(data=st.data())
def test_export_is_the_network(family: str, data: st.DataObject) -> None:
    first = data.draw(layers(data.draw(st.sampled_from([Lift, GConv])), family))
    d = first.grid.group.space_dim
    bases = {"x_basis": data.draw(x_bases(d)), "h_basis": data.draw(h_bases(first.out_grid))}
    channels = first.out_channels, data.draw(st.integers(1, 3))
    second = built(GConv, *channels, kernel_size=1, grid=first.out_grid, padding=1, dtype=torch.float64, **bases)
    between: list[list[nn.Module]] = [
        [nn.ReLU()],
        [ls.nn.BatchNorm(channels[0]), nn.SiLU()],
        [nn.Dropout(0.5), ls.nn.MaxPool(1)],
        [nn.Softmax(2)],
    ]
    middle, reduce = data.draw(st.sampled_from(between)), data.draw(st.sampled_from(["max", "mean"]))
    last = ls.nn.BatchNorm(channels[1]), ls.Project(reduce, first.out_grid)
    net = stirred(nn.Sequential(first, *middle, second, *last).double())
    plain = export(net)
    assert not any(isinstance(module, Lift | GConv) for module in plain.modules())
    x = sized(data.draw, first)
    assert distance(net, plain, x) < 1e-10


def close(found: Tensor, right: Tensor) -> None:
    size = max(1.0, float(right.abs().max()))
    torch.testing.assert_close(found, right, rtol=0, atol=1e-10 * size)
