"""Landmark localisation as the paper does it: heatmaps, the balanced loss's weights, the success rate."""

import torch
from torch import Tensor

SIGMA = 1.5
RADIUS = 10.0


def heatmaps(landmarks: Tensor, space: tuple[int, int], sigma: float = SIGMA) -> Tensor:
    """A Gaussian of height 1 at each landmark (paper, section 4: σ = 1.5 pixels).

    `landmarks` (B, L, 2) in (row, column) pixels; returns (B, L, *space).
    """
    # exp(-r²/2σ²) is the product of a row profile and a column profile: two short vectors, not one large map.
    profiles = []
    for axis, size in enumerate(space):
        at = torch.arange(size, device=landmarks.device, dtype=landmarks.dtype)
        profiles.append(torch.exp(-((at - landmarks[..., axis, None]) ** 2) / (2 * sigma**2)))
    return profiles[0].unsqueeze(-1) * profiles[1].unsqueeze(-2)


def balancing_weights(targets: Tensor) -> Tensor:
    """Weights under which landmark and background count the same in each heatmap, of mean 1.

    w = ½ t / mean(t) + ½ (1 − t) / mean(1 − t) for targets t (B, L, H, W); 1 where a heatmap is empty (its
    landmark has left the image).
    """
    share = targets.mean((-2, -1), keepdim=True)
    # With one half for the share, an empty map's weights come out as t + (1 − t) = 1.
    share = torch.where(share < 1e-6, torch.full_like(share, 0.5), share)
    return 0.5 * targets / share + 0.5 * (1 - targets) / (1 - share)


def locate(logits: Tensor, blur: float = 0.0) -> Tensor:
    """The highest pixel of each heatmap, in (row, column): logits (B, L, H, W) to (B, L, 2).

    `blur` smooths the heatmaps, the sigmoid of the logits, with a Gaussian of that σ, cut off at 4σ, and zeros beyond
    the image (the released scripts: σ = 1, nine taps; the paper: none).
    """
    maps = logits
    if blur:
        reach = round(4 * blur)
        at = torch.arange(-reach, reach + 1, device=logits.device, dtype=logits.dtype)
        taps = torch.softmax(-(at**2) / (2 * blur**2), 0).expand(logits.shape[1], 1, 1, -1)  # a Gaussian of sum 1
        along = torch.nn.functional.conv2d(logits.sigmoid(), taps, padding=(0, reach), groups=len(taps))
        maps = torch.nn.functional.conv2d(along, taps.mT, padding=(reach, 0), groups=len(taps))
    best = maps.flatten(-2).argmax(-1)
    width = maps.shape[-1]
    return torch.stack([best // width, best % width], dim=-1)


def found(located: Tensor, landmarks: Tensor, radius: float = RADIUS) -> Tensor:
    """Which landmarks were found, i.e. located less than `radius` pixels away: (B, L) booleans.

    Their mean over landmarks and images is the paper's success rate.
    """
    distance: Tensor = torch.linalg.vector_norm(located - landmarks, dim=-1)
    return distance < radius
