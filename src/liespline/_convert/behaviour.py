"""What layers that are known by nothing else do, seen by trying them; and pooling of whole windows."""

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..nn.pool import OverSpace


def treats_all_alike(layer: nn.Module, n_h: int, d: int) -> bool:
    """Whether a layer takes features on the group and does the same to every number of an image, in any order."""
    drawn = torch.Generator().manual_seed(0)
    x = torch.randn(2, 4, n_h, *(6,) * d, generator=drawn)
    order = torch.randperm(x[0].numel(), generator=drawn)
    tried = _outputs(layer, x, x.flatten(1)[:, order].view_as(x))
    if tried is None or any(out.shape != x.shape for out in tried):
        return False
    _, out, mixed = tried
    return torch.equal(mixed.flatten(1), out.flatten(1)[:, order])


def pools_all(layer: nn.Module, d: int) -> bool:
    """Whether a layer makes one position of all, whatever their order."""
    drawn = torch.Generator().manual_seed(0)
    x = torch.randn(2, 4, *(6,) * d, generator=drawn)
    order = torch.randperm(6**d, generator=drawn)
    tried = _outputs(layer, x, x.flatten(2)[..., order].view_as(x))
    if tried is None or any(out.shape[:1] != x.shape[:1] or set(out.shape[2:]) > {1} for out in tried):
        return False
    _, out, mixed = tried
    return torch.allclose(mixed, out, rtol=1e-4, atol=1e-5)


def over_channels(layer: nn.LayerNorm, d: int) -> bool:
    """Whether a layer norm normalises the channels of images at every position, as timm's `LayerNorm2d` does."""
    x = torch.randn(2, layer.normalized_shape[0], *(6,) * d, generator=torch.Generator().manual_seed(0))
    expected = F.layer_norm(x.movedim(1, -1), layer.normalized_shape, layer.weight, layer.bias, layer.eps)
    tried = _outputs(layer, x, x)
    return tried is not None and all(
        out.shape == x.shape and torch.allclose(out, expected.movedim(-1, 1), atol=1e-4) for out in tried
    )


@torch.random.fork_rng(devices=())
@torch.no_grad()
def _outputs(layer: nn.Module, x: Tensor, mixed: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
    """What a layer makes of x in training, and of x and its mixed numbers in evaluation; None where it fails."""
    layer = copy.deepcopy(layer)
    try:
        found = layer.train()(x.clone()), layer.eval()(x.clone()), layer(mixed.clone())
    except Exception:
        return None
    return found if all(isinstance(out, Tensor) for out in found) else None


def shown(layer: nn.Module) -> str:
    """A layer in a word or a line, whatever is in it."""
    return f"{type(layer).__name__}" if next(layer.children(), None) is not None else f"{layer}"


class WholeWindows(OverSpace):
    """Leave out the border, equally on both sides, where windows do not fill the image: ⌊n/size⌋ of them stay."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def space(self, x: Tensor) -> Tensor:
        """Crop the space axes of `(B, channels, *space)`."""
        if min(x.shape[2:]) < self.size:
            raise ValueError(f"average pooling: x has space {tuple(x.shape[2:])}, smaller than a window of {self.size}")
        for axis in range(2, x.ndim):
            out = (x.shape[axis] % self.size + 1) // 2
            x = x.narrow(axis, out, x.shape[axis] - 2 * out)
        return x

    def extra_repr(self) -> str:
        """Show the window."""
        return str(self.size)
