"""What is said of transformed images and of layers, for networks whose answers to them are known."""

import itertools
import math
import re

import numpy as np
import pytest
import torch
from torch import nn

from lab.test_transforms import blob
from liespline import SO2, Scale, uniform
from liespline.lab.data import Split
from liespline.lab.evaluation.elements import copies_of, transforms_of
from liespline.lab.evaluation.equivariance import layer_errors
from liespline.lab.evaluation.scores import accuracies, relative_change
from liespline.lab.networks import Signature
from liespline.lab.report.views import turning_section
from liespline.lab.runs.trained import Trained
from liespline.lab.settings import Config, Network
from liespline.lab.transforms import moved
from liespline.models import classifier


class Known(nn.Module):
    """Logits by a function of images."""

    def __init__(self, function):
        super().__init__()
        self.function, self.unused = function, nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return torch.stack(self.function(x), 1)


def known(function, images, targets, group="none"):
    """A network that is such a function, and the split of images that it is asked about."""
    split = Split(images, np.array(targets), ("a", "b"))
    return Trained(Known(function), Config("images", network=Network(group=group)), Signature.of(split)).eval(), split


def light(x):
    """Logits that go with the light of an image above its rim."""
    return -x.mean((1, 2, 3)), x.mean((1, 2, 3))


def height(x):
    """1 if the light is in the upper half: right upright, wrong upside down."""
    down = torch.arange(x.shape[-2]) - (x.shape[-2] - 1) / 2
    up = -(down.to(x).unsqueeze(-1) * x).mean((1, 2, 3))
    return -up, up


@pytest.fixture
def upper():
    images = np.zeros((6, 15, 15), np.uint8)
    images[:3, 2:6, 5:10] = 255
    images[3:, 9:13, 5:10] = 255
    return known(height, images, [1, 1, 1, 0, 0, 0])


def test_accuracy_by_angle(upper):
    trained, split = upper
    found = accuracies(trained, split, transforms_of(trained), limit=4)
    by_angle = dict(zip(found["labels"], found["accuracy"], strict=True))
    assert (by_angle["0°"], by_angle["45°"], by_angle["180°"], by_angle["330°"]) == (1, 1, 0, 1)
    assert found["images"] == 4
    assert "change" not in found


def test_accuracy_is_on_the_same_images_as_upright():
    """Of ten images, every second is bright and answered rightly: of the five looked at, all."""
    images = np.stack([np.full((9, 9), 250 if i % 2 == 0 else 5, np.uint8) for i in range(10)])
    trained, split = known(lambda x: (x.mean((1, 2, 3)), 0.5 + 0 * x.mean((1, 2, 3))), images, [0] * 10)
    for limit, share in ((5, 1.0), (10, 0.5)):
        found = accuracies(trained, split, transforms_of(trained), limit)
        assert (found["images"], found["upright"], found["mean_accuracy"]) == (limit, share, share)


def known_change():
    """The output is a moment, ±1 for an image as it is: it goes with the cosine of the angle."""
    cosines = np.cos(np.radians(11 + np.array([0, 22.5, 30, 45, 60, 67.5, 90, 112.5, 120, 135, 150, 157.5, 180])))
    pairs = [(a - b) ** 2 for a, b in itertools.combinations(cosines, 2)]
    return np.sqrt(np.array([np.mean(pairs), max(pairs)]) / np.mean(cosines**2))


GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
def test_a_gpu_scores_as_it_trained_and_transforms_images_exactly(upper, device, monkeypatch):
    """bfloat16 inside the network alone: images transformed in it would be off by more than rotating them."""
    trained, split = upper
    trained.config = trained.config.updated(precision="bf16-mixed")
    inside, outside = [], []

    def watched(x):
        inside.append((torch.is_autocast_enabled(device), x.dtype))
        return Known.forward(trained.network, x.cpu()).to(device)

    def rotated(*how, **more):
        outside.append(torch.is_autocast_enabled(device))
        return moved(*how, **more)

    monkeypatch.setattr(trained.network, "forward", watched)
    monkeypatch.setattr("liespline.lab.transforms.moved", rotated)
    accuracies(trained.to(device), split, transforms_of(trained), limit=4)
    found = relative_change(trained, split, limit=4)
    assert found["relative_output_change"] == pytest.approx(known_change()[0], rel=2e-3)
    assert set(inside) == {(device == "cuda", torch.float32)}
    assert set(outside) == {False}


