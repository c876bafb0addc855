"""Initialisation: activations keep their size through ten layers, whatever the group and the kernel."""

import math
import statistics

import pytest
import torch

import liespline as ls
from liespline import SplineBasis
from liespline.nn import SeparableGConv
from networks import TURNS

SO2, SCALE = ls.uniform(ls.SO2(), 8), ls.uniform(ls.Scale(2), 4, spacing=0.5 * math.log(2))
KERNELS = {
    "dense": lambda: (SO2, SplineBasis(SO2)),
    "four": lambda: (TURNS, SplineBasis(TURNS)),
    "few and wide": lambda: (SO2, SplineBasis(ls.uniform(ls.SO2(), 4))),
    "local": lambda: (SO2, SplineBasis(ls.local(ls.SO2(), 3, SO2.spacing))),
    "atrous": lambda: (SO2, SplineBasis(ls.uniform(ls.SO2(), 4), scale=SO2.spacing)),
    "deformable": lambda: (SO2, SplineBasis(ls.local(ls.SO2(), 3, SO2.spacing), trainable=True)),
    "scale dense": lambda: (SCALE, SplineBasis(SCALE)),
    "scale local": lambda: (SCALE, SplineBasis(ls.local(ls.Scale(2), 3, SCALE.spacing))),
    "trivial": lambda: (ls.uniform(ls.Trivial(2), 1), None),
    "sphere": lambda: (ls.uniform(ls.Sphere(), 6), None),
    "SO(3)": lambda: (ls.uniform(ls.SO3(), 12), None),
}


def growth(kernel: str, seed: int, kind: type = ls.GConv) -> float:
    """Standard deviation after ten layers and ReLUs, over the input's."""
    torch.manual_seed(seed)
    grid, basis = KERNELS[kernel]()
    d = grid.group.space_dim
    size, window = (9, 5) if d == 2 else (6, 3)
    x = torch.randn(2, 32, len(grid), *[size] * d)
    before = x.std()
    for _ in range(10):
        layer = kind(32, 32, window, grid, h_basis=basis, padding="same", padding_mode="circular")
        x = torch.relu(layer(x)).detach()
    return float(x.std() / before)


@pytest.mark.filterwarnings("ignore:.*energy falls outside")
@pytest.mark.parametrize(
    ("kind", "kernel"),
    [*((ls.GConv, kernel) for kernel in KERNELS), *((SeparableGConv, k) for k in ("dense", "four", "SO(3)"))],
)
def test_ten_layers_keep_the_size_of_activations(kind: type, kernel: str) -> None:
    assert 0.5 < statistics.median(growth(kernel, seed, kind) for seed in range(3)) < 2


@pytest.mark.parametrize(
    ("elements", "centre"),
    [([1.0, 4.0], 1.0), ([1.0, 2.0], 2.0)],
    ids=["an element that reads itself alone", "an element that reads nothing"],
)
def test_coefficients_are_finite_where_elements_read_little(elements: list[float], centre: float) -> None:
    """With a spline one step up, scale 1 reads scale 2, which reads nothing: a second such layer is all zero."""
    grid = ls.Grid(ls.Scale(2), torch.tensor(elements).unsqueeze(-1), torch.ones(2), math.log(2))
    other = ls.Grid(ls.Scale(2), torch.tensor([[0.25], [1.0]]), torch.ones(2), math.log(2))
    basis = SplineBasis(ls.Grid(ls.Scale(2), torch.tensor([[centre]]), torch.ones(1), 0.3), degree=1)
    for out_grid in (grid, other):
        layer = ls.GConv(4, 4, 5, grid, out_grid=out_grid, h_basis=basis)
        assert bool(layer.weight.isfinite().all())
        assert bool(layer.weight.any())
