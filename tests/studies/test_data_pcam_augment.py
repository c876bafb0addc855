"""PCam's augmentation against the recipe, pixel by pixel."""

import colorsys

import numpy as np
import pytest
import torch

from liespline.lab.data.augment import Draws
from studies.data import pcam

X = np.random.default_rng(0).integers(0, 256, (32, 16, 16, 3), np.uint8)


class Known:
    """Stands in for the random draws, so that the result can be computed by hand."""

    def __init__(self, *values: float) -> None:
        self.values = values

    def uniform(self, images, count):
        return torch.tensor(self.values).view(count, 1).expand(count, len(images))


def naive(image: np.ndarray, turns, flip, brightness, saturation, hue, contrast) -> np.ndarray:
    """The released recipe for one (H, W, 3) image in float64, pixel by pixel."""
    x = np.rot90(image / 255.0, turns, (0, 1))
    x = x[:, ::-1] if flip else x
    x = (x + brightness).copy()
    for pixel in x.reshape(-1, 3):
        h, s, v = colorsys.rgb_to_hsv(*pixel)
        pixel[:] = colorsys.hsv_to_rgb((h + hue) % 1, float(np.clip(s * saturation, 0, 1)), v)
    mean = x.mean((0, 1))
    return np.clip((x - mean) * contrast + mean, 0, 1)


@pytest.mark.parametrize(
    ("draws", "meaning"),
    [
        ((0.0, 0.9, 0.5, 0.5, 0.5, 0.5), (0, False, 0, 1, 0, 1)),
        ((0.3, 0.9, 0.5, 0.5, 0.5, 0.5), (1, False, 0, 1, 0, 1)),
        ((0.99, 0.1, 0.5, 0.5, 0.5, 0.5), (3, True, 0, 1, 0, 1)),
        ((0.0, 0.9, 1.0, 0.5, 0.5, 0.5), (0, False, 64 / 255, 1, 0, 1)),
        ((0.0, 0.9, 0.0, 0.5, 0.5, 0.5), (0, False, -64 / 255, 1, 0, 1)),
        ((0.0, 0.9, 0.5, 1.0, 0.5, 0.5), (0, False, 0, 1.25, 0, 1)),
        ((0.0, 0.9, 0.5, 0.5, 0.0, 0.5), (0, False, 0, 1, -0.04, 1)),
        ((0.0, 0.9, 0.5, 0.5, 0.5, 0.0), (0, False, 0, 1, 0, 0.5)),
        ((0.6, 0.2, 0.8, 0.1, 0.9, 1.0), (2, True, 0.6 * 64 / 255, 0.8, 0.032, 1.5)),
    ],
)
def test_augmentation_against_a_naive_loop(draws, meaning):
    images = torch.from_numpy(X[:2, :12, :12].transpose(0, 3, 1, 2))
    out, labels = pcam.Augment()(images, torch.tensor([0, 1]), Known(*draws))
    expected = np.stack([naive(image, *meaning) for image in X[:2, :12, :12]])
    assert labels.tolist() == [0, 1]
    np.testing.assert_allclose(out.permute(0, 2, 3, 1).numpy(), expected, atol=2e-5)


def test_without_rot90_only_the_turns_differ():
    images = torch.from_numpy(X[:32, :16, :16].transpose(0, 3, 1, 2))
    labels = torch.zeros(32)
    seeded = lambda: Draws(torch.Generator().manual_seed(1))  # noqa: E731
    turned, _ = pcam.Augment()(images, labels, seeded())
    still, _ = pcam.Augment(rot90=False)(images, labels, seeded())
    again, _ = pcam.Augment()(images, labels, seeded())
    assert torch.equal(turned, again)
    # Flip comes after the turn, so the other order of turns undoes it; all four turns must occur.
    which = []
    for a, b in zip(turned, still, strict=True):
        matches = [k for k in range(-1, 3) if torch.allclose(torch.rot90(b, k, (-2, -1)), a, atol=1e-5)]
        assert matches
        which += matches
    assert set(which) == {-1, 0, 1, 2}


def test_any_turn_is_uniform_about_the_middle_and_keeps_it_in_view():
    image = np.full((600, 3, 33, 33), 100, np.uint8)
    image[..., 15:18, 24:27] = 200  # a spot to the right of the middle
    turned, again = (
        pcam.AnyTurn()(torch.from_numpy(image), torch.zeros(600), Draws(torch.Generator().manual_seed(0)))[0]
        for _ in range(2)
    )
    assert torch.equal(turned, again)
    grey = turned.mean(1).double().numpy()
    light = np.clip(grey - np.median(grey, (1, 2), keepdims=True), 0, None)
    rows, columns = np.mgrid[-16:17, -16:17]
    y, x = ((light * axis).sum((1, 2)) / light.sum((1, 2)) for axis in (rows, columns))
    assert abs(np.hypot(x, y) - 9).max() < 0.5
    angles = np.sort(np.arctan2(y, x) / (2 * np.pi) % 1)
    assert abs(angles - np.arange(600) / 600).max() < 0.07  # Kolmogorov and Smirnov: 0.067 once in a hundred
