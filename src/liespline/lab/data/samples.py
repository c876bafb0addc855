"""What stored samples mean: unsigned integers are shares of their largest, three channels of a picture its colours."""

import torch
from torch import Tensor

from .files import DataError

GREY = (0.299, 0.587, 0.114)
"""How much red, green and blue count in grey."""
IGNORE = 255
"""The class number of pixels and voxels of a mask that are neither trained on nor scored."""


def as_float(images: Tensor) -> Tensor:
    """Stored images as float32: unsigned integers mapped to [0, 1], floats as they are."""
    if images.dtype.is_floating_point:
        return images.float()
    return images.float() / torch.iinfo(images.dtype).max


def check_channels(found: int, channels: int, space_dim: int, where: str) -> None:
    """Refuse images of other channels than the network's, but for pictures: these are grey or in colour as wanted.

    The three channels of a volume are no colours, and their weighted mean is nothing that the network has seen.
    """
    if found != channels and (space_dim != 2 or {found, channels} != {1, 3}):
        raise DataError(f"{where}: has {found} channels; the network was trained on {channels}")


def in_colours(images: Tensor, channels: int, where: str = "the images") -> Tensor:
    """Images (B, C, H, W) with 1 or 3 channels: red, green and blue count 0.299, 0.587 and 0.114 in grey.

    Others are refused, and so are volumes, unless they have so many channels: `where` names them.
    """
    if images.shape[1] == channels:
        return images
    check_channels(images.shape[1], channels, images.ndim - 2, where)
    if channels == 3:
        return images.expand(-1, 3, *images.shape[2:])
    shares = torch.tensor(GREY, dtype=torch.float64).view(3, *(1,) * (images.ndim - 2))
    grey = (images.double() * shares).sum(1, keepdim=True)
    return (grey if images.dtype.is_floating_point else grey.round()).to(images.dtype)
