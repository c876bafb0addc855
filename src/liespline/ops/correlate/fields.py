"""Few blocks instead of the whole kernel: each output group is correlated in space with the fields it reads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from ..._check import Size
from ..mix.reference import mix, mixer
from ..path import Choice, Path
from ..plan import Keep, Part, Plan, crop, kept
from . import whole
from .reference import kernel


def correlate(
    x: Tensor, weight: Tensor, x_samples: Tensor, h_samples: Tensor, *,
    plan: Plan, choice: Choice, stride: Size, padding: Size, keep: bool,
) -> Tensor:  # fmt: skip
    """Sum over the fields that count: out_a = Σ_f K[a,f] ⋆ field_f, cost A·N_k rather than A·N_in.

    x (B, C, N_in, *space), weight (O, C, N_x, N_k), x_samples (A, 1, *W, N_x), h_samples (A, 1, N_in, N_k)
    -> (B, O, A, *space). A path for each part of the plan; `keep` what is made of the samples for the next time.
    """
    keeping: Keep = partial(kept, plan) if keep else made
    fields = x
    if plan.rows is not None:
        wide, order, dtype = x.shape[1], choice.order, x.dtype
        rows = keeping(("rows", wide, order, dtype), partial(mixer, h_samples, plan.rows, wide, order, dtype))
        fields = mix(x, rows, order)  # (B, C, R, *space)
    parts = []
    for part, path in zip(plan.parts, choice.paths, strict=True):
        near, border = whole.fit(fields, tuple(x_samples.shape[2:-1]), part.window, padding)
        own = blocks(weight, x_samples, h_samples, plan, part, choice.group, path, keep)
        parts.append(path.correlate(near, own, part, choice.group, stride, border, keeping))
    out = parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)
    return out if plan.order is None else out.index_select(2, plan.order)


def made(key: object, make: Callable[[], Tensor]) -> Tensor:
    """Keep nothing."""
    return make()


def blocks(
    weight: Tensor, x_samples: Tensor, h_samples: Tensor, plan: Plan, part: Part, group: int, path: Path, keep: bool
) -> Tensor:
    """Return the kernel's blocks (O, A_p, C, width, *window), the first axis of the window reduced if separated."""
    make = partial(_of_part, x_samples, h_samples, plan, part, group, path.separated)
    key = part, group, path.name
    samples = kept(plan, (*key, weight.dtype), make) if keep else make()
    if keep and not path.channels_last:
        return whole.kept_kernel(weight, *samples, plan, key, True)
    return kernel(weight, *samples, channels_last=True)


def _of_part(
    x_samples: Tensor, h_samples: Tensor, plan: Plan, part: Part, group: int, separated: bool
) -> tuple[Tensor, Tensor]:
    """Return samples (A_p, 1, *window, N_x), and the fields' coefficients in the blocks (A_p, 1, width, N_k)."""
    x_samples, h_samples, labels = x_samples[:, 0], h_samples[:, 0], plan.labels
    if len(plan.parts) > 1:
        x_samples, h_samples, labels = (t.index_select(0, part.members) for t in (x_samples, h_samples, labels))
    x_samples = crop(x_samples, 1, part.window)
    if separated:
        assert part.basis is not None
        x_samples = torch.einsum("ayr,ay...->ar...", part.basis.to(x_samples.dtype), x_samples)
    lines = part.tables[group - 1].fields
    lines = lines.repeat_interleave(group, 0) if group > 1 else lines  # (A_p, width)
    chosen = (lines[:, :, None] == labels[:, None, :]).to(x_samples.dtype)  # (A_p, width, N_k)
    if plan.rows is None:
        chosen = chosen * h_samples.gather(1, lines[..., None].expand_as(chosen))
    return x_samples[:, None], chosen[:, None]
