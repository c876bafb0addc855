"""What a network is trained for: its loss, its scores, and the checkpoint metric; of classes, tags, numbers, points."""

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn
from torchmetrics import Metric, MetricCollection
from torchmetrics.classification import MulticlassAccuracy

from ..data.landmarks import balancing_weights, found, heatmaps, locate
from ..networks import Signature
from ..settings import Config, ConfigError
from .columns import MeanOver, MeanShare, Score, absolute_errors, areas, areas_of_classes, constant, f1s, r2s

UNEVEN = 1.5


class Objective(nn.Module):
    """A loss with the scores that go with it."""

    monitor: str
    """The checkpoint metric: the score, higher is better, whose best epoch is kept."""

    def __init__(self, names: Sequence[str] = (), **columns: Score) -> None:
        """Of classes, tags or numbers of these names, each with these scores."""
        super().__init__()
        self.names, self.columns = tuple(names), columns

    def look_at(self, targets: Tensor) -> None:
        """Choose a fair score and a fair loss by the training targets, before training begins."""

    def missing(self, targets: Mapping[str, Tensor]) -> tuple[list[str], list[str]]:
        """What training and validation lack, by the targets of these splits: problems, and mere remarks."""
        return [], []

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The number to make small."""
        raise NotImplementedError

    def scores(self) -> MetricCollection:
        """Fresh counters of the scores, to be fed with outputs and targets: means over the columns that have them."""
        counters: dict[str, Metric | MetricCollection] = {name: MeanOver(score) for name, score in self.columns.items()}
        return MetricCollection(counters)

    def each(self, output: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Scores of every class, tag or number (K,), NaN where undefined, of a whole split."""
        return {name: score(output, target) for name, score in self.columns.items()}

    def _constant(self, targets: Mapping[str, Tensor]) -> Iterator[tuple[str, list[str]]]:
        """The splits in which some columns have one value only, with their names."""
        for split, own in targets.items():
            if alike := [self.names[column] for column in constant(own)]:
                yield split, alike


class OfClasses(Objective):
    """Something out of several classes.

    `weighted`: in training, classes count by `weights`; `smoothing`: in training, that much of the target of the
    cross-entropy is shared out over all classes.
    """

    weights: Tensor

    def __init__(
        self, classes: Sequence[str], weighted: bool = False, smoothing: float = 0.0, **columns: Score
    ) -> None:
        super().__init__(classes, **columns)
        self.weighted, self.smoothing = weighted, smoothing
        self.register_buffer("weights", torch.ones(len(self.names)), persistent=False)


