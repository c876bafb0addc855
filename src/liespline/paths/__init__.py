"""How a layer is computed: every path gives the dense path's numbers, to rounding."""

import torch
from torch import Tensor

from liespline.paths import choice, dense, factored
from liespline.paths.force import use
from liespline.paths.plan import Plan

__all__ = ["Plan", "correlate", "lift", "use"]

Size = tuple[int, ...]


def correlate(
    x: Tensor,
    weight: Tensor,
    x_samples: Tensor,
    h_samples: Tensor,
    *,
    sizes: tuple[Size, ...],
    stride: Size,
    padding: Size,
    plan: Plan | None = None,
) -> Tensor:
    """Correlate a feature map with spline coefficients (eq. gcor with the kernel of eq. BSplinesOnG).

    out[:,o,a] = Σ_cby K[o,a,c,b,y] x[:,c,b,·+y],
    K[o,a,c,b,y] = Σ_ijm weight[o,c,i,j] x_samples[a,m,y,i] h_samples[a,m,b,j]

    x (B, C, N_in, *space), weight (O, C, N_x, N_k), x_samples (A, M, *W, N_x), h_samples (A, M, N_in, N_k)
    -> (B, O, A, *space); sizes are the A elements' own windows, centred in the largest one W. Without a plan
    the path is dense.
    """
    chosen = choice.choose(x, weight, plan, sizes, stride, padding)
    if plan is not None and chosen is not None:
        return factored.correlate(x, weight, x_samples, h_samples, plan, chosen, stride, padding)
    dtype = dense.accumulate_dtype(x, weight, x_samples, h_samples)
    with torch.autocast(x.device.type, enabled=False):
        samples, at_once = (x_samples.to(dtype), h_samples.to(dtype)), None
        if plan is not None and x.is_cuda and plan.fixed(*samples):
            at_once = plan.outer(("whole", dtype), lambda: samples)
        if at_once is None:
            sampled = dense.kernel(weight.to(dtype), *samples)
        else:
            sampled = dense.kernel_at_once(weight.to(dtype), at_once, h_samples.shape[2], x_samples.shape[2:-1])
    return dense.convolve(x, sampled, sizes, stride, padding)


def lift(
    x: Tensor, weight: Tensor, x_samples: Tensor, *, sizes: tuple[Size, ...], stride: Size, padding: Size
) -> Tensor:
    """Lift an image to the group (eq. liftingcor).

    x (B, C, *space), weight (O, C, N_x), x_samples (A, *W, N_x) -> (B, O, A, *space).
    """
    dtype = dense.accumulate_dtype(x, weight, x_samples)
    with torch.autocast(x.device.type, enabled=False):
        sampled = dense.lift_kernel(weight.to(dtype), x_samples.to(dtype))
    return dense.convolve(x, sampled, sizes, stride, padding)
