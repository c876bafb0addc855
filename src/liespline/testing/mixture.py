"""Images that are known at every point."""

import torch
from torch import Tensor


class Mixture:
    """Sums of anisotropic Gaussians with random signs: images (B, C, *space) at points (*space, d)."""

    def __init__(self, images: int, channels: int, d: int, size: int, blur: float, generator: torch.Generator) -> None:
        shape = (images, channels, 12)
        self.means = size / 4 * torch.randn(*shape, d, dtype=torch.float64, generator=generator)
        self.heights = torch.randn(shape, dtype=torch.float64, generator=generator)
        self.widths = blur * (1 + torch.rand(shape, dtype=torch.float64, generator=generator))

    def __call__(self, points: Tensor) -> Tensor:
        """Their values there."""
        flat = points.reshape(-1, points.shape[-1])
        square = (flat - self.means.unsqueeze(-2)).square().sum(-1)  # (B, C, blobs, points)
        values = (self.heights.unsqueeze(-1) * (-square / (2 * self.widths.unsqueeze(-1).square())).exp()).sum(2)
        return values.reshape(*values.shape[:2], *points.shape[:-1])