class Classification(OfClasses):
    """One class out of several: cross-entropy, accuracy, and the area under the ROC curve of two classes.

    Where one class has `UNEVEN` times the images of another, accuracy rewards forgetting the rare one: the checkpoint
    metric is then the AUC, or for more than two classes the balanced accuracy. Of N weighted images, each counts
    N / (classes · images of its class).
    """

    def __init__(self, classes: Sequence[str], weighted: bool = False, smoothing: float = 0.0) -> None:
        super().__init__(classes, weighted, smoothing, sensitivity=sensitivities, auc=areas_of_classes)
        self.monitor = "accuracy"

    def look_at(self, targets: Tensor) -> None:
        """Choose the score and the weights by how many images each class has."""
        counts = torch.bincount(targets, minlength=len(self.names))
        if int(counts.max()) > UNEVEN * int(counts.min()):
            self.monitor = "auc" if len(self.names) == 2 else "balanced_accuracy"
        if self.weighted:
            self.weights = len(targets) / (len(counts) * counts.clamp_min(1)).to(self.weights)

    def missing(self, targets: Mapping[str, Tensor]) -> tuple[list[str], list[str]]:
        """Classes without an image: not trained on, or without a say in the checkpoint metric."""
        problems = []
        for split, own in targets.items():
            counts = torch.bincount(own, minlength=len(self.names))
            problems += [
                f"class {name!r} has no image in {split}; every class needs some in train and in valid (test may lack "
                "it): add images of it, move some there, or leave the class out"
                for name, count in zip(self.names, counts, strict=True)
                if not count
            ]
        return problems, []

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy of logits (B, classes) against class numbers (B,); weighted and smoothed in training alone."""
        smoothing = self.smoothing if self.training else 0.0
        if not (self.weighted and self.training):
            return nn.functional.cross_entropy(output, target, label_smoothing=smoothing)
        weights = self.weights.to(output)
        # Not divided by the weights of the batch, or two processes would not train as one.
        entropy = nn.functional.cross_entropy(output, target, weights, reduction="sum", label_smoothing=smoothing)
        return entropy / len(target)

    def scores(self) -> MetricCollection:
        """Accuracy over all images, over classes, and the AUC where there are two of them."""
        count = len(self.names)
        scores: dict[str, Metric | MetricCollection] = {
            "accuracy": MulticlassAccuracy(count, average="micro"),
            "balanced_accuracy": MeanShare(right_of_classes, count),
        }
        if count == 2:
            scores["auc"] = MeanOver(areas_of_classes)
        return MetricCollection(scores)


def right_of_classes(output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """How many images of each class are predicted rightly, and how many there are: logits (B, K), classes (B,)."""
    right, classes = target[output.argmax(-1) == target], output.shape[-1]
    return torch.bincount(right, minlength=classes), torch.bincount(target, minlength=classes)


def sensitivities(output: Tensor, target: Tensor) -> Tensor:
    """The share of each class that is predicted rightly: undefined for a class without an image."""
    right, total = right_of_classes(output, target)
    return right / total.double()


class Landmarks(Objective):
    """Landmarks as heatmaps: balanced sigmoid cross-entropy, success rate (paper, section 4)."""

    monitor = "success"

    def __init__(self, blur: float = 0.0) -> None:
        super().__init__()
        self.blur = blur

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy of logits (B, L, H, W) against Gaussians at the landmarks (B, L, 2)."""
        output = output.to(torch.promote_types(output.dtype, torch.float32))  # bfloat16 knows half pixels at best
        maps = heatmaps(target.to(output.dtype), (output.shape[-2], output.shape[-1]))
        return nn.functional.binary_cross_entropy_with_logits(output, maps, balancing_weights(maps))

    def scores(self) -> MetricCollection:
        """The success rate: the share of landmarks located near enough (paper, section 4), of all images."""
        return MetricCollection({"success": MeanShare(self._located)})

    def _located(self, output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        hits = found(locate(output, self.blur), target)
        return hits.sum(), torch.tensor(hits.numel(), device=hits.device)


class Tags(Objective):
    """Each tag there or not, whatever the others are: sigmoid cross-entropy; area under the ROC curve and F1."""

    monitor = "auc"

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names, auc=areas, f1=f1s)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Of logits (B, tags) against zeros and ones (B, tags)."""
        return nn.functional.binary_cross_entropy_with_logits(output, target.to(output))

    def missing(self, targets: Mapping[str, Tensor]) -> tuple[list[str], list[str]]:
        """Tags that are there in all images of a split or in none."""
        problems, remarks = [], []
        for split, alike in self._constant(targets):
            if len(alike) == len(self.names):
                problems.append(f"no tag is in some images of {split} and not in others; AUC needs one that is")
            else:
                words = f"in all images of {split} or in none: {', '.join(alike)}"
                remarks.append(f"{words}; AUC is the mean over the others")
        return problems, remarks


class Numbers(Objective):
    """Measurements: Huber loss of standardised numbers; mean absolute error and R², the share of variance explained."""

    monitor = "r2"
    scale: Tensor

    def __init__(self, names: Sequence[str], scaling: Sequence[tuple[float, float]]) -> None:
        super().__init__(names, r2=r2s, mean_absolute_error=absolute_errors)
        self.register_buffer("scale", torch.tensor([std for _, std in scaling]), persistent=False)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Of numbers (B, names) in their own units."""
        scale = self.scale.to(output)
        return nn.functional.smooth_l1_loss(output / scale, target.to(output) / scale)

    def missing(self, targets: Mapping[str, Tensor]) -> tuple[list[str], list[str]]:
        """Measurements that are the same for all images of a split."""
        problems, remarks = [], []
        for split, alike in self._constant(targets):
            said = f"the same for all images of {split}: {', '.join(alike)}"
            if split == "train":
                problems.append(f"{said}; nothing can be fitted there: leave it out")
            elif len(alike) == len(self.names):
                problems.append(f"{said}; R² needs a number that varies")
            else:
                remarks.append(f"{said}; R² is the mean over the others")
        return problems, remarks

    def scores(self) -> MetricCollection:
        """R², mean over the measurements that vary, and the mean absolute error where there is one unit."""
        return super().scores() if len(self.names) == 1 else MetricCollection({"r2": MeanOver(r2s)})


def by_kind(config: Config, signature: Signature) -> Objective:
    """The objective for what comes out of the network."""
    kind, training = signature.kind, config.training
    for name in ("label_smoothing", "class_weights"):
        if kind in ("numbers", "tags") and config[name]:
            raise ConfigError(f"{name} = {config[name]}: is for classes, not for {kind}; leave it out")
    if kind == "numbers":
        return Numbers(signature.classes, signature.scaling)
    if kind in ("tags", "points"):
        return Tags(signature.classes) if kind == "tags" else Landmarks()
    return Classification(signature.classes, training.class_weights, training.label_smoothing)
