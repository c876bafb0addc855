"""Scores, moves and random turns against what they must be."""

import itertools
import math
import re

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from liespline import SO2, Scale, uniform
from liespline.lab.data import Split
from liespline.lab.data.augment import Augmentation, Draws, words_of
from liespline.lab.data.split import in_colours
from liespline.lab.evaluation.moves import copies_of, moves_of, under_moves
from liespline.lab.evaluation.output_change import change_of_answers
from liespline.lab.evaluation.scores import confusion
from liespline.lab.moving import in_disc, moved, rim_colour
from liespline.lab.report.views import turning_section
from liespline.lab.runs.trained import Trained
from liespline.lab.settings import Config, Network
from liespline.lab.tasks.grids import make_grid
from liespline.lab.tasks.networks import Signature
from liespline.lab.tasks.objectives import Classification
from liespline.models import classifier

ROTATE = Augmentation({"rotate"})


def test_true_classes_go_down_and_answers_across():
    outputs = torch.eye(3)[torch.tensor([1, 1, 2, 0])]
    assert confusion(outputs, torch.tensor([0, 0, 0, 1]), 3) == [[0, 2, 1], [1, 0, 0], [0, 0, 0]]


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


def spot(side, centre, d):
    """A Gaussian at a place measured from the centre: (1, 1, side, …)."""
    axes = [torch.arange(side) - (side - 1) / 2] * d
    place = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)
    return torch.exp(-(place - torch.tensor(centre)).square().sum(-1) / 2)[None, None]


def centres(images):
    """Where the light of each image lies, from the centre: (B, C, d)."""
    space = images.shape[2:]
    axes = [torch.arange(n) - (n - 1) / 2 for n in space]
    place = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).flatten(0, -2)
    light = images.flatten(2)
    return (light @ place) / light.sum(-1, keepdim=True)


def test_turns_are_uniform_on_the_whole_circle_about_the_centre():
    images = spot(24, (4.0, 0.0), 2).expand(3000, 1, 24, 24)  # an even side: the centre is between samples
    out, _ = ROTATE(images, torch.zeros(3000), Draws(torch.Generator().manual_seed(0)))
    found = centres(out)[:, 0]
    assert found.norm(dim=-1) == pytest.approx(4.0, abs=0.1)
    angles = torch.atan2(found[:, 1], found[:, 0]).numpy() / (2 * np.pi) + 0.5
    assert stats.kstest(angles, "uniform").pvalue > 0.01


def test_turns_of_volumes_are_uniform_on_all_rotations():
    pair = torch.cat([spot(11, (3.0, 0.0, 0.0), 3), spot(11, (0.0, 3.0, 0.0), 3)], 1)
    images = pair.expand(1500, 2, 11, 11, 11)
    out, _ = ROTATE(images, torch.zeros(1500), Draws(torch.Generator().manual_seed(0)))
    first, second = nn.functional.normalize(centres(out), dim=-1).unbind(1)
    assert (first * second).sum(-1).abs().max() < 0.1, "rigid"
    matrices = torch.stack([first, second, torch.linalg.cross(first, second)], -1)
    cosine = ((matrices.diagonal(dim1=-2, dim2=-1).sum(-1) - 1) / 2).clamp(-1, 1)
    angle = torch.acos(cosine).numpy()
    # Haar measure: the angle of a rotation has density (1 − cos θ) / π, and a point goes everywhere alike.
    assert stats.kstest(angle, lambda t: (t - np.sin(t)) / np.pi).pvalue > 0.01
    for axis in range(3):
        assert stats.kstest((first[:, axis].numpy() + 1) / 2, "uniform").pvalue > 0.01  # Archimedes


@pytest.mark.parametrize("d", [2, 3])
def test_every_move_is_about_the_centre_and_of_its_kind(d):
    """Spots tell the matrix that moved them: orthogonal or not, mirrored or not, its size and its slant."""
    spots = [spot(16, tuple(3.0 * (i == axis) for i in range(d)), d) for axis in range(d)]  # the centre between samples
    images = torch.cat(spots, 1).expand(200, d, *(16,) * d)
    found = {}
    for name in ("rotate", "rotate+flip", "affine", "flip"):
        move = Augmentation(words_of(name))
        out, _ = move(images, torch.zeros(200), Draws(torch.Generator().manual_seed(0)))
        found[name] = centres(out).double() / 3
    for kind in ("rotate", "rotate+flip", "flip"):
        gram = found[kind] @ found[kind].mT
        assert (gram - torch.eye(d)).abs().max() < 0.1, kind
    mirrored = {kind: (torch.linalg.det(m) < 0).double().mean().item() for kind, m in found.items()}
    assert mirrored["rotate"] == mirrored["affine"] == 0
    assert 0.4 < mirrored["rotate+flip"] < 0.6
    assert (found["flip"].abs() - torch.eye(d)).abs().max() < 1e-3, "along the axes alone"
    sizes = torch.linalg.det(found["affine"]) ** (1 / d)
    assert 0.85 < sizes.min() < 0.93
    assert 1.07 < sizes.max() < 1.15
    stretch = torch.linalg.svdvals(found["affine"])
    # A shear by k has the singular values √(1 + k²/4) ± k/2: a ratio of about 1 + k.
    assert 1.07 < (stretch[:, 0] / stretch[:, -1]).max() < 1.16


