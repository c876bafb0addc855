"""Mixing over a finite group by blocks: Σd³ products instead of N² for each pair of channels.

A kernel w(h⁻¹h̃) at a single sample commutes with translations of H, so that in the basis of the plan's `waves` it has
the blocks of the irreps alone: for the 24 rotations of the cube 64 numbers of 576, for 16 rotations 30 of 256. Exact
where the elements are a group and the window is one sample, and for nothing else.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from ..path import Path, Question
from ..plan import Keep, Plan

_MOVE = 40.0  # the price of a number that is moved, fitted to twenty layers
_LAUNCH = 1e6  # that of one product of blocks, over all samples


def price(q: Question, plan: Plan) -> float | None:
    """Both changes of basis, the blocks, and the numbers that are moved; on a CPU, of single samples."""
    if plan.waves is None or q.cuda or max(q.stride, default=1) > 1 or any(q.padding):
        return None
    channels, n = q.inputs[0] + q.outputs, q.inputs[1]
    products = q.inputs[0] * q.outputs * sum(size**2 for size in plan.blocks)
    launch = 0.0 if q.traced else _LAUNCH * len(set(plan.blocks)) / max(q.batch * math.prod(q.size), 1)
    return products + channels * n * (n + _MOVE) + launch


def correlate(x: Tensor, weight: Tensor, x_samples: Tensor, h_samples: Tensor, plan: Plan, keep: Keep) -> Tensor:
    """Mix x (B, C, N, *space) with weight (O, C, N_x, N_k), by x_samples (N, 1, *1, N_x), h_samples (N, 1, N, N_k)."""
    assert plan.waves is not None
    waves, outputs, elements = plan.waves.to(x.dtype), len(weight), x.shape[2]
    fields = x.movedim(2, 0).transpose(1, 2)  # (N, C, B, *space)
    spectra = waves.T @ fields.reshape(elements, -1)
    coefficients = torch.tensordot(weight, x_samples[0].flatten(), dims=([2], [0])).flatten(0, 1)  # (O·C, N_k)
    first, parts = 0, []
    for size in sorted(set(plan.blocks)):
        count = sum(block == size for block in plan.blocks)  # tuple.count breaks the graph in torch 2.6
        make = partial(_of_size, h_samples, plan.waves, first, count, size)
        samples = keep(("blocks", size, weight.dtype), make)  # (N_k, count·d·d)
        kernel = (coefficients @ samples).view(outputs, -1, count, size, size).permute(2, 3, 0, 4, 1)
        kernel = kernel.reshape(count, size * outputs, -1).to(x.dtype)
        own = spectra.narrow(0, first, count * size).view(count, kernel.shape[2], -1)
        parts.append(torch.bmm(kernel, own).view(count * size, -1))
        first += count * size
    out = (waves @ torch.cat(parts)).view(elements, outputs, *fields.shape[2:])
    return out.transpose(1, 2).movedim(0, 2)


PATH = Path("blocks", lambda _: None, correlate)


def _of_size(h_samples: Tensor, waves: Tensor, first: int, count: int, size: int) -> Tensor:
    """Return the blocks of one size of the samples (N, 1, N, N_k), as (N_k, count·d·d)."""
    own = waves[:, first : first + count * size].to(h_samples.dtype).unflatten(1, (count, size))
    return torch.einsum("akp,abj,bkq->jkpq", own, h_samples[:, 0], own).flatten(1)
