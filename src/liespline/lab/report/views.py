"""Looking inside a network: its kernels drawn over H, its feature maps under transformations, and its mistakes."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from markupsafe import Markup
from torch import Tensor, nn

from ...grids import Grid
from ...grids.grid import same
from ...groups import GL2, O2, O3, SO2, SO3, Group, Product, Scale
from ...nn import FrameBias, GConv, Lift
from ...testing import breaking
from ...testing.measure import compared, relative
from ...testing.moving import interior
from ...testing.probe import layer_outputs
from ..data import Split, as_float
from ..data.landmarks import locate
from ..runs.trained import Trained
from ..transforms import in_disc, magnification, moved
from .drawings import Pixels, Section, part, picture, ring, strip

SHOWN_KERNELS = 3
SHOWN_MOVES = 5
FINE = 41
HARDLY = 0.05
"""Of the deviation of a layer's features: what less of it comes from orientation is hardly used."""


def kernel_section(trained: Trained) -> Section | None:
    """The strongest kernels of the first group convolution, one picture per element of H."""
    layer = next((m for m in trained.modules() if isinstance(m, GConv)), None)
    if layer is None or len(layer.grid) == 1:
        return None
    kernel = continuous_kernel(layer)
    strength = kernel.flatten(2).norm(dim=-1)
    best_input = strength.argmax(1)
    chosen = strength.amax(1).argsort(descending=True)[:SHOWN_KERNELS]
    labels, blocks = element_labels(layer.grid.group, layer.grid.elements), []
    for out in chosen.tolist():
        source = int(best_input[out])
        planes = kernel[out, source] / kernel[out, source].abs().max()
        images = _signed(planes, [f"kernel at {label}" for label in labels])
        round_about = isinstance(layer.grid.group, SO2)
        drawn = ring(images, labels) if round_about else part("figures", "row", [*zip(images, labels, strict=True)])
        blocks.append((drawn, f"channel {source} → {out}"))
    text = (
        "Each picture is the kernel's slice at one element of H, blue below zero and red above: a function "
        "on the group, a sum of B-splines. The network applies it at every position and, transformed by each element, "
        "in every pose."
    )
    return Section("kernels", "Learned kernels over H", text, part("box", "rings", blocks))


@torch.no_grad()
def continuous_kernel(layer: GConv) -> Tensor:
    """The kernel as the function it is (eq. BSplinesOnG), not only at the samples it is used at.

    Drawn over the window's last two axes through its middle, at each element of the grid:
    (out, in, N_h, FINE, FINE), or (out, in, N_h, 1, FINE) on a line.
    """
    d = len(layer.kernel_size)
    axes = [torch.linspace(-k / 2, k / 2, FINE, dtype=torch.float64) for k in layer.kernel_size[-2:]]
    plane = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)  # (FINE, FINE, 2)
    points = nn.functional.pad(plane, (d - plane.shape[-1], 0)).cpu()
    if d == 1:
        points = points.unsqueeze(0)
    in_space = _at(layer, "x", points)  # (FINE, FINE, N_x)
    on_group = _at(layer, "h", layer.grid.elements)  # (N_h, N_k)
    return torch.einsum("ocij,yzi,hj->ochyz", layer.weight.double().cpu(), in_space, on_group)


def _at(layer: GConv, axis: str, points: Tensor) -> Tensor:
    """A layer's basis on space ("x") or on H ("h") at points, with trained centres where it has them."""
    basis = layer.x_basis if axis == "x" else layer.h_basis
    if basis is None:
        raise ValueError(f"layer {layer} has no basis on H to draw")
    trained = getattr(layer, f"{axis}_centres", None)
    return basis(points, None if trained is None else basis.centres(trained.double().cpu()))


@torch.no_grad()
def turning_section(trained: Trained, image: Tensor) -> Section | None:
    """An image transformed by elements of the grid, a feature map of each, and the map transformed back."""
    layers = [m for m in trained.modules() if isinstance(m, Lift | GConv)]
    grid = layers[0].grid if layers else None
    if grid is None or len(grid) == 1 or grid.group.space_dim == 1:
        return None
    device = next(trained.parameters()).device
    picked = _picked(grid)
    group, elements = grid.group, grid.elements
    moves = group.product(elements[picked], group.inverse(elements[:1]))  # what leads from the first element there
    inside, around = in_disc(image.unsqueeze(0).to(device), magnification(group, moves))
    inputs = torch.cat([moved(inside, group, m) + around for m in moves])
    (maps,) = layer_outputs(trained, [layers[min(1, len(layers) - 1)]], inputs)  # (moves, channels, N_h, *space)
    reference = maps[0, :, 0]
    channel = int(reference.flatten(1).std(dim=1).argmax())
    followed = torch.stack([maps[i, channel, a] for i, a in enumerate(picked)])
    back = torch.cat([moved(f[None, None], group, group.inverse(m))[0] for f, m in zip(followed, moves, strict=True)])
    error = _inner_error(back.cpu(), group, moves)
    differs = f"it differs by {100 * error:.1f} % of its standard deviation, in the middle half"
    differs = "that cannot be told: it is constant, or too small" if math.isnan(error) else differs
    labels = element_labels(group, elements)
    heads = [labels[a] for a in picked]
    scale = float(followed.abs().max()) or 1.0
    rows = [
        ("image", [picture(image_pixels(x), f"image at {h}") for x, h in zip(inputs, heads, strict=True)]),
        ("feature map", _signed(followed / scale, [f"feature map at {h}" for h in heads])),
        ("transformed back", _signed(back / scale, [f"transformed back from {h}" for h in heads])),
    ]
    text = (
        f"One image in {len(picked)} poses, channel {channel} of the second layer at the element of H that "
        "belongs to the pose, and that map transformed back. If the network is equivariant, the last row is the "
        f"same picture throughout; here {differs}."
    )
    return Section("turning", "Feature maps under transformations", text, strip(rows, heads))


