"""Random groups, grids, bases and layers for Hypothesis, small enough that naive loops keep up."""

import copy
import math

import numpy as np
import torch
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st

import liespline as ls
import oracle
from liespline import GConv, Grid, Group, Lift, SplineBasis
from own_group import AROUND, CROSS, J, Triangular

_PLANES: list[Group] = [ls.SO2(), ls.Scale(2), Triangular()]
_VOLUMES: list[Group] = [ls.SO3(), ls.Scale(3)]
_ALGEBRAS = [[J], [np.eye(2)], [np.eye(2), J], [np.diag((1.0, 0)), np.diag((0.0, 1)), np.eye(2, k=1)], CROSS, AROUND]
MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap", "disc": "disc"}


def examples(n: int) -> settings:
    """Say how many, and what else holds in the long run too, which takes Hypothesis' own profile and other seeds."""
    unhurried = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    return settings(max_examples=n, deadline=None, suppress_health_check=unhurried)


@st.composite
def matrix_groups(draw: st.DrawFn) -> Group:
    """A group of matrices in coordinates well away from singular: a rotation times a stretching by at most 1.5."""
    generators = np.asarray(draw(st.sampled_from(_ALGEBRAS)))
    d = generators.shape[-1]
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    left, _ = np.linalg.qr(rng.normal(size=(d, d)))
    coordinates = left * rng.uniform(0.8, 1.25, d)
    return ls.MatrixGroup(torch.from_numpy(coordinates @ generators @ np.linalg.inv(coordinates)))


FAMILIES: dict[str, st.SearchStrategy[Group]] = {
    "trivial": st.sampled_from([ls.Trivial(d) for d in (1, 2, 3)]),
    "turns of the plane": st.just(ls.SO2()),
    "scalings": st.sampled_from([ls.Scale(d) for d in (1, 2, 3)]),
    "turns of space": st.just(ls.SO3()),
    "sphere": st.just(ls.Sphere()),
    "triangular": st.just(Triangular()),
    "of matrices": matrix_groups(),
    "with mirror images": st.sampled_from([ls.O2(), ls.O3(), ls.Product(ls.O2(), ls.Scale(2))]),
    "GL2": st.just(ls.GL2()),
    "times scalings": st.one_of(st.sampled_from(_PLANES + _VOLUMES), matrix_groups()).map(
        lambda group: ls.Product(group, ls.Scale(group.space_dim))
    ),
}


@st.composite
def grids(draw: st.DrawFn, group: Group, most: int = 5) -> Grid:
    """Uniform where the group has such a grid, about the identity, or anywhere with any weights."""
    n = draw(st.integers(1, most))
    spacing = draw(st.sampled_from([0.3, 0.5 * math.log(2), 0.8]))
    kind = draw(st.sampled_from(["uniform", "local", "random"]))
    if isinstance(group, ls.Trivial):
        return ls.uniform(group, 1)
    if isinstance(group, ls.Sphere):
        return ls.uniform(group, draw(st.sampled_from([4, 6])))
    if kind == "uniform" and isinstance(group, ls.SO2):
        return ls.uniform(group, n)
    if kind == "uniform" and isinstance(group, ls.Scale):
        return ls.uniform(group, min(n, 3), spacing=min(spacing, 0.5))
    if kind == "local" and 2 * group.dim + 1 <= most:
        return ls.local(group, draw(st.sampled_from([1, 2 * group.dim + 1])), min(spacing, 0.5))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    h = group.exp(torch.from_numpy(rng.uniform(-0.6, 0.6, (n, group.dim))))
    parts = group.representatives(dtype=h.dtype)
    if len(parts) > 1:
        h = group.product(h, parts[rng.integers(len(parts), size=n)])
    return Grid(group, h, torch.from_numpy(rng.uniform(0.2, 2, n)), spacing)


@st.composite
def h_bases(draw: st.DrawFn, grid: Grid) -> SplineBasis:
    """Dense, local, atrous or with centres off the grid, of degree 1 to 4, wider or narrower than the grid's step."""
    options = {"degree": draw(st.integers(1, 4)), "trainable": draw(st.sampled_from([False, False, True]))}
    group = grid.group
    kind = draw(st.sampled_from(["dense", "local", "atrous", "moved"])) if group.dim else "dense"
    if kind == "dense":
        wider = draw(st.sampled_from([1.0, 0.8, 1.5]))
        return SplineBasis(grid, scale=tuple(wider * step for step in grid.steps) or grid.spacing, **options)
    if kind == "local":
        n = draw(st.sampled_from([1, 2, 3] if group.dim == 1 else [1, 2 * group.dim + 1]))
        return SplineBasis(ls.local(group, n, grid.spacing), **options)
    if kind == "moved":
        noise = np.random.default_rng(draw(st.integers(0, 2**16))).normal(size=(len(grid), group.dim))
        centres = group.product(grid.elements, group.exp(torch.from_numpy(0.2 * noise) * torch.tensor(grid.steps)))
        return SplineBasis(Grid(group, centres, grid.weights, grid.spacing), **options)
    return SplineBasis(Grid(group, grid.elements[::2], grid.weights[::2], grid.spacing), grid.spacing, **options)


