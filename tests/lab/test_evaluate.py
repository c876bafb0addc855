"""Moves, scores and errors against closed forms."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn

from liespline import SO2, SO3, Scale, uniform
from liespline.lab.data import Split
from liespline.lab.evaluation.elements import transforms_of
from liespline.lab.evaluation.equivariance import layer_errors
from liespline.lab.evaluation.invariance import accuracies, relative_change
from liespline.lab.evaluation.scores import batches, confusion, in_precision, predictions, scores
from liespline.lab.runs.trained import Trained
from liespline.lab.settings import Config, Network
from liespline.lab.tasks.networks import Signature
from liespline.lab.tasks.objectives import Landmarks
from liespline.lab.transforms import moved
from liespline.models import classifier
from liespline.testing.moving import interior


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
    whole = interior((21, 21), Scale(2), torch.tensor([1.0]).double())
    smaller = interior((21, 21), Scale(2), torch.tensor([0.5]).double())
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
    found = accuracies(trained, split, transforms_of(trained), limit=4)
    by_angle = dict(zip(found["labels"], found["accuracy"], strict=True))
    assert (by_angle["0°"], by_angle["45°"], by_angle["180°"], by_angle["330°"]) == (1, 1, 0, 1)
    assert found["images"] == 4
    assert "change" not in found


def known_change():
    """The output is a moment, ±1 for an image as it is: it goes with the cosine of the angle."""
    cosines = np.cos(np.radians(11 + np.array([0, 22.5, 30, 45, 60, 67.5, 90, 112.5, 120, 135, 150, 157.5, 180])))
    pairs = [(a - b) ** 2 for a, b in itertools.combinations(cosines, 2)]
    return np.sqrt(np.array([np.mean(pairs), max(pairs)]) / np.mean(cosines**2))


def test_the_change_of_answers_is_that_of_all_pairs_of_copies(upper):
    found = relative_change(*upper, limit=4)
    names = ("relative_output_change", "relative_output_change_worst", "relative_output_change_between_grid")
    assert [found[name] for name in names] == pytest.approx([*known_change(), known_change()[0]], rel=2e-3)
    assert found["relative_output_change_on_grid"] is None, "a plain network has no pair on its grid"
    assert found["copies"] == 13
    assert found["interpolation_floor"] < 0.01, "brought back, moments are as they were"


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

    def turned(*how, **more):
        outside.append(torch.is_autocast_enabled(device))
        return moved(*how, **more)

    monkeypatch.setattr(trained.network, "forward", watched)
    monkeypatch.setattr("liespline.lab.transforms.moved", turned)
    accuracies(trained.to(device), split, transforms_of(trained), limit=4)
    found = relative_change(trained, split, limit=4)
    assert found["relative_output_change"] == pytest.approx(known_change()[0], rel=2e-3)
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
        assert len(rows) == 3
        assert all(row["left out"] == 0 for row in rows)
        worst[n_h] = max(row["worst error"] for row in rows)
    assert worst[4] < 1e-8
    assert worst[6] > 1e-4


def test_the_errors_of_a_layer_are_those_of_numpy():
    """Of four orientations one is planted wrong; the images are those that the network was shown."""
    torch.manual_seed(3)
    network = classifier(1, 2, uniform(SO2(), 4), widths=(3, 3, 3)).double().eval()
    network[0].x_samples[1] *= 0.3
    trained = Trained64(network, Config(task="images"), Signature(1, (18, 18), ("a", "b")))
    first = layer_errors(trained, torch.rand(2, 1, 18, 18, dtype=torch.float64))[0]
    shown = [images.numpy() for images in trained.seen]
    with torch.no_grad():
        maps = [network[0](torch.from_numpy(images)).numpy() for images in shown]
    size = maps[0].shape[-1]
    places = [
        (i, j)
        for i in range(size)
        for j in range(size)
        if math.hypot(i - size / 2 + 0.5, j - size / 2 + 0.5) <= (size - 1) / 4
    ]
    rows, columns = np.array(places).T
    errors, spreads = [], []
    for k in (1, 2, 3):
        assert np.allclose(shown[k], np.rot90(shown[0], k, (-2, -1)), atol=1e-9), "each was interpolated once"
        expected = np.roll(np.rot90(maps[0], k, (-2, -1)), k, 2)[..., rows, columns]
        errors.append(((maps[k][..., rows, columns] - expected) ** 2).mean())
        spreads.append(expected.var(axis=(0, 2, 3)).mean())
    assert not np.allclose(shown[0], np.rot90(np.rot90(shown[0])))
    assert first["mean error"] == pytest.approx(math.sqrt(np.mean(errors) / np.mean(spreads)), rel=1e-6)
    assert first["worst error"] == pytest.approx(math.sqrt(max(errors) / np.mean(spreads)), rel=1e-6)
    assert first["worst error"] > 1.005 * first["mean error"]


class Trained64(Trained):
    """The stored images are float32; this test wants rounding out of the way, and to know what was shown."""

    def forward(self, images):
        self.seen = [*getattr(self, "seen", ()), images]
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
