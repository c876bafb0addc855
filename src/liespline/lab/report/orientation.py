"""How far a network that may break its symmetry has learned to."""

from torch import Tensor

from ...grids.grid import same
from ...nn import FrameBias
from ...testing import breaking
from ..runs.trained import Trained
from .drawings import Section, part
from .views import element_labels

HARDLY = 0.05
"""Of the deviation of a layer's features: what less of it comes from orientation is hardly used."""


def breaking_section(trained: Trained, images: Tensor) -> Section | None:
    """Per layer, how much of its features is the image's own orientation, and to what it is still equivariant."""
    layers = dict(trained.named_modules())
    if not any(isinstance(layer, FrameBias) for layer in layers.values()):
        return None
    found, rows = breaking(trained, images), []
    for one in found:
        grid = layers[one.layer].grid
        labels = element_labels(grid.group, grid.elements)
        (identity,) = same(grid, grid.group.identity(dtype=grid.elements.dtype).unsqueeze(0))
        left = ", ".join(labels[number] for number in one.kept if not identity[number])
        rows.append((one.layer, [f"{100 * one.broken:.1f} %", "all" if len(one.kept) == len(grid) else left or "none"]))
    most = max(one.broken for one in found)
    used = "hardly uses" if most < HARDLY else "uses"
    text = (
        f"This network {used} the image's own orientation: in the layer that uses most, its part is {100 * most:.0f} % "
        "of the features' standard deviation. Beside it, the elements of the group to which each layer is still "
        "equivariant."
    )
    return Section("breaking", "Orientation", text, part("table", "numbers", ["layer", "part", "equivariant to"], rows))
