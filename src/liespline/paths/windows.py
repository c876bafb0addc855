"""Windows inside windows: an element's own one is centred in the largest, and its samples may have low rank."""

import torch
from torch import Tensor

Size = tuple[int, ...]


def crop(samples: Tensor, axis: int, window: Size) -> Tensor:
    """The middle of a tensor whose axes from `axis` on are a larger window."""
    for i, size in enumerate(window):
        samples = samples.narrow(axis + i, (samples.shape[axis + i] - size) // 2, size)
    return samples


def fit(x: Tensor, largest: Size, window: Size, padding: Size) -> tuple[Tensor, Size]:
    """The input and zero padding that leave a smaller window, centred in the largest, where it was."""
    borders = [p - (outer - inner) // 2 for p, outer, inner in zip(padding, largest, window, strict=True)]
    for axis, border in enumerate(borders, start=x.ndim - len(borders)):
        if border < 0:
            x = x.narrow(axis, -border, x.shape[axis] + 2 * border)
    return x, tuple(max(border, 0) for border in borders)


def span(samples: Tensor) -> Tensor | None:
    """Orthonormal columns Q (A, w, rank) that span the first window axis of samples (A, w, *W', N_x), to rounding.

    None where that saves nothing: no window, or full rank.
    """
    if samples.ndim < 3:
        return None
    vectors, values, _ = torch.linalg.svd(samples.flatten(2).double(), full_matrices=False)
    rounding = 64 * torch.finfo(samples.dtype).eps * values[:, :1]
    rank = int((values > rounding).sum(1).max())
    return vectors[..., :rank] if 0 < rank < samples.shape[1] else None
