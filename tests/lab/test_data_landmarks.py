"""Landmarks: heatmaps, their weights, the success rate, and zooming image and landmarks together."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from liespline.lab.data.augment import Draws, Zoom
from liespline.lab.data.landmarks import balancing_weights, found, heatmaps, locate
from liespline.lab.tasks.objectives import Landmarks


def test_balancing_weights_have_mean_one_and_balance():
    maps = heatmaps(torch.tensor([[[60.2, 40.0], [0.0, 127.0], [-50.0, 10.0]]]), (128, 128))
    weights = balancing_weights(maps)
    assert weights.mean((-2, -1)).tolist()[0] == pytest.approx([1, 1, 1], abs=1e-4)
    for landmark in (0, 1):
        t, w = maps[0, landmark].double(), weights[0, landmark]
        m = sum(sum(row) for row in t.tolist()) / 128**2
        for i, j in ((60, 40), (0, 127), (58, 43), (100, 5)):
            # Summed over the map, the first term gives half of all weight to the landmark.
            expected = 0.5 * t[i, j] / m + 0.5 * (1 - t[i, j]) / (1 - m)
            assert w[i, j].item() == pytest.approx(expected.item(), rel=1e-4)
    assert torch.equal(weights[0, 2], torch.ones(128, 128)), "an absent landmark weighs like background"


def test_success_rate_by_hand():
    landmarks = torch.tensor([[[10.0, 20.0], [64.0, 64.0], [100.0, 3.0]]])
    maps = heatmaps(landmarks + torch.tensor([[[0.0, 0.0], [6.0, 8.0], [-6.0, 7.0]]]), (128, 128))
    assert locate(maps).tolist() == [[[10, 20], [70, 72], [94, 10]]]
    assert found(locate(maps), landmarks).tolist() == [[True, False, True]], "10 px away is not less than 10"


def test_the_released_scripts_blur_the_sigmoid_with_nine_taps():
    """Against SciPy's Gaussian of σ = 1, cut off at four, with zeros beyond the image; the paper has no blur."""
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 3, (4, 5, 24, 20))
    located = locate(torch.from_numpy(logits), 1.0).tolist()
    for image in range(4):
        for landmark in range(5):
            maps = 1 / (1 + np.exp(-logits[image, landmark]))
            smooth = ndimage.gaussian_filter(maps, 1.0, truncate=4.0, mode="constant")
            assert located[image][landmark] == list(np.unravel_index(smooth.argmax(), smooth.shape))
    assert np.unravel_index(logits[0, 0].argmax(), (24, 20)) != tuple(located[0][0])
    # One very sure pixel beside a broad blob: it would win if logits were blurred, and loses to the blob's sigmoid.
    sure = 8 * heatmaps(torch.tensor([[[10.0, 12.0]]], dtype=torch.float64), (24, 24)) - 4
    sure[0, 0, 20, 4] = 200.0
    assert locate(sure).tolist() == [[[20, 4]]]
    assert locate(sure, 1.0).tolist() == [[[10, 12]]]


@pytest.mark.parametrize("preset", ["paper", "released"])
def test_zoom_moves_image_and_landmarks_together(preset):
    rng = np.random.default_rng(0)
    points = torch.from_numpy(rng.uniform(48, 80, (64, 1, 2)).astype(np.float32))
    images = (255 * heatmaps(points, (128, 128), sigma=4.0)).round().to(torch.uint8)
    zoom = Zoom(preset)
    zoomed, moved = zoom(images, points, Draws(torch.Generator().manual_seed(0)))
    again, _ = zoom(images, points, Draws(torch.Generator().manual_seed(0)))
    assert torch.equal(zoomed, again)
    axis = torch.arange(128.0)
    mass = zoomed[:, 0].sum((-2, -1))
    centre = torch.stack([(zoomed[:, 0].sum(2) * axis).sum(1), (zoomed[:, 0].sum(1) * axis).sum(1)], -1)
    assert (centre / mass[:, None] - moved[:, 0]).abs().max() < 0.05, "each landmark is still where its blob is"
    factors = (mass / (images[:, 0].float() / 255).sum((-2, -1))).sqrt()  # a blob's area grows as the square
    assert factors.min() > 0.999
    assert factors.max() < (1.4 if preset == "paper" else 1 / 0.704) + 1e-3
    assert factors.max() > 1.35
    untouched = int(((factors - 1).abs() < 1e-3).sum())
    assert (20 < untouched < 44) if preset == "released" else untouched <= 1


def test_unknown_preset_is_named():
    with pytest.raises(ValueError, match="'papre' is unknown; choose paper or released"):
        Zoom("papre")


def test_half_precision_does_not_round_the_landmarks():
    torch.manual_seed(0)
    output, landmarks = torch.randn(2, 5, 128, 128).bfloat16(), 90 + 30 * torch.rand(2, 5, 2)
    objective = Landmarks(0.0)
    torch.testing.assert_close(objective.loss(output, landmarks), objective.loss(output.float(), landmarks))
