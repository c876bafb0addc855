"""Inference of the exported PCam network against one written by hand in plain convolutions."""

import torch
from torch import Tensor, nn

import liespline as ls
from liespline import export
from timing import Row, captured, times


class Plain(nn.Module):
    """What someone who only knows torch would write for (12, 12), batch norms already in the convolutions."""

    def __init__(self, width: int = 11, n_h: int = 12) -> None:
        super().__init__()
        c, self.n_h = width * n_h, n_h
        self.features = nn.Sequential(
            nn.Conv2d(3, c, 5), nn.MaxPool2d(2), nn.ReLU(inplace=True),
            nn.Conv2d(c, c, 5), nn.MaxPool2d(2), nn.ReLU(inplace=True),
            nn.Conv2d(c, c, 5), nn.MaxPool2d(3), nn.ReLU(inplace=True),
            nn.Conv2d(c, c, 5), nn.ReLU(inplace=True),
            nn.Conv2d(c, 64 * n_h, 1), nn.ReLU(inplace=True),
        )  # fmt: skip
        self.classes = nn.Sequential(nn.Conv2d(64, 16, 1), nn.ReLU(inplace=True), nn.Conv2d(16, 2, 1), nn.Flatten())

    def forward(self, x: Tensor) -> Tensor:
        """(B, 3, 88, 88) to (B, 2)."""
        return self.classes(self.features(x).unflatten(1, (-1, self.n_h)).amax(2))


@torch.no_grad()
def exported_row(device: str, dtype: torch.dtype, batch: int) -> Row:
    """Seconds of one over seconds of the other; both with channels innermost on a GPU."""
    images = torch.randn(batch, 3, 88, 88, device=device, dtype=dtype)
    ours = export(ls.models.pcam(12, 12, "dense").eval())
    steps = {}
    for name, network in (("exported", ours), ("plain", Plain().eval())):
        network = network.to(device, dtype)
        if device == "cuda":
            network = network.to(memory_format=torch.channels_last)
        steps[name] = lambda f=network: f(images)
        steps[name] = captured(steps[name]) if device == "cuda" else steps[name]
    found = times(steps, device, seconds=2)
    return Row("exported network / plain convolutions, inference", found["exported"] / found["plain"], "≤ 1.02")
