"""Scores against closed forms: of classes, of landmarks, and in a precision of their own."""

import math

import pytest
import torch

from liespline.lab.data.samples import in_colours
from liespline.lab.evaluation.scores import in_precision, scores
from liespline.lab.networks import Signature
from liespline.lab.runs.trained import Trained
from liespline.lab.settings import Config
from liespline.lab.tasks.objectives import Classification, Landmarks


def test_accuracy_counts_images_and_balanced_accuracy_classes():
    targets = torch.tensor([0] * 9 + [1])
    counters = Classification(("often", "seldom")).scores()
    outputs = torch.tensor([[1.0, 0.0]]).expand(10, 2)  # always the first
    counters.update(outputs[:4], targets[:4])
    counters.update(outputs[4:], targets[4:])
    found = {name: float(value) for name, value in counters.compute().items()}
    assert found == pytest.approx({"accuracy": 0.9, "balanced_accuracy": 0.5, "auc": 0.5})


def test_grey_is_the_luminance_of_television():
    red, green, blue = (torch.eye(3, dtype=torch.uint8)[i].view(1, 3, 1, 1) * 255 for i in range(3))
    assert [int(in_colours(x, 1)) for x in (red, green, blue)] == [76, 150, 29]
    white = torch.full((1, 3, 2, 2), 65535, dtype=torch.int32).to(torch.uint16)
    assert int(in_colours(white, 1).int().max()) == 65535
    assert in_colours(torch.ones(2, 1, 4, 4), 3).shape == (2, 3, 4, 4)


def test_the_loss_of_a_test_is_that_of_the_true_labels():
    """Smoothed and weighted in training alone: −log of what is said of the right class."""
    config = Config("images").updated(label_smoothing=0.5, class_weights=True)
    trained = Trained(torch.nn.Linear(1, 1), config, Signature(1, (15, 15), ("lower", "upper")))
    outputs, targets = torch.tensor([[4.0, -4.0], [3.0, -3.0]]), torch.tensor([0, 0])
    known = (math.log1p(math.exp(-8)) + math.log1p(math.exp(-6))) / 2
    assert scores(trained, [(outputs, targets)])["loss"] == pytest.approx(known, rel=1e-4)


@pytest.mark.parametrize(("name", "inside"), [("bf16-mixed", torch.bfloat16), ("32-true", torch.float32)])
def test_a_precision_is_that_of_products_inside_it_and_none_after(name, inside):
    x = torch.ones(2, 2)
    with in_precision(name, "cpu"):
        assert (x @ x).dtype == inside
    assert (x @ x).dtype == torch.float32


def test_landmark_loss_is_least_at_the_landmarks_and_success_counts_them():
    objective = Landmarks(blur=0.0)
    target = torch.tensor([[[10.0, 20.0], [25.0, 5.0]]])
    near, far = torch.full((1, 2, 32, 32), -9.0), torch.full((1, 2, 32, 32), -9.0)
    for index, (row, column) in enumerate([(10, 20), (25, 5)]):
        near[0, index, row - 1 : row + 2, column - 1 : column + 2] = 9.0
        far[0, index, row - 8, column] = 9.0 if index else -9.0
    far[0, 0, 31, 0] = 9.0
    assert objective.loss(near, target) < objective.loss(far, target)
    counter = objective.scores()
    counter.update(near, target)
    assert float(counter.compute()["success"]) == 1
    counter.reset()
    counter.update(far, target)
    assert float(counter.compute()["success"]) == 0.5