def test_an_upright_slant_never_turns():
    moved = Augmentation({"zoom-shear"}).matrices(torch.zeros(500, 1, 8, 8), Draws(torch.Generator().manual_seed(0)))
    assert torch.equal(moved[:, 1, 0], torch.zeros(500))
    assert float(moved[:, 0, 0].min()) > 1 / 1.1
    assert float((moved[:, 0, 1] / moved[:, 0, 0]).abs().max()) <= 0.1 + 1e-6


def test_what_stands_upright_spins_about_its_last_axis():
    """A mast stays on the axis and as high as its zoom says; a spot beside it goes round at its own height."""
    # Far from the rim, whose colour moves in.
    pair = torch.cat([spot(20, (0.0, 0.0, 3.0), 3), spot(20, (3.0, 0.0, -2.0), 3)], 1)
    spin, draws = Augmentation({"rotate-z", "zoom-shear"}), Draws(torch.Generator().manual_seed(0))
    out, _ = spin(pair.expand(1500, 2, 20, 20, 20), torch.zeros(1500), draws)
    mast, beside = centres(out).unbind(1)
    assert mast[:, :2].abs().max() < 0.02
    zoom = mast[:, 2] / 3
    assert 0.88 < zoom.min() < 0.92 < 1.08 < zoom.max() < 1.12
    assert (beside[:, 2] / -2 - zoom).abs().max() < 0.05
    angle = torch.atan2(beside[:, 1], beside[:, 0]).numpy() / (2 * np.pi) + 0.5
    assert stats.kstest(angle, "uniform").pvalue > 0.01
    assert (beside[:, :2].norm(dim=-1) / zoom - 3).abs().max() < 0.4, "slanted by up to 0.1"


def test_half_of_all_photographs_are_mirrored_left_to_right_after_their_slant():
    x = torch.zeros(500, 1, 9, 9)
    x[..., 4, 6] = 1.0  # right of the centre, in its row
    slanted, mirrored = (
        Augmentation(words_of(name))(x, torch.zeros(500), Draws(torch.Generator().manual_seed(0)))[0][:, 0].numpy()
        for name in ("zoom-shear", "mirror+zoom-shear")
    )
    flipped = np.abs(mirrored - slanted[..., ::-1]).max((1, 2)) < 1e-5
    kept = np.abs(mirrored - slanted).max((1, 2)) < 1e-5
    assert (flipped ^ kept).all()
    assert 200 < flipped.sum() < 300


def test_what_moves_in_has_the_colour_of_the_rim():
    images = torch.full((8, 3, 15, 15), 0.8)
    images[:, 1] = 0.6
    images[:, :, 5:10, 5:10] = 0.1
    out, _ = ROTATE(images, torch.zeros(8), Draws(torch.Generator().manual_seed(1)))
    corners = out[:, :, [0, 0, -1, -1], [0, -1, 0, -1]]
    assert torch.allclose(corners[:, [0, 2]], torch.tensor(0.8), atol=1e-3)
    assert torch.allclose(corners[:, 1], torch.tensor(0.6), atol=1e-3)
    assert torch.allclose(rim_colour(images)[0, :, 0, 0], torch.tensor([0.8, 0.6, 0.8]), atol=1e-6)


