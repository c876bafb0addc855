"""What a network says of images and of transformed copies of them, and what it is worth by that."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn
from torchmetrics import MeanMetric
from torchmetrics.functional.classification import multiclass_calibration_error, multiclass_confusion_matrix

from ...testing.measure import changed_predictions, output_change
from ..data import Split, as_float
from ..runs.trained import Trained
from ..settings import Config
from ..tasks import find_task
from ..transforms import Scene, in_view
from .elements import Elements, copies_of, defined, grid_of, on_grid

BATCH = 256
AUTOCAST = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}
MOST_VOXELS = 2**20
SHOWN_MISTAKES = 12
PER = {"classes": "per_class", "tags": "per_tag", "numbers": "per_column"}
FLOOR_IMAGES = 100
MAP_IMAGES = {1: 16, 2: 16, 3: 4}
MOST_POINTS = 4096
"""Of an image at which maps are compared."""
BINS = 15
WIDEST = math.log(20.0)
"""Temperatures from 1/20 to 20 are looked through."""


def best_device(config: Config) -> str:
    """The device to evaluate on."""
    return "cuda" if torch.cuda.is_available() and config.training.accelerator != "cpu" else "cpu"


def at_once(space: Sequence[int], most: int) -> int:
    """How many images of this size make a batch."""
    return max(1, min(most, MOST_VOXELS // math.prod(space)))


def batches(split: Split, limit: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """The first `limit` images of a split with their targets, evenly spread over it, as floats."""
    count = len(split)
    rows = torch.arange(count)
    if limit is not None and limit < count:
        rows = (torch.arange(limit) * count / limit).long()
    for part in torch.split(rows, at_once(split.space, BATCH)):
        images, targets = split.__getitems__(part.tolist())
        yield as_float(images), targets


@torch.no_grad()
def answers(trained: Trained, split: Split, limit: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """Outputs and targets, a batch at a time, on the CPU."""
    device = next(trained.parameters()).device
    for images, targets in batches(split, limit):
        yield outputs_of(trained, images.to(device)).cpu(), targets


def in_precision(name: str, device: str) -> AbstractContextManager[Any]:
    """Compute as training with `precision: name` does, on a device of this type."""
    return torch.autocast(device, AUTOCAST[name]) if name in AUTOCAST else nullcontext()


def outputs_of(trained: Trained, images: Tensor) -> Tensor:
    """What the network says, as float32; on a GPU computed as in training, where float32 takes many times as long."""
    if not images.is_cuda:
        return trained(images).float()
    with in_precision(trained.config.training.precision, "cuda"):
        return trained(images).float()


def predictions(trained: Trained, split: Split, limit: int | None = None) -> tuple[Tensor, Tensor]:
    """All outputs and targets of a split, for classes: heatmaps would be hundreds of MB."""
    outputs, targets = zip(*answers(trained, split, limit), strict=True)
    return torch.cat(outputs), torch.cat(targets)


def scores(trained: Trained, pairs: Iterable[tuple[Tensor, Tensor]]) -> dict[str, float]:
    """Loss and scores of batches of outputs and targets, none of which is kept."""
    objective = find_task(trained.config).objective(trained.config, trained.signature).eval()
    counters, loss = objective.scores(), MeanMetric()
    for outputs, targets in pairs:
        counters.update(outputs, targets)
        loss.update(objective.loss(outputs, targets), len(outputs))
    found = {"loss": float(loss.compute()), **{name: float(value) for name, value in counters.compute().items()}}
    return {name: value for name, value in found.items() if not math.isnan(value)}  # the undefined ones


def apart(trained: Trained, outputs: Tensor, targets: Tensor) -> dict[str, Any]:
    """The scores of every class, tag or number, and those for which a score is undefined: no mean counts them."""
    signature = trained.signature
    each = find_task(trained.config).objective(trained.config, signature).each(outputs, targets)
    values = {score: dict(zip(signature.classes, own.tolist(), strict=True)) for score, own in each.items()}
    known = {score: {name: v for name, v in own.items() if not math.isnan(v)} for score, own in values.items()}
    undefined = {score: [name for name in own if name not in known[score]] for score, own in values.items()}
    return {
        PER[signature.kind]: {
            name: {score: own[name] for score, own in known.items() if name in own} for name in signature.classes
        },
        "undefined": {score: names for score, names in undefined.items() if names},
    }


def confusion(outputs: Tensor, targets: Tensor, classes: int) -> list[list[int]]:
    """How many images of each true class (rows) were taken for each class (columns)."""
    return multiclass_confusion_matrix(outputs, targets, classes).tolist()


def mistakes(outputs: Tensor, targets: Tensor) -> list[list[float]]:
    """The wrong answers that were given with most confidence: row, answer and probability of each."""
    confidence, answer = outputs.softmax(-1).max(-1)
    wrong = (answer != targets).nonzero()[:, 0]
    shown = wrong[confidence[wrong].argsort(descending=True, stable=True)][:SHOWN_MISTAKES]
    return [[int(row), int(answer[row]), float(confidence[row])] for row in shown]


def calibration_error(logits: Tensor, targets: Tensor) -> float:
    """Σ_b n_b/N |accuracy_b − confidence_b| over equal bins b of the probability of the predicted class (ECE).

    Guo et al. 2017, as is the temperature.
    """
    return float(multiclass_calibration_error(logits.double().softmax(-1), targets, logits.shape[-1], BINS))


def temperature(logits: Tensor, targets: Tensor) -> float | None:
    """The T whose softmax(logits / T) has the least cross-entropy.

    None where all predictions are right: then the least T is always better.
    """
    if (logits.argmax(-1) == targets).all():
        return None

    def entropy(log: float) -> float:
        return float(nn.functional.cross_entropy(logits.double() * math.exp(-log), targets))

    return math.exp(minimize_scalar(entropy, bounds=(-WIDEST, WIDEST), method="bounded").x)


def calibration(outputs: Tensor, targets: Tensor, fitted_on: tuple[Tensor, Tensor] | None) -> dict[str, float]:
    """The calibration error; where there are validation images, also their temperature and the error with it."""
    found = {"error": calibration_error(outputs, targets)}
    if fitted_on is None or (fitted := temperature(*fitted_on)) is None:
        return found
    return found | {"temperature": fitted, "error_with_temperature": calibration_error(outputs / fitted, targets)}


def accuracies(trained: Trained, split: Split, elements: Elements, limit: int) -> dict[str, Any]:
    """Accuracy of a classifier under each element and over all of them, on up to `limit` images.

    Each image is first cut to the largest disc that stays in view under all elements; around it lies the mean colour of
    the disc's rim. So nothing moves in or out, and upright images are cut like all others. `upright` is the accuracy on
    the same images whole, `scores` are those of all images that are transformed, each as often as it is.
    """
    whole, targets = predictions(trained, split, limit)
    outputs = torch.cat(list(_of_copies(trained, split, elements, limit)), 1)  # (K, N, classes)
    accuracy = (outputs.argmax(-1) == targets).double().mean(1).tolist()
    over_all = scores(trained, [(own, targets) for own in outputs[1:]])
    return {
        "axis": elements.axis,
        "labels": list(elements.labels),
        "accuracy": accuracy,
        "mean_accuracy": sum(accuracy) / len(accuracy),
        "upright": float((whole.argmax(-1) == targets).double().mean()),
        "images": len(targets),
        "scores": {name: value for name, value in over_all.items() if name != "loss"},
    }


def relative_change(trained: Trained, split: Split, limit: int) -> dict[str, Any]:
    """The relative change of the output over all pairs of copies of up to `limit` images, each interpolated once.

    Over all pairs and the worst one, over those that differ by elements of the network's grid and over those between;
    the share of images whose predicted class differs; and the floor, which is the same over copies that were
    transformed there and back, as upright as the images and interpolated twice. None is undefined: an output that is
    always the same, or no pair of that kind.

    Maps are brought back to where they lie in the image, and their points in view take the place of images: the spread
    is that over all of them.
    """
    kind = trained.signature.kind
    classes, maps = kind in ("classes", "masks"), kind in ("masks", "points")
    copies = copies_of(trained, few=maps)
    images, floor_images = (len(split),) * 2 if maps else (limit, min(limit, FLOOR_IMAGES))
    of_copies = _at_points if maps else _of_copies
    parts = list(of_copies(trained, split, copies, images))
    if not parts:  # no image has a sample in view
        return {"relative_output_change": None}
    outputs = torch.cat(parts, 1)
    back = torch.cat(list(of_copies(trained, split, copies, floor_images, there_and_back=True)), 1)
    on = on_grid(grid_of(trained), copies)
    every = output_change(outputs, classes=classes)
    found: dict[str, float] = {
        "copies": len(copies.values),
        "relative_output_change": every.mean,
        "relative_output_change_worst": every.worst,
        "relative_output_change_on_grid": output_change(outputs, classes=classes, pairs=on).mean,
        "relative_output_change_between_grid": output_change(outputs, classes=classes, pairs=~on).mean,
        "interpolation_floor": output_change(back, classes=classes).mean,
    }
    found |= {"changed_predictions": changed_predictions(outputs)} if classes else {}
    return {name: defined(value) for name, value in found.items()}


@torch.no_grad()
def _of_copies(
    trained: Trained, split: Split, elements: Elements, limit: int, there_and_back: bool = False
) -> Iterator[Tensor]:
    """The outputs (K, B, …) for every copy of one batch of images after the other, each cut to the disc in view."""
    device = next(trained.parameters()).device
    for images, _ in batches(split, limit):
        scene = Scene.disc(images.to(device), elements.group, elements.values)
        yield torch.stack([outputs_of(trained, scene.copy(h, there_and_back)).cpu() for h in elements.values])


@torch.no_grad()
def _at_points(
    trained: Trained, split: Split, elements: Elements, limit: int, there_and_back: bool = False
) -> Iterator[Tensor]:
    """The maps for every copy at the points in view of one image after the other: (K, points, outputs)."""
    device, group = next(trained.parameters()).device, elements.group
    limit = min(limit, MAP_IMAGES[len(split.space)])
    for number in range(limit):
        image = as_float(split[number * len(split) // limit][0].unsqueeze(0)).to(device)
        points = in_view(image.shape[2:]).flatten().nonzero()[:, 0].to(device)
        if not len(points):
            continue
        points = points[:: -(-len(points) // MOST_POINTS)]
        network: Callable[[Tensor], Tensor]
        if trained.signature.kind == "masks":
            scene, network = Scene.mirrored(image, group), trained.in_tiles
        else:  # landmarks, whose images may shrink
            scene, network = Scene.disc(image, group, elements.values), partial(outputs_of, trained)
        maps = [scene.maps(network, h, there_and_back)[0] for h in elements.values]
        yield torch.stack([one.flatten(1)[:, points].T.cpu() for one in maps])
