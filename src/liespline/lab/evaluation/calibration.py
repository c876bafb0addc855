"""Whether predictions are right as often as their probabilities say (Guo et al. 2017)."""

from __future__ import annotations

import math

from scipy.optimize import minimize_scalar
from torch import Tensor, nn
from torchmetrics.functional.classification import multiclass_calibration_error

BINS = 15
WIDEST = math.log(20.0)
"""Temperatures from 1/20 to 20 are looked through."""


def calibration_error(logits: Tensor, targets: Tensor) -> float:
    """Σ_b n_b/N |accuracy_b − confidence_b| over equal bins b of the probability of the predicted class (ECE)."""
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