def test_scales_shrink_to_half_and_nothing_leaves_the_view():
    image = (200 * blob(33, (0.0, 0.0), 1.0)[0, 0]).numpy().astype(np.uint8)
    wide = np.kron(image[12:21, 12:21], np.ones((3, 3), np.uint8))[:27, :27]  # smooth enough to be shrunk
    images = np.zeros((2, 33, 33), np.uint8)
    images[:, 3:30, 3:30] = np.stack([wide, wide // 2])
    trained, split = known(light, images, [1, 1], "scale")
    elements = transforms_of(trained)
    assert elements.group == Scale(2)
    assert (float(elements.values[0]), float(elements.values[-1])) == pytest.approx((1.0, 0.5))
    assert list(elements.labels) == sorted(elements.labels, reverse=True)
    assert accuracies(trained, split, elements, 2)["upright"] == 1
    # The light of a scaled image is s² of it: an image of light 1 and one of ½ differ by a half at s = 1.
    squares = [float(s) ** 2 for s in copies_of(trained).values[:, 0]]
    spread = np.mean(np.square(squares)) / 16
    changes = [(a - b) ** 2 * (1 + 1 / 4) / 2 for a, b in itertools.combinations(squares, 2)]
    change = relative_change(trained, split, 2)
    assert change["relative_output_change"] == pytest.approx(math.sqrt(np.mean(changes) / spread), rel=0.05)
    assert change["relative_output_change_worst"] == pytest.approx(math.sqrt(max(changes) / spread), rel=0.05)


def test_nothing_leaves_the_view_when_images_are_squeezed():
    """A squeeze keeps areas, so the light of an image stays, unless some of it is carried over the edge."""
    wide = sum(blob(33, centre, 1.0)[0] for centre in ((0.0, 0.0), (13.0, 0.0), (0.0, -13.0)))
    images = torch.cat([200 * wide, 100 * wide]).numpy().astype(np.uint8)
    assert relative_change(*known(light, images, [1, 0], "gl2"), 2)["relative_output_change_worst"] < 0.05


def test_a_bright_image_does_not_darken_when_it_is_rotated():
    images = np.stack([np.full((15, 15), level, np.uint8) for level in (230, 200)])
    change = relative_change(*known(light, images, [1, 1], "so2"), 2)
    assert change["relative_output_change_worst"] < 1e-5, "nothing black moves in"


def test_maps_that_are_brought_back_lie_where_they_lay():
    torch.manual_seed(0)
    network = classifier(1, 2, uniform(SO2(), 4), widths=(3, 3, 3)).eval()
    config = Config(task="images", network=Network(group="so2", elements=4))
    trained = Trained(network, config, Signature(1, (17, 17), ("a", "b"))).eval()
    section = turning_section(trained, torch.rand(1, 17, 17, generator=torch.Generator().manual_seed(0)))
    assert float(re.search(r"differs by ([\d.]+) %", section.text)[1]) <= 0.1, "quarter turns are exact"


class Trained64(Trained):
    """The stored images are float32; these tests want rounding out of the way, and to know what was shown."""

    def forward(self, images):
        self.seen = [*getattr(self, "seen", ()), images]
        return self.network(images)


def test_the_errors_of_a_layer_are_those_of_numpy():
    """Of four orientations one is planted wrong; the images are those that the network was shown."""
    torch.manual_seed(3)
    network = classifier(1, 2, uniform(SO2(), 4), widths=(3, 3, 3)).double().eval()
    trained = Trained64(network, Config(task="images"), Signature(1, (18, 18), ("a", "b")))
    network[0].x_samples[1] *= 0.3
    first = layer_errors(trained, torch.rand(2, 1, 18, 18, dtype=torch.float64))[0]
    shown = [images.numpy() for images in trained.seen]
    with torch.no_grad():
        maps = [network[0](torch.from_numpy(images)).numpy() for images in shown]
    size = maps[0].shape[-1]
    axis = np.arange(size) - (size - 1) / 2
    rows, columns = np.nonzero(np.hypot(axis[:, None], axis) <= (size - 1) / 4)
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
