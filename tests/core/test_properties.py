"""Random groups, grids, bases, windows, strides and paddings: the layers are the formulas, by every path."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import liespline as ls
from liespline import GConv, Lift, ops, testing
from strategies import FAMILIES, examples, grids, layers, naive, sized

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")

each_family = pytest.mark.parametrize("family", FAMILIES)


@each_family
@examples(10)
@given(data=st.data())
def test_made_groups_are_groups(family: str, data: st.DataObject) -> None:
    testing.check_group(data.draw(FAMILIES[family]), n=40, radius=0.7)


@each_family
@examples(15)
@given(data=st.data())
def test_lift_is_the_formula(family: str, data: st.DataObject) -> None:
    layer = data.draw(layers(Lift, family))
    x = sized(data.draw, layer)
    close(layer(x), naive(layer, x))


@each_family
@examples(15)
@given(data=st.data())
def test_gconv_is_the_formula(family: str, data: st.DataObject) -> None:
    layer = data.draw(layers(GConv, family))
    x = sized(data.draw, layer, extra=2)
    close(layer(x), naive(layer, x))


@each_family
@examples(10)
@given(data=st.data())
def test_projection_is_the_weighted_integral(family: str, data: st.DataObject) -> None:
    grid = data.draw(FAMILIES[family].flatmap(grids))
    x = np.random.default_rng(data.draw(st.integers(0, 2**16))).normal(size=(2, 3, len(grid), 2, 3))
    w = grid.weights.numpy()
    integral = sum(w[h] * x[:, :, h] for h in range(len(grid)))
    expected = {"sum": integral, "mean": integral / w.sum(), "max": x.max(2)}
    for reduce, truth in expected.items():
        close(ls.Project(reduce, grid).double()(torch.from_numpy(x)), truth)


@each_family
@examples(15)
@given(data=st.data())
def test_every_path_is_dense(family: str, data: st.DataObject) -> None:
    layer = data.draw(layers(GConv, family))
    x = sized(data.draw, layer).requires_grad_()
    inputs = [x, *layer.parameters()]

    def outcome(name: str) -> list[torch.Tensor]:
        with ops.use(name):
            out = layer(x)
        direction = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)
        return [out, *torch.autograd.grad(out, inputs, direction, materialize_grads=True)]

    truth = outcome("dense")
    for name in ("banded", "separable", "fourier", "auto"):
        for found, right in zip(outcome(name), truth, strict=True):
            close(found, right.detach().numpy())


def close(found: torch.Tensor, truth: np.ndarray) -> None:
    size = max(1.0, float(np.abs(truth).max(initial=0)))
    np.testing.assert_allclose(found.detach().numpy(), truth, rtol=0, atol=1e-10 * size, equal_nan=False)