def test_only_the_disc_moves():
    images = torch.rand(2, 1, 21, 21, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    inside, around = in_disc(images)
    far = torch.stack(torch.meshgrid(*[torch.arange(21.0) - 10] * 2, indexing="ij"), -1).norm(dim=-1)
    assert (inside[..., far > 10.5] == 0).all()
    assert torch.allclose((inside + around)[..., far < 9.4], images[..., far < 9.4])
    smooth, _ = in_disc(spot(21, (6.0, 2.0), 2))
    eighth = moved(smooth, SO2(), torch.tensor([math.pi / 4], dtype=torch.float64))
    assert float(eighth.sum()) == pytest.approx(float(smooth.sum()), rel=0.01), "nothing leaves the view"


class Light(nn.Module):
    """Logits that go with the light of an image above its rim."""

    def __init__(self):
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        light = x.mean((1, 2, 3))
        return torch.stack([-light, light], 1)


def test_scale_moves_shrink_to_half_and_nothing_leaves_the_view():
    image = (200 * spot(33, (0.0, 0.0), 2)[0, 0]).numpy().astype(np.uint8)
    wide = np.kron(image[12:21, 12:21], np.ones((3, 3), np.uint8))[:27, :27]  # smooth enough to be shrunk
    images = np.zeros((2, 33, 33), np.uint8)
    images[:, 3:30, 3:30] = np.stack([wide, wide // 2])
    split = Split(images, np.array([1, 1]), ("dark", "light"))
    trained = Trained(Light(), Config(task="images", network=Network(group="scale")), Signature.of(split)).eval()
    moves = moves_of(trained)
    assert moves.group == Scale(2)
    assert (float(moves.elements[0]), float(moves.elements[-1])) == pytest.approx((1.0, 0.5))
    assert list(moves.labels) == sorted(moves.labels, reverse=True)
    found = under_moves(trained, split, moves, 2)
    assert found["upright"] == 1
    # The light of a scaled image is s² of it: an image of light 1 and one of ½ differ by a half at s = 1.
    squares = [float(s) ** 2 for s in copies_of(trained).elements[:, 0]]
    spread = np.mean(np.square(squares)) / 16
    changes = [(a - b) ** 2 * (1 + 1 / 4) / 2 for a, b in itertools.combinations(squares, 2)]
    change = change_of_answers(trained, split, 2)
    assert change["relative_output_change"] == pytest.approx(math.sqrt(np.mean(changes) / spread), rel=0.05)
    assert change["relative_output_change_worst"] == pytest.approx(math.sqrt(max(changes) / spread), rel=0.05)


def test_nothing_leaves_the_view_when_images_are_squeezed():
    """A squeeze keeps areas, so the light of an image stays, unless some of it is carried over the edge."""
    wide = spot(33, (0.0, 0.0), 2) + spot(33, (13.0, 0.0), 2) + spot(33, (0.0, -13.0), 2)
    images = torch.cat([200 * wide[:, 0], 100 * wide[:, 0]]).numpy().astype(np.uint8)
    split = Split(images, np.array([1, 0]), ("dark", "light"))
    trained = Trained(Light(), Config(task="images", network=Network(group="gl2")), Signature.of(split)).eval()
    assert change_of_answers(trained, split, 2)["relative_output_change_worst"] < 0.05


def test_a_bright_image_does_not_darken_when_it_is_turned():
    images = np.stack([np.full((15, 15), level, np.uint8) for level in (230, 200)])
    split = Split(images, np.array([1, 1]), ("dark", "light"))
    trained = Trained(Light(), Config(task="images", network=Network(group="so2")), Signature.of(split)).eval()
    assert change_of_answers(trained, split, 2)["relative_output_change_worst"] < 1e-5, "nothing black moves in"


def test_turned_accuracy_is_on_the_same_images_as_upright():
    class First(nn.Module):
        def __init__(self):
            super().__init__()
            self.unused = nn.Parameter(torch.zeros(1))

        def forward(self, x):
            return torch.stack([x.mean((1, 2, 3)), 0.5 + 0 * x.mean((1, 2, 3))], 1)

    # Of ten images, every second is bright and answered rightly: of the five looked at, all.
    images = np.stack([np.full((9, 9), 250 if i % 2 == 0 else 5, np.uint8) for i in range(10)])
    split = Split(images, np.zeros(10, np.int64), ("a", "b"))
    trained = Trained(First(), Config(task="images", network=Network(group="none")), Signature.of(split)).eval()
    found = under_moves(trained, split, moves_of(trained), 5)
    assert (found["images"], found["upright"], found["mean_accuracy"]) == (5, 1.0, 1.0)
    whole = under_moves(trained, split, moves_of(trained), 10)
    assert (whole["images"], whole["upright"], whole["mean_accuracy"]) == (10, 0.5, 0.5)


def test_maps_that_are_moved_back_lie_where_they_lay():
    torch.manual_seed(0)
    network = classifier(1, 2, uniform(SO2(), 4), widths=(3, 3, 3)).eval()
    config = Config(task="images", network=Network(group="so2", elements=4))
    trained = Trained(network, config, Signature(1, (17, 17), ("a", "b"))).eval()
    image = torch.rand(1, 17, 17, generator=torch.Generator().manual_seed(0))
    section = turning_section(trained, image)
    differs = float(re.search(r"differs by ([\d.]+) %", section.text)[1])
    assert differs <= 0.1, "quarter turns are exact"


def test_twenty_four_rotations_are_those_of_the_cube():
    grid = make_grid(Network(group="so3", elements=24), 3)
    whole = grid.elements.round()
    assert torch.allclose(grid.elements, whole, atol=1e-12)
    assert torch.equal(whole.abs().sum(-1), torch.ones(24, 3, dtype=whole.dtype)), "axes go to axes"
    assert torch.allclose(torch.linalg.det(grid.elements), torch.ones(24, dtype=grid.elements.dtype))
    assert len({tuple(h.flatten().tolist()) for h in whole}) == 24
