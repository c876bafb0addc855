"""Segmentations to look at: the image, the true mask, the predicted one, and where they differ."""

import numpy as np
import torch
from markupsafe import Markup
from torch import Tensor

from ..data.mask_split import MaskSplit
from ..data.samples import IGNORE
from ..runs.trained import Trained
from .drawings import Pixels, Section, picture, strip
from .views import image_pixels

SHOWN = 6
# Colours that people who cannot tell red from green can tell apart (Okabe and Ito).
COLOURS = np.array([[0.90, 0.62, 0.0], [0.34, 0.71, 0.91], [0.0, 0.62, 0.45], [0.80, 0.47, 0.65], [0.94, 0.89, 0.26]])
MISSED, INVENTED = np.array([0.84, 0.37, 0.0]), np.array([0.0, 0.45, 0.70])


@torch.no_grad()
def overlay_section(trained: Trained, split: MaskSplit) -> Section:
    """A few images with the true and the predicted classes laid over them, and the errors alone."""
    count = min(SHOWN, len(split))
    drawn: list[tuple[str, list[Markup]]] = [("image", []), ("truth", []), ("prediction", []), ("error", [])]
    heads = []
    for index in (n * len(split) // count for n in range(count)):
        image, mask = split[index]
        image, mask, found = middle(image, mask, trained.in_tiles(image.unsqueeze(0)).argmax(1)[0])
        grey = image_pixels(image)
        grey = np.repeat(grey[..., None], 3, -1) if grey.ndim == 2 else grey
        heads.append(split.names[index][:24])
        shown = (grey, coloured(grey, mask), coloured(grey, found), errors(mask, found))
        for (name, cells), pixels in zip(drawn, shown, strict=True):
            cells.append(picture(pixels, f"{name} of {heads[-1]}"))
    text = (
        "Each class but the first has its colour. In the last row, orange pixels are of a class that was missed, blue "
        "ones of a class that was predicted and is not there. Of volumes, one slice."
    )
    return Section("overlays", "Truth, prediction and error", text, strip(drawn, heads))


def middle(image: Tensor, mask: Tensor, found: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Images as they are; of volumes, the slice with most to find."""
    if mask.ndim == 2:
        return image, mask, found
    at = int(((mask > 0) & (mask != IGNORE)).flatten(1).sum(1).argmax())
    return image[:, at], mask[at], found[at]


def coloured(grey: Pixels, mask: Tensor) -> Pixels:
    """The image with its classes but the first in colour, half transparent."""
    here = ((mask > 0) & (mask != IGNORE)).numpy()
    out = grey.copy()
    out[here] = 0.5 * out[here] + 0.5 * COLOURS[(mask.numpy()[here] - 1) % len(COLOURS)]
    return out


def errors(mask: Tensor, found: Tensor) -> Pixels:
    """White where both agree, orange where a true class was missed, blue where one was predicted that is not there."""
    out = np.ones((*mask.shape, 3))
    wrong = (mask != found) & (mask != IGNORE)
    out[(wrong & (mask > 0)).numpy()] = MISSED
    out[(wrong & (mask == 0)).numpy()] = INVENTED
    return out