@torch.no_grad()
def landmark_section(trained: Trained, images: Tensor, targets: Tensor) -> Section:
    """Landmarks on a few images: circles where they are, crosses where the network sees them."""
    shown = []
    for image, *points in zip(images, targets, locate(trained(images)), strict=True):
        true, predicted = ((own.double().flip(-1) + 0.5).numpy().round(1).tolist() for own in points)  # (x, y) each
        shown.append((picture(image_pixels(image), "test image"), *reversed(image.shape[-2:]), true, predicted))
    text = "Circles are the true landmarks, crosses the highest point of each heatmap."
    return Section("landmarks", "Landmarks", text, part("landmarks", shown))


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


def mistakes_section(classes: Sequence[str], split: Split, mistakes: Sequence[Sequence[float]]) -> Section:
    """The wrong predictions of highest probability."""
    shown = []
    for index, predicted, confidence in mistakes:
        images, targets = split.__getitems__([int(index)])
        words = f"{classes[int(targets[0])]} taken for {classes[int(predicted)]}, {100 * confidence:.0f} %"
        shown.append((picture(image_pixels(as_float(images)[0]), words), words))
    text = "The wrong predictions of highest probability." if mistakes else "None."
    return Section("mistakes", "Mistakes", text, part("figures", "faces", shown))


def element_labels(group: Group, elements: Tensor) -> list[str]:
    """A short name of each element: its angle, its factor, whether it reflects, or for other groups its number."""
    if isinstance(group, Product):
        pairs = zip(group.factors, group.split(elements), strict=True)
        return [" ".join(words) for words in zip(*(element_labels(*pair) for pair in pairs), strict=True)]
    reflected = [" reflected" if c else "" for c in group.component(elements)]
    if isinstance(group, SO2 | O2):
        angles = (group.log(elements)[:, 0] % (2 * math.pi)) * 180 / math.pi
        return [f"{float(a):.0f}°{r}" for a, r in zip(angles, reflected, strict=True)]
    if isinstance(group, Scale):
        return [f"×{float(e):.2f}" for e in elements[:, 0]]
    if isinstance(group, SO3 | O3):
        angles = group.log(elements).norm(dim=-1) * 180 / math.pi
        return [f"{i + 1}: {float(a):.0f}°{r}" for i, (a, r) in enumerate(zip(angles, reflected, strict=True))]
    return [str(i + 1) for i in range(len(elements))]


def _picked(grid: Grid) -> list[int]:
    """The elements that are shown: the first ones, or where several things change some from all over the grid."""
    count = min(SHOWN_MOVES, len(grid))
    if isinstance(grid.group, O2 | O3 | Product | GL2):
        return [i * (len(grid) - 1) // max(count - 1, 1) for i in range(count)]
    return list(range(count))


def _inner_error(maps: Tensor, group: Group, moves: Tensor) -> float:
    """How far the maps, transformed back, are from the first one, over the standard deviation of that one."""
    parts = []
    for values, move in zip(maps[1:], moves[1:], strict=True):
        inside = interior(maps.shape[1:], group, group.inverse(move))
        parts.append(compared(values[None, None, inside], maps[0][None, None, inside]))
    return relative(parts)


def _plane(values: Tensor) -> Pixels:
    """The middle slice of a volume, a plane as it is, a line as one row."""
    while values.ndim > 2:
        values = values[len(values) // 2]
    return np.atleast_2d(values.double().cpu().numpy())


def _signed(maps: Tensor, names: list[str]) -> list[Markup]:
    return [picture(_plane(values), name, signed=True) for values, name in zip(maps, names, strict=True)]


def image_pixels(values: Tensor) -> Pixels:
    """An image (C, *space) for the screen: colours if it has three channels, else the first one in grey."""
    while values.ndim > 3:
        values = values[:, values.shape[1] // 2]
    shown = values.movedim(0, -1) if len(values) == 3 else values[0]
    pixels: Pixels = shown.double().cpu().numpy()
    low, high = min(0.0, float(pixels.min())), max(1.0, float(pixels.max()))
    return (pixels.clip(0, 1)) if low > -0.3 and high < 1.3 else (pixels - low) / (high - low)
