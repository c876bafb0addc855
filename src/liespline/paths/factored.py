"""A kernel on H as few blocks: pick or mix the fields each output element needs, then correlate them in space."""

from functools import partial

import torch
from torch import Tensor

from liespline.paths import banded, dense, separable, triton, windows
from liespline.paths.choice import Choice
from liespline.paths.plan import Plan, Route

Size = tuple[int, ...]


def correlate(
    x: Tensor,
    weight: Tensor,
    x_samples: Tensor,
    h_samples: Tensor,
    plan: Plan,
    choice: Choice,
    stride: Size,
    padding: Size,
) -> Tensor:
    """Sum over the fields that count: out_a = Σ_f K[a,f] ⋆ field_f, cost A·N_k rather than A·N_in.

    The arguments of `paths.correlate`, and what was chosen for each of the plan's parts.
    """
    route, dtype = choice.route, dense.accumulate_dtype(x, weight, x_samples, h_samples)
    keep = x.is_cuda and plan.fixed(x_samples, h_samples)  # made once, for launches are what a GPU waits for
    with torch.autocast(x.device.type, enabled=False):
        weight = weight.to(dtype)
        kernels = [
            _blocks(weight, x_samples[:, 0], h_samples[:, 0], plan, route, part, method, keep)
            for part, method in enumerate(choice.methods)
        ]
        rows = None
        if route.mixed:
            make = partial(_rows, h_samples[:, 0], plan.rows, dtype)
            rows = plan.kept(("rows", dtype), make) if keep else make()
    fields = x if rows is None else _mix(x, rows)  # (B, C, R, *space)
    parts = []
    for part, (method, kernel) in enumerate(zip(choice.methods, kernels, strict=True)):
        near, border = windows.fit(fields, tuple(x_samples.shape[2:-1]), plan.windows[part], padding)
        table = plan.table(route, part)
        match method:
            case "separable":
                size = near.shape[3], stride[0], border[0]
                make = partial(separable.toeplitz, plan.basis(part), *size)
                lines = plan.kept((part, *size), make) if keep else make()
                parts.append(separable.correlate(near, kernel, table, lines, stride, border))
            case "triton":
                parts.append(triton.gathered(near, kernel.to(x.dtype), table, stride, border))
            case _:
                parts.append(banded.grouped(near, kernel, table, stride, border))
    if len(parts) == 1:
        return parts[0]
    out = torch.cat(parts, dim=2)
    return out if plan.in_order else out.index_select(2, plan.order)


def _blocks(
    weight: Tensor, x_samples: Tensor, h_samples: Tensor, plan: Plan, route: Route, part: int, method: str, keep: bool
) -> Tensor:
    """The kernel's blocks on a part's fields: (O, A_p, C, width, *window), the first axis reduced if separable."""
    samples = partial(_of_part, x_samples, h_samples, plan, route, part, method, weight.dtype)
    matrix = plan.outer((route, part, method, weight.dtype), samples) if keep and method != "triton" else None
    if matrix is None:
        return dense.kernel(weight, *samples(), channels_last=True)
    window = plan.windows[part]
    window = (plan.ranks[part], *window[1:]) if method == "separable" else window
    return dense.kernel_at_once(weight, matrix, route.widths[part], window)


def _of_part(
    x_samples: Tensor, h_samples: Tensor, plan: Plan, route: Route, part: int, method: str, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """A part's samples (A_p, 1, *window, N_x), and their coefficients on the fields it reads (A_p, 1, width, N_k)."""
    x_samples, coefficients = x_samples.to(dtype), (plan.chosen if route.mixed else h_samples).to(dtype)
    if len(plan.windows) > 1:
        members = plan.members(part)
        coefficients, x_samples = coefficients.index_select(0, members), x_samples.index_select(0, members)
    x_samples = windows.crop(x_samples, 1, plan.windows[part])
    if method == "separable":
        x_samples = separable.project(x_samples, plan.basis(part).to(dtype))
    lines = plan.table(route, part).fields
    lines = lines.repeat_interleave(route.group, 0) if route.group > 1 else lines
    lines = lines[..., None].expand(-1, -1, coefficients.shape[2])
    return x_samples[:, None], coefficients.gather(1, lines)[:, None]


def _rows(h_samples: Tensor, rows: Tensor, dtype: torch.dtype) -> Tensor:
    """The distinct rows (R, N_in) of h_samples (A, N_in, N_k)."""
    return h_samples.to(dtype).transpose(1, 2).flatten(0, 1).index_select(0, rows)


def _mix(x: Tensor, rows: Tensor) -> Tensor:
    # (R, N_in) applied along H of (B, C, N_in, *space), as matrix products over whichever axes lie innermost.
    rows = rows.to(x.dtype)
    if x.stride(1) == 1:
        last = x.movedim(1, -1)  # (B, N_in, *space, C)
        return torch.matmul(rows, last.flatten(2)).view(len(x), -1, *last.shape[2:]).movedim(-1, 1)
    planes = x.flatten(3) if x.ndim > 3 else x[..., None]
    return torch.matmul(rows, planes).view(*x.shape[:2], -1, *x.shape[3:])
