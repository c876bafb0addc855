"""Moves, scores and errors against closed forms."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from liespline import SO2, SO3, Scale, uniform
from liespline.lab.data import Split
from liespline.lab.evaluation.equivariance import layer_errors
from liespline.lab.evaluation.moves import moves_of, under_moves
from liespline.lab.evaluation.scores import batches, confusion, predictions, scores
from liespline.lab.moving import in_disc, moved, shown
from liespline.lab.runs.precision import in_precision
from liespline.lab.runs.trained import Trained
from liespline.lab.settings import Config, Network
from liespline.lab.tasks.networks import Signature
from liespline.lab.tasks.objectives import Landmarks
from liespline.models import classifier


def blob(size, centre, d=2):
    """A Gaussian at a point (row, column[, …]) measured from the centre."""
    axes = [torch.arange(size, dtype=torch.float64) - (size - 1) / 2] * d
    grid = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)
    return torch.exp(-(grid - torch.as_tensor(centre, dtype=torch.float64)).square().sum(-1) / 8)[None, None]


@pytest.mark.parametrize("angle", [30, 90, 200])
def test_turning_moves_a_blob_as_the_group_moves_its_centre(angle):
    theta, centre = torch.tensor([math.radians(angle)], dtype=torch.float64), torch.tensor([5.0, 2.0]).double()
    there = SO2().act(theta, centre)
    torch.testing.assert_close(moved(blob(33, centre), SO2(), theta), blob(33, there), atol=2e-3, rtol=0)


def test_quarter_turns_are_torchs_own():
    x = torch.randn(2, 3, 9, 9, dtype=torch.float64)
    for k in (1, 2, 3):
        quarter = torch.tensor([k * math.pi / 2], dtype=torch.float64)
        torch.testing.assert_close(moved(x, SO2(), quarter), torch.rot90(x, k, (-2, -1)), atol=1e-9, rtol=0)


def test_scaling_and_turning_in_three_dimensions():
    wide = moved(blob(33, (3.0, 1.0)), Scale(2), torch.tensor([2.0], dtype=torch.float64))
    row, column = divmod(int(wide.argmax()), 33)
    assert (row - 16, column - 16) == (6, 2)
    turn = uniform(SO3(), 24).elements[5]
    centre = torch.tensor([4.0, 2.0, 1.0]).double()
    expected = blob(17, SO3().act(turn, centre), 3)
    torch.testing.assert_close(moved(blob(17, centre, 3), SO3(), turn), expected, atol=1e-9, rtol=0)


def test_what_is_shown_shrinks_with_magnification():
    whole = shown((21, 21), Scale(2), torch.tensor([1.0]).double())
    smaller = shown((21, 21), Scale(2), torch.tensor([0.5]).double())
    assert 0 < int(smaller.sum()) < int(whole.sum())
    assert not bool(whole[0, 0])


class Quadrant(nn.Module):
    """Says 1 if the light is in the upper half: right upright, wrong upside down."""

    def __init__(self):
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        down = torch.arange(x.shape[-2]) - (x.shape[-2] - 1) / 2
        height = -(down.to(x).unsqueeze(-1) * x).mean((1, 2, 3))
        return torch.stack([-height, height], 1)


@pytest.fixture
def upper():
    images = np.zeros((6, 15, 15), np.uint8)
    images[:3, 2:6, 5:10] = 255
    images[3:, 9:13, 5:10] = 255
    split = Split(images, np.array([1, 1, 1, 0, 0, 0]), ("lower", "upper"))
    config = Config(task="images", network=Network(group="none"))
    return Trained(Quadrant(), config, Signature.of(split)).eval(), split


def test_accuracy_and_change_under_turns(upper):
    trained, split = upper
    outputs, targets = predictions(trained, split)
    assert scores(trained, [(outputs, targets)])["accuracy"] == 1
    assert confusion(outputs, targets, 2) == [[3, 0], [0, 3]]
    found = under_moves(trained, split, moves_of(trained), limit=4)
    by_angle = dict(zip(found["labels"], found["accuracy"], strict=True))
    assert (by_angle["0°"], by_angle["45°"], by_angle["180°"], by_angle["330°"]) == (1, 1, 0, 1)
    assert found["images"] == 4
    # The output is a moment, so it goes with the cosine of the angle: Σ(cos θ − 1)² / 23 = 36 / 23 over 24 angles.
    assert found["change"] == pytest.approx(math.sqrt(36 / 23), rel=1e-3)


GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
def test_a_gpu_scores_as_it_trained_and_moves_images_exactly(upper, device, monkeypatch):
    """bfloat16 inside the network alone: images that were moved in it would be off by more than turning them."""
    trained, split = upper
    trained.config = trained.config.updated(precision="bf16-mixed")
    inside, outside = [], []

    def watched(x):
        inside.append((torch.is_autocast_enabled(device), x.dtype))
        return Quadrant.forward(trained.network, x.cpu()).to(device)

    def turned(*how):
        outside.append(torch.is_autocast_enabled(device))
        return moved(*how)

    monkeypatch.setattr(trained.network, "forward", watched)
    monkeypatch.setattr("liespline.lab.evaluation.moves.moved", turned)
    found = under_moves(trained.to(device), split, moves_of(trained), limit=4)
    assert found["change"] == pytest.approx(math.sqrt(36 / 23), rel=1e-3)
    assert set(inside) == {(device == "cuda", torch.float32)}
    assert set(outside) == {False}


@pytest.mark.parametrize(("name", "inside"), [("bf16-mixed", torch.bfloat16), ("32-true", torch.float32)])
def test_a_precision_is_that_of_products_inside_it_and_none_after(name, inside):
    x = torch.ones(2, 2)
    with in_precision(name, "cpu"):
        assert (x @ x).dtype == inside
    assert (x @ x).dtype == torch.float32


def test_the_loss_of_a_test_is_that_of_the_true_labels(upper):
    """Smoothed and weighted in training alone: −log of what is said of the right class."""
    trained, _ = upper
    trained.config = trained.config.updated(label_smoothing=0.5, class_weights=True)
    outputs, targets = torch.tensor([[4.0, -4.0], [3.0, -3.0]]), torch.tensor([0, 0])
    known = (math.log1p(math.exp(-8)) + math.log1p(math.exp(-6))) / 2
    assert scores(trained, [(outputs, targets)])["loss"] == pytest.approx(known, rel=1e-4)


def test_a_limit_spreads_over_the_split():
    split = Split(np.arange(1000, dtype=np.float32).reshape(1000, 1, 1), np.zeros(1000, np.int64), ("a", "b"))
    seen = torch.cat([x.flatten() for x, _ in batches(split, 10)])
    assert seen.tolist() == [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]


def test_layer_errors_are_rounding_where_the_lattice_has_the_symmetry_and_not_elsewhere():
    signature = Signature(1, (17, 17), ("a", "b"))
    x = torch.rand(2, 1, 17, 17, dtype=torch.float64)
    worst = {}
    for n_h in (4, 6):
        torch.manual_seed(0)
        network = classifier(1, 2, uniform(SO2(), n_h), widths=(3, 3, 3)).double().eval()
        rows = layer_errors(Trained64(network, Config(task="images"), signature), x)
        assert [row["layer"] for row in rows][-1] == "output"
        assert len(rows) == 4
        worst[n_h] = max(row["worst error"] for row in rows)
    assert worst[4] < 1e-8
    assert worst[6] > 1e-4


def test_the_worst_error_is_that_of_the_worst_move():
    torch.manual_seed(3)
    network = classifier(1, 2, uniform(SO2(), 6), widths=(3, 3, 3)).double().eval()
    x = torch.rand(2, 1, 17, 17, dtype=torch.float64)
    answer = layer_errors(Trained64(network, Config(task="images"), Signature(1, (17, 17), ("a", "b"))), x)[-1]
    inside, around = in_disc(x)
    angles = torch.arange(1, 6, dtype=torch.float64).view(5, 1) * math.pi / 3
    with torch.no_grad():
        upright, *turned = (network(moved(inside, SO2(), angle) + around) for angle in (0 * angles[0], *angles))
    errors = [float((found - upright).norm() / upright.norm()) for found in turned]
    assert errors[-1] < 0.9 * max(errors)
    assert answer["worst error"] == pytest.approx(max(errors), rel=1e-6)
    assert answer["mean error"] == pytest.approx(sum(errors) / 5, rel=1e-6)


class Trained64(Trained):
    """The stored images are float32; this test wants rounding out of the way."""

    def forward(self, images):
        return self.network(images)


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
