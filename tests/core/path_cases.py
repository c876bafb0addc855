"""Random layers for the tests of the paths, and the sum they compute, written out in float64."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F


@dataclass
class Case:
    """One call of `functional.correlate`: its tensors and its options."""

    x: Tensor
    weight: Tensor
    x_samples: Tensor
    h_samples: Tensor
    sizes: tuple[tuple[int, ...], ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.x, self.weight, self.x_samples, self.h_samples

    @property
    def options(self) -> dict[str, tuple]:
        return {"sizes": self.sizes, "stride": self.stride, "padding": self.padding}


def naive(case: Case) -> Tensor:
    """Σ over taps, one at a time, of the definition in `functional.correlate`."""
    x_samples = case.x_samples * _inside(case)
    kernel = torch.einsum("ocij,am...i,ambj->oacb...", case.weight, x_samples, case.h_samples)
    window = kernel.shape[4:]
    x = F.pad(case.x, [p for n in reversed(case.padding) for p in (n, n)]) if window else case.x
    out: Tensor | float = 0.0
    for tap in itertools.product(*(range(k) for k in window)):
        seen = x
        for axis, (first, k, s) in enumerate(zip(tap, window, case.stride, strict=True), start=3):
            length = (x.shape[axis] - k) // s + 1
            index = torch.arange(length) * s + first
            seen = seen.index_select(axis, index)
        out = out + torch.einsum("oacb,ncb...->noa...", kernel[(..., *tap)], seen)
    assert isinstance(out, Tensor)
    return out


def _inside(case: Case) -> Tensor:
    """One in each element's own window, zero around it: (A, 1, *W, 1)."""
    largest = case.x_samples.shape[2:-1]
    inside = torch.zeros(len(case.sizes), 1, *largest, 1, dtype=torch.float64)
    for a, size in enumerate(case.sizes):
        own = (slice((k - s) // 2, (k + s) // 2) for k, s in zip(largest, size, strict=True))
        inside[(a, 0, *own)] = 1
    return inside


def banded_samples(elements: int, n_in: int, n_k: int, reach: int, cyclic: bool) -> Tensor:
    """(A, 1, N_in, N_k): as of a local basis, `reach` terms a column, from element a's own place plus j on."""
    profile = torch.rand(reach, dtype=torch.float64) + 0.1
    samples = torch.zeros(elements, 1, n_in, n_k, dtype=torch.float64)
    for a, j, t in itertools.product(range(elements), range(n_k), range(reach)):
        b = a * n_in // elements + j + t
        if cyclic or b < n_in:
            samples[a, 0, b % n_in, j] += profile[t]
    return samples


def assert_same(found: Tensor, right: Tensor, leaves: Sequence[Tensor], tolerance: float = 1e-11) -> None:
    """Values agree, and so do the gradients by the leaves for a random one at the output."""
    torch.testing.assert_close(found, right, rtol=tolerance, atol=tolerance)
    direction = torch.randn_like(right)
    slopes = (torch.autograd.grad(y, leaves, direction) for y in (found, right))
    torch.testing.assert_close(*slopes, rtol=tolerance, atol=tolerance)


@st.composite
def cases(draw: st.DrawFn, quotient: bool = False, low_rank: bool = False, most: int = 5) -> Case:
    """Odd channel counts, N_h of any size, N_k even and odd, windows that differ, stride, padding, several grids."""
    torch.manual_seed(draw(st.integers(0, 2**16)))
    dims = draw(st.integers(2 if low_rank else 0, 3))
    batch, channels, outputs = draw(st.integers(1, 2)), draw(st.integers(1, most)), draw(st.integers(1, most))
    elements, n_in = draw(st.integers(1, 6)), draw(st.integers(1, 7))
    n_x, n_k = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    parity = draw(st.integers(0, 1))
    widest = {0: 1, 1: 7, 2: 5, 3: 3}[dims]
    choices = st.sampled_from([k for k in range(1, widest + 1) if k % 2 == parity] or [1])
    per_element = draw(st.booleans())
    one = tuple(draw(choices) for _ in range(dims))
    sizes = tuple(tuple(draw(choices) for _ in range(dims)) if per_element else one for _ in range(elements))
    largest = tuple(max(size[axis] for size in sizes) for axis in range(dims))
    x_samples = torch.randn(elements, 1, *largest, n_x, dtype=torch.float64)
    if low_rank:  # along the first axis, one vector for all the rest
        x_samples = x_samples[:, :, :1] * torch.randn(elements, 1, largest[0], *(1,) * dims, dtype=torch.float64)
    h_samples = banded_samples(elements, n_in, n_k, draw(st.integers(1, 3)), draw(st.booleans()))
    if quotient:
        m = draw(st.integers(1, 3))
        x_samples = x_samples * torch.randn(elements, m, *(1,) * dims, n_x, dtype=torch.float64)
        h_samples = torch.randn(elements, m, n_in, n_k, dtype=torch.float64)
    padding = tuple(draw(st.integers(0, 3)) for _ in range(dims))
    stride = tuple(draw(st.integers(1, 3)) for _ in range(dims))
    space = [max(k - 2 * p, 1) + draw(st.integers(0, 5)) for k, p in zip(largest, padding, strict=True)]
    x = torch.randn(batch, channels, n_in, *space, dtype=torch.float64)
    weight = torch.randn(outputs, channels, n_x, n_k, dtype=torch.float64)
    case = Case(x, weight, x_samples, h_samples, sizes, stride, padding)
    case.x_samples = x_samples * _inside(case)
    return case
