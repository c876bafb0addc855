"""The Fourier path against torch's own convolution: numbers, gradients, memory, and when it is taken."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from liespline import ops
from liespline.ops import choose
from liespline.ops.correlate import fourier

from .path_cases import assert_same

EXACT = {"rtol": 1e-11, "atol": 1e-11}


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor, tuple[int, int]]:
    """An image, a kernel and a padding, of any shapes that have an output."""
    sizes = st.integers(1, 6)
    window = draw(st.tuples(sizes, sizes))
    padding = draw(st.tuples(*(st.integers(0, k + 1) for k in window)))
    space = [draw(st.integers(max(1, k - 2 * p), k - 2 * p + 30)) for k, p in zip(window, padding, strict=True)]
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    batch, inputs, outputs = draw(st.tuples(st.integers(1, 3), sizes, sizes))
    x = torch.randn(batch, inputs, *space, dtype=torch.float64, generator=generator)
    return x, torch.randn(outputs, inputs, *window, dtype=torch.float64, generator=generator), padding


@settings(deadline=None, max_examples=100)
@given(convolutions())
def test_it_is_the_convolution(drawn: tuple[torch.Tensor, torch.Tensor, tuple[int, int]]) -> None:
    x, weight, padding = drawn
    x.requires_grad_()
    weight.requires_grad_()
    assert_same(fourier.correlate(x, weight, padding), F.conv2d(x, weight, None, 1, padding), (x, weight))


@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 5), (8, 3), (9, 4), (14, 5), (23, 5), (32, 20)])
def test_an_algorithm_is_a_correlation_with_few_products(n: int, k: int) -> None:
    algorithm = fourier.algorithm(n, k, torch.float64)
    assert len(algorithm.from_x) == fourier._rank(n) <= max(1, math.ceil(1.5 * n))
    x, w = torch.randn(n, dtype=torch.float64), torch.randn(k, dtype=torch.float64)
    right = torch.stack([(x[i : i + k] * w).sum() for i in range(n - k + 1)])
    torch.testing.assert_close(algorithm.to_y @ ((algorithm.from_x @ x) * (algorithm.from_w @ w)), right, **EXACT)


def test_many_images_are_computed_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = torch.randn(7, 2, 12, 12, dtype=torch.float64), torch.randn(3, 2, 5, 5, dtype=torch.float64)
    x.requires_grad_()
    weight.requires_grad_()
    monkeypatch.setattr(fourier, "_MOST", 3 * 17 * 12 * 2 * 3)
    tiles = fourier.cheapest(7, 2, 3, (8, 8), (5, 5))[1]
    assert 1 <= fourier._at_once(7, tiles, 3) < 7
    assert_same(fourier.correlate(x, weight, (0, 0)), F.conv2d(x, weight), (x, weight))


def test_higher_derivatives_forward_derivatives_and_vmap() -> None:
    x, weight = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((1, 2, 5, 6), (2, 2, 3, 2)))

    def correlate(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return fourier.correlate(x, weight, (1, 0))

    torch.autograd.gradcheck(correlate, (x, weight), check_forward_ad=True)
    torch.autograd.gradgradcheck(correlate, (x, weight))
    several = torch.randn(3, 1, 2, 5, 6, dtype=torch.float64)
    found = torch.func.vmap(lambda one: correlate(one, weight))(several)
    torch.testing.assert_close(found, torch.stack([F.conv2d(one, weight, None, 1, (1, 0)) for one in several]), **EXACT)


def test_single_precision_loses_no_more_than_a_convolution_does() -> None:
    x, weight = torch.randn(2, 60, 42, 42), torch.randn(60, 60, 5, 5)
    right = F.conv2d(x.double(), weight.double())
    assert (fourier.correlate(x, weight, (0, 0)) - right).abs().max() < 2e-6 * right.abs().max()


def large() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty(8, 132, 42, 42), torch.empty(132, 132, 5, 5)


def takes(x: torch.Tensor, weight: torch.Tensor, stride: tuple[int, int], padding: tuple[int, int]) -> bool:
    """Whether the convolution of an image goes this way: an element's kernel is a weight without H."""
    (method,) = choose.choose(x, weight, (tuple(weight.shape[2:]),), stride, padding).methods
    return method == "fourier"


def test_it_is_taken_where_it_pays() -> None:
    x, weight = large()
    assert takes(x, weight, (1, 1), (0, 0))
    assert not takes(x, weight, (2, 1), (0, 0))
    assert not takes(x.bfloat16(), weight.bfloat16(), (1, 1), (0, 0))
    assert not takes(x[:, :8], weight[:8, :8], (1, 1), (0, 0))  # few channels: transforms cost more
    assert not takes(x, weight[..., :1, :1], (1, 1), (0, 0))
    assert not takes(x[..., :5, :5], weight, (1, 1), (0, 0))  # one output
    assert not takes(x[:0], weight, (1, 1), (0, 0))
    with ops.use("dense"):
        assert not takes(x, weight, (1, 1), (0, 0))
    with ops.use("fourier"):
        assert takes(x[:, :8], weight[:8, :8], (1, 1), (0, 0))
    with FakeTensorMode() as mode:
        assert not takes(mode.from_tensor(x), mode.from_tensor(weight), (1, 1), (0, 0))
    with torch.autocast("cpu", torch.bfloat16):
        assert not takes(x, weight, (1, 1), (0, 0))


@pytest.mark.parametrize("alone", [0, 1])
def test_either_operand_may_be_the_only_one_with_a_gradient(alone: int) -> None:
    """As in a first layer, whose images have none."""
    operands = [torch.randn(2, 3, 9, 8, dtype=torch.float64), torch.randn(4, 3, 5, 3, dtype=torch.float64)]
    operands[alone].requires_grad_()
    found, right = (
        f(*operands)
        for f in (lambda x, w: fourier.correlate(x, w, (2, 1)), lambda x, w: F.conv2d(x, w, padding=(2, 1)))
    )
    grad = torch.randn_like(right)
    (found_grad,), (right_grad,) = (torch.autograd.grad(out, operands[alone], grad) for out in (found, right))
    torch.testing.assert_close(found_grad, right_grad)