@st.composite
def x_bases(draw: st.DrawFn, d: int) -> SplineBasis | None:
    """The default, a disc, a lattice with holes, or centres anywhere."""
    options = {"degree": draw(st.integers(1, 4)), "trainable": draw(st.sampled_from([False, False, True]))}
    match draw(st.sampled_from(["default", "disc", "atrous", "random"])):
        case "default":
            return None
        case "disc":
            return SplineBasis(ls.disc(draw(st.integers(1, 3 if d < 3 else 2)), d), **options)
        case "atrous":
            return SplineBasis(ls.lattice(d, 2, spacing=2.0), scale=1.0, **options)
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    n = draw(st.integers(1, 4))
    centres = Grid(ls.Translation(d), torch.from_numpy(rng.uniform(-1.2, 1.2, (n, d))), torch.ones(n), 1.0)
    return SplineBasis(centres, scale=draw(st.sampled_from([1.0, 1.4])), **options)


@st.composite
def options(draw: st.DrawFn, d: int) -> dict[str, object]:
    """Window, stride and padding, which may differ between axes."""
    kernel = tuple(draw(st.integers(1, {1: 6, 2: 4, 3: 3}[d])) for _ in range(d))
    stride = tuple(draw(st.sampled_from([1, 1, 2, 3])) for _ in range(d))
    same = draw(st.booleans()) and set(stride) == {1}
    return {
        "kernel_size": kernel,
        "stride": stride,
        "padding": "same" if same else tuple(draw(st.integers(0, 2)) for _ in range(d)),
        "padding_mode": draw(st.sampled_from(["zeros", "zeros", *MODES])),
        "bias": draw(st.booleans()),
    }


@st.composite
def layers(draw: st.DrawFn, kind: type, family: str) -> Lift | GConv:
    """A layer in float64 on a group of a family, its bias not zero."""
    torch.manual_seed(draw(st.integers(0, 2**16)))
    grid = draw(grids(draw(FAMILIES[family])))
    d = grid.group.space_dim
    given = {"x_basis": draw(x_bases(d)), "dtype": torch.float64, **draw(options(d))}
    channels = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    if kind is GConv:
        other = None if grid.group.quotient_of or draw(st.booleans()) else draw(grids(grid.group))
        given |= {"h_basis": draw(h_bases(grid)), "out_grid": other}
    layer = built(kind, *channels, grid=grid, **given)
    if layer.bias is not None:
        torch.nn.init.normal_(layer.bias)
    return layer


def built(kind: type, *channels: int, **given: object) -> Lift | GConv:
    """The layer, unless its splines reach no sample: layers refuse that, and say so."""
    try:
        return kind(*channels, **given)
    except ValueError as refused:
        assume("no spline of" not in str(refused))
        raise


def sized(draw: st.DrawFn, layer: Lift | GConv, extra: int = 4) -> torch.Tensor:
    """An input at least as large as the layer's window, and as its padding where that mirrors or repeats."""
    before, after = layer.window.borders(layer.padding)
    reach = [max(0, *both) for both in zip(before, after, strict=True)]
    least = [
        max(k - p - q, n + 1 if layer.padding_mode != "zeros" else 1, 1)
        for k, p, q, n in zip(layer.kernel_size, *layer.padding, reach, strict=True)
    ]
    space = [n + draw(st.integers(0, extra)) for n in least]
    lead = (layer.in_channels,) if isinstance(layer, Lift) else (layer.in_channels, len(layer.grid))
    return torch.randn(draw(st.integers(1, 2)), *lead, *space, dtype=torch.float64)


def naive(layer: Lift | GConv, x: torch.Tensor) -> np.ndarray:
    """What the layer computes, by the formulas in float64 loops, its padding filled by NumPy."""
    before, after = layer.window.borders(layer.padding)
    grown = tuple((w - k) // 2 for w, k in zip(layer.window.largest, layer.kernel_size, strict=True))
    lead = x.ndim - len(grown)
    wide = [(max(p, 0), max(q, 0)) for p, q in zip(before, after, strict=True)]
    ends = MODES[layer.padding_mode]
    if ends == "disc":
        padded = oracle.disc_pad(x.numpy(), wide)
    else:
        padded = np.pad(x.numpy(), [(0, 0)] * lead + wide, mode=ends)  # type: ignore[call-overload]
    cut = [slice(max(-p, 0), n - max(-q, 0)) for p, q, n in zip(before, after, padded.shape[lead:], strict=True)]
    ready = copy.copy(layer)
    ready.padding = tuple(-g for g in grown), tuple(-g for g in grown)  # all of it is done
    return oracle.correlate(ready, padded[(..., *cut)], oracle.kernel(layer))
