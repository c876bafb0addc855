"""Loss and scores of masks against loops and scikit-learn, and how turned masks are counted."""

import math

import numpy as np
import pytest
import torch

from liespline import SO2
from liespline.lab.data.samples import IGNORE
from liespline.lab.evaluation.mask_scores import under_rotations
from liespline.lab.tasks.masks import MaskScores, Segmentation, balanced_weights, dice, soft_dice
from liespline.lab.transforms import in_view

DRAW = torch.Generator().manual_seed(0)
LOGITS = torch.randn(2, 3, 6, 7, generator=DRAW)
TARGET = torch.randint(0, 3, (2, 6, 7), generator=DRAW)
TARGET[0, 0] = IGNORE


def test_loss_is_what_a_loop_over_voxels_gives():
    weights = [0.5, 1.0, 1.5]
    entropy = weight_sum = 0.0
    both, shares, truth = np.zeros(3), np.zeros(3), np.zeros(3)
    for image in range(2):
        for y in range(6):
            for x in range(7):
                t = int(TARGET[image, y, x])
                if t == IGNORE:
                    continue
                p = torch.softmax(LOGITS[image, :, y, x].double(), 0).numpy()
                entropy -= weights[t] * math.log(p[t])
                weight_sum += weights[t]
                both[t] += p[t]
                shares += p
                truth[t] += 1
    soft = (2 * both + 1) / (shares + truth + 1)
    expected = entropy / weight_sum + 1 - soft[1:].mean()
    objective = Segmentation(("a", "b", "c"), weighted=True)
    objective.weights = torch.tensor(weights)
    assert float(objective.eval().loss(LOGITS, TARGET)) != pytest.approx(expected, rel=1e-5)
    objective.train()
    assert float(objective.loss(LOGITS, TARGET)) == pytest.approx(expected, rel=1e-5)
    assert np.allclose(soft_dice(LOGITS, TARGET, range(3)), soft, rtol=1e-5)


def test_a_perfect_answer_costs_nothing_and_an_empty_batch_is_finite():
    target = TARGET.clamp(max=2)
    perfect = 40 * torch.nn.functional.one_hot(target, 3).movedim(-1, 1).float()
    assert float(Segmentation("abc").loss(perfect, target)) < 1e-5
    zeros = torch.zeros(1, 3, 4, 4, requires_grad=True)
    Segmentation("abc").loss(zeros, torch.zeros(1, 4, 4, dtype=torch.long)).backward()
    assert zeros.grad.isfinite().all()


def test_absent_classes_have_no_scores_and_do_not_count():
    scores = MaskScores(("a", "b", "c"))
    target = torch.tensor([[[0, 0, 1, 1]]])
    scores.update(torch.tensor([[[0, 1, 1, 1]]]), target)
    assert "Dice, c" not in scores.per_class()
    assert float(scores.compute()) == pytest.approx(2 * 2 / 5)


def test_weights():
    root = math.sqrt(3)
    assert balanced_weights(torch.tensor([75, 25])).tolist() == pytest.approx([2 / (1 + root), 2 * root / (1 + root)])
    objective = Segmentation(("a", "b"), weighted=True)
    objective.look_at(torch.tensor([[70, 20], [5, 5]]))
    assert objective.weights.tolist() == pytest.approx([2 / (1 + root), 2 * root / (1 + root)])


def test_turns_are_followed_by_a_threshold_and_not_by_a_slope():
    """A threshold knows no direction: its masks turn with the image. A slope of the image does not turn."""
    at = torch.arange(65) - 32.0
    y, x = torch.meshgrid(at, at, indexing="ij")
    images = torch.exp(-((y - 9) ** 2 + (x + 5) ** 2) / 90)[None, None]
    masks = (images[:, 0] > 0.5).long()
    angles = torch.tensor([[math.pi / 4], [2.0]])

    def threshold(image):
        return torch.cat([0.5 - image, image - 0.5], 1)

    def slope(image):
        return torch.cat([0 * image, torch.gradient(image, dim=2)[0]], 1)

    tables = under_rotations(threshold, images, masks, SO2(), angles, 2)  # (rotations, 3, 2, 2)
    assert float(dice(tables)[..., 1].min()) > 0.98
    assert (tables.sum((2, 3)) == int(in_view((65, 65)).sum())).all()
    assert float(dice(under_rotations(slope, images, masks, SO2(), angles, 2))[:, 2, 1].max()) < 0.9
