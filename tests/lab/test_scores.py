"""Scores against closed forms and loops: of classes, landmarks and masks; and how sure they are."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from liespline import SO2
from liespline.lab.data.samples import IGNORE, in_colours
from liespline.lab.evaluation.evaluate import area_interval, area_variance, mean_of_shares, wilson
from liespline.lab.evaluation.mask_scores import under_rotations
from liespline.lab.evaluation.scores import calibration, calibration_error, in_precision, scores, temperature
from liespline.lab.networks import Signature
from liespline.lab.runs.trained import Trained
from liespline.lab.settings import Config
from liespline.lab.tasks import find_task
from liespline.lab.tasks.masks import MaskScores, Segmentation, balanced_weights, dice, soft_dice
from liespline.lab.tasks.objectives import Classification, Landmarks
from liespline.lab.transforms import in_view


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


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("m", "n", "apart"), [(80, 50, 1.5), (10, 90, 0.5), (10, 90, 3.0), (5, 5, 3.0), (5, 5, 0.5)])
def test_areas_lie_in_95_of_100_intervals(m, n, apart):
    """Normal classes, also where most areas are 1, and a bootstrap has no width."""
    rng, truth = np.random.default_rng(0), stats.norm.cdf(apart / math.sqrt(2))
    found = []
    for _ in range(1500):
        above = rng.normal(apart, size=(m, 1)) > rng.normal(size=n)
        found.append(area_interval(float(above.mean()), n, m))
    low, high = np.array(found).T
    assert 0.93 < np.mean((low <= truth) & (truth <= high)) < 0.985


def test_an_interval_of_areas_ends_where_they_are_doubtful():
    for value, m, n in ((0.8, 30, 50), (1.0, 10, 10), (0.0, 4, 9)):
        low, high = area_interval(value, m, n)
        assert 0 <= low <= value <= high <= 1
        for end in (low, high):
            half = 1.959964 * math.sqrt(area_variance(end, m, n))
            assert abs(end - value) == pytest.approx(half, abs=1e-6)
    assert area_interval(1.0, 10, 10)[0] == pytest.approx(0.8002136, abs=1e-6), "by another root finder"


def test_means_of_shares_lie_in_95_of_100_intervals():
    truth, totals = np.array([0.5, 0.9, 0.8]), np.array([40, 12, 25])
    right = np.random.default_rng(0).binomial(totals, truth, (1500, 3))
    found = np.array([mean_of_shares(list(zip(row.tolist(), totals.tolist(), strict=True))) for row in right])
    share = np.mean((found[:, 0] <= truth.mean()) & (truth.mean() <= found[:, 1]))
    assert 0.935 < share < 0.975
    half = 1.96 * math.sqrt(sum(truth * (1 - truth) / totals)) / 3
    assert np.mean(found[:, 1] - found[:, 0]) == pytest.approx(2 * half, rel=0.1), "the normal one"
    assert mean_of_shares([(7, 20)]) == pytest.approx(wilson(7, 20))
    low, high = mean_of_shares([(20, 20), (0, 5)])
    assert low < 0.45 < 0.55 < high, "sure answers have a width"


def counted(*counts):
    return torch.cat([torch.full((count,), label) for label, count in enumerate(counts)])


def test_uneven_classes_pick_another_score():
    for counts, monitor in (
        ((50, 50), "accuracy"), ((70, 50), "accuracy"), ((80, 50), "auc"), ((10, 90), "auc"),
        ((40, 40, 45), "accuracy"), ((40, 40, 90), "balanced_accuracy"),
    ):  # fmt: skip
        objective = Classification([str(i) for i in range(len(counts))])
        objective.look_at(counted(*counts))
        assert objective.monitor == monitor, counts


def test_weighted_classes_count_the_same():
    targets = counted(90, 10)
    outputs = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
    by_class = [torch.nn.functional.cross_entropy(outputs[targets == k], targets[targets == k]) for k in (0, 1)]
    task = find_task("images")
    config = task.defaults.updated(class_weights=True)
    objective = task.objective(config, Signature(1, (9, 9), ("a", "b"))).train()
    objective.look_at(targets)
    assert float(objective.loss(outputs, targets)) == pytest.approx(float(sum(by_class) / 2))
    halves = [objective.loss(outputs[i::2], targets[i::2]) for i in (0, 1)]
    assert float(sum(halves) / 2) == pytest.approx(float(objective.loss(outputs, targets))), "two processes as one"
    plain = float(torch.nn.functional.cross_entropy(outputs, targets))
    assert float(objective.eval().loss(outputs, targets)) == pytest.approx(plain), "what is reported is not weighted"


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


SURE = (0.525, 0.61, 0.7, 0.79, 0.9, 0.97)  # away from the ends of bins


def coins(sharpened=1.0):
    """Logits of two classes, 1,000 images per probability p, exactly p of which are of the predicted class."""
    odds = torch.tensor(SURE, dtype=torch.float64).logit().repeat_interleave(1000)
    right = torch.cat([torch.arange(1000) < round(1000 * p) for p in SURE])
    return sharpened * torch.stack([odds, torch.zeros_like(odds)], 1), (~right).long()


def test_calibration_of_a_calibrated_and_of_a_sharpened_set():
    assert calibration_error(*coins()) < 1e-4
    assert temperature(*coins()) == pytest.approx(1, abs=1e-4)
    sharpened = torch.tensor(SURE).logit().mul(2).sigmoid() - torch.tensor(SURE)
    assert calibration_error(*coins(2.0)) == pytest.approx(sharpened.abs().mean().item(), abs=1e-4)
    found = calibration(*coins(2.0), coins(2.0))
    assert found["error"] == calibration_error(*coins(2.0))
    assert found["temperature"] == pytest.approx(2, abs=1e-4)
    assert found["error_with_temperature"] < 1e-4
    assert temperature(*coins(0.25)) == pytest.approx(0.25, abs=1e-4)


def test_no_temperature_is_fitted_where_no_prediction_is_wrong_and_none_without_validation_images():
    logits, targets = coins()
    assert temperature(logits, torch.zeros_like(targets)) is None
    assert calibration(logits, targets, None) == {"error": calibration_error(logits, targets)}
    assert calibration(logits, targets, (logits, torch.zeros_like(targets))).keys() == {"error"}
