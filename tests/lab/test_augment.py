"""Random transforms of training images: uniform, and of their kind; `truth` shows that images and masks follow them."""

import numpy as np
import pytest
import torch
from scipy import ndimage, stats

from liespline.lab.data import intensity
from liespline.lab.data.augment import Augmentation, Draws, words_of
from liespline.lab.settings import Config
from liespline.lab.tasks.defaults import DEFAULTS


def matrices(name, d):
    """The matrices A of 3,000 images f(Ax)."""
    images = torch.zeros(3000, 1, *(4,) * d)
    return Augmentation(words_of(name)).matrices(images, Draws(torch.Generator().manual_seed(0))).double()


def uniform(values):
    """Whether numbers spread evenly over [0, 1)."""
    return stats.kstest(values.numpy(), "uniform").pvalue > 0.01


def turned(found):
    """By which part of the circle the first axis is turned in the first plane."""
    return torch.atan2(found[:, 1, 0], found[:, 0, 0]) / (2 * torch.pi) % 1


def test_turns_are_uniform_on_the_whole_circle():
    assert uniform(turned(matrices("rotate", 2)))


def test_turns_of_volumes_are_uniform_on_all_rotations():
    found = matrices("rotate", 3)
    cosine = ((found.diagonal(dim1=-2, dim2=-1).sum(-1) - 1) / 2).clamp(-1, 1)
    # Haar measure: the angle of a rotation has density (1 − cos θ) / π, and a point goes everywhere alike.
    assert stats.kstest(torch.acos(cosine).numpy(), lambda t: (t - np.sin(t)) / np.pi).pvalue > 0.01
    assert all(uniform((found[:, axis, 0] + 1) / 2) for axis in range(3))  # Archimedes


@pytest.mark.parametrize("d", [2, 3])
def test_every_one_is_of_its_kind(d):
    found = {name: matrices(name, d) for name in ("rotate", "rotate+flip", "affine", "zoom-shear")}
    for kind in ("rotate", "rotate+flip"):
        assert (found[kind] @ found[kind].mT - torch.eye(d)).abs().max() < 1e-5, kind
    mirrored = {kind: (torch.linalg.det(m) < 0).double().mean().item() for kind, m in found.items()}
    assert mirrored["rotate"] == mirrored["affine"] == 0
    assert 0.45 < mirrored["rotate+flip"] < 0.55
    sizes = torch.linalg.det(found["affine"]) ** (-1 / d)
    assert uniform((sizes - 0.9) / 0.2)
    stretch = torch.linalg.svdvals(found["affine"])
    # A shear by k has the singular values √(1 + k²/4) ± k/2: a ratio of about 1 + k.
    assert 1.1 < (stretch[:, 0] / stretch[:, -1]).max() < 1.11
    upright = found["zoom-shear"] / found["zoom-shear"][:, :1, :1]
    assert uniform((upright[:, 0, 1] + 0.1) / 0.2)
    upright[:, 0, 1] = 0
    assert (upright - torch.eye(d)).abs().max() < 1e-6, "an upright slant never turns"


def test_what_stands_upright_spins_about_its_last_axis():
    found = matrices("rotate-z+zoom-shear", 3)
    assert found[:, 2, :2].abs().max() == found[:, :2, 2].abs().max() == 0
    assert uniform((1 / found[:, 2, 2] - 0.9) / 0.2)
    assert uniform(turned(found))
    assert (found[:, :2, 0].norm(dim=-1) / found[:, 2, 2] - 1).abs().max() < 1e-6, "as large around as high"


def test_half_of_all_photographs_are_mirrored_left_to_right_after_their_slant():
    slanted, found = matrices("zoom-shear", 2), matrices("mirror+zoom-shear", 2)
    assert torch.equal(found[:, :, 0], slanted[:, :, 0])
    signs = found[:, 1, 1] / slanted[:, 1, 1]
    assert torch.equal(found[:, :, 1], signs.unsqueeze(1) * slanted[:, :, 1])
    assert set(signs.tolist()) == {1, -1}
    assert 0.45 < (signs < 0).double().mean() < 0.55


def pictures(d, dtype=torch.float64):
    """Three images of two channels."""
    return torch.rand(3, 2, *(9, 8, 7)[:d], generator=torch.Generator().manual_seed(1), dtype=dtype)


def strengths(d, *values):
    """One number per image and channel."""
    return torch.tensor(values, dtype=torch.float64).view(3, 2, *(1,) * d)


@pytest.mark.parametrize("d", [2, 3])
def test_blurred_images_are_those_of_scipy(d):
    x, deviation = pictures(d), strengths(d, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    found = intensity.blurred(x, deviation)
    for image, own, sigma in zip(x.flatten(0, 1), found.flatten(0, 1), deviation.flatten(), strict=True):
        right = ndimage.gaussian_filter(image.numpy(), sigma.item(), mode="nearest", radius=intensity.RADIUS)
        assert np.abs(own.numpy() - right).max() < 1e-12


@pytest.mark.parametrize("d", [2, 3])
def test_contrast_and_gamma_keep_what_they_should(d):
    x, space = pictures(d), tuple(range(2, d + 2))
    low, mean, high = x.amin(space, keepdim=True), x.mean(space, keepdim=True), x.amax(space, keepdim=True)
    less = intensity.contrasted(x, strengths(d, *[0.5] * 6))
    assert (less - (x + mean) / 2).abs().max() < 1e-12
    more = intensity.contrasted(x, strengths(d, *[1.5] * 6))
    assert torch.equal(more.amin(space, keepdim=True), low)
    assert torch.equal(more.amax(space, keepdim=True), high)
    inside = (more > low) & (more < high)
    assert (more - x - (x - mean) / 2)[inside].abs().max() < 1e-12
    squared = intensity.to_power(x, strengths(d, *[2.0] * 6))
    assert (squared.mean(space) - x.mean(space)).abs().max() < 1e-12
    assert (squared.std(space) - x.std(space)).abs().max() < 1e-12
    parabola = ((x - low) / (high - low)) ** 2  # up to scale and offset: correlation 1 with what was found
    pairs = zip(squared.flatten(0, 1), parabola.flatten(0, 1), strict=True)
    assert all(np.corrcoef(one.flatten(), other.flatten())[0, 1] > 1 - 1e-12 for one, other in pairs)
    flat = torch.full_like(x, 0.3)
    for change in (intensity.contrasted, intensity.to_power, intensity.blurred):
        assert (change(flat, strengths(d, *[0.7] * 6)) - flat).abs().max() < 1e-12, "a channel of one value stays"


def test_noise_is_in_units_of_the_image():
    x, normal = torch.rand(2, 1, 300, 300) * torch.tensor([1.0, 50.0]).view(2, 1, 1, 1), torch.randn(2, 1, 300, 300)
    added = intensity.noisy(x, torch.full((2, 1, 1, 1), 0.1), normal) - x
    assert (added.std((1, 2, 3)) / x.std((1, 2, 3)) - 0.1**0.5).abs().max() < 0.01
    assert torch.equal(intensity.noisy(x, torch.zeros(2, 1, 1, 1), normal), x)


def test_segmentation_alone_has_it_by_default_and_files_of_before_keep_what_they_had():
    assert {name for name, config in DEFAULTS.items() if config.training.augment != "none"} == {"segment"}
    before = DEFAULTS["segment"].updated(augment="none")
    assert Config.from_yaml(before.to_yaml(), "config.yaml", lambda task, root: DEFAULTS[task]) == before


SHARES = {"noise": 0.1, "blur": 0.2, "brightness": 0.15, "contrast": 0.15, "gamma": 1 - 0.9 * 0.7}


@pytest.mark.parametrize("word", intensity.WORDS)
def test_as_many_images_as_in_nnunet_are_varied_each_channel_by_itself(word):
    x = torch.rand(4000, 2, 6, 6, generator=torch.Generator().manual_seed(2))
    found, targets = Augmentation(words_of(word))(x, torch.ones(4000), Draws(torch.Generator().manual_seed(3)))
    changed = (found != x).flatten(2).any(2)
    share = changed.any(1).double().mean().item()
    assert abs(share - SHARES[word]) < 4 * (SHARES[word] * (1 - SHARES[word]) / 4000) ** 0.5
    assert torch.equal(targets, torch.ones(4000))
    if word == "brightness":
        factors = (found / x)[changed.all(1)].flatten(2).mean(2)
        assert uniform((factors[:, 0].double() - 0.75) / 0.5)
        assert abs(np.corrcoef(factors.T)[0, 1]) < 0.15


@pytest.mark.parametrize("d", [2, 3])
def test_intensities_commute_with_rotations_and_reflections_and_leave_masks_alone(d):
    words = words_of("blur+brightness+contrast+gamma")
    x = torch.rand(40, 2, *(9,) * d, generator=torch.Generator().manual_seed(4))
    masks = (x[:, 0] > 0.5).long()

    def varied(images):
        return Augmentation(words)(images, masks, Draws(torch.Generator().manual_seed(5)))

    found, same = varied(x)
    assert (found - x).abs().max() > 0.01
    assert torch.equal(same, masks)
    for moved in (lambda y: y.rot90(1, (-2, -1)), lambda y: y.flip(2), lambda y: y.transpose(2, -1)):
        assert (varied(moved(x))[0] - moved(found)).abs().max() < 1e-5


def test_images_are_moved_as_without_and_processes_see_what_one_would_see():
    x, masks = torch.rand(8, 1, 12, 12), torch.randint(2, (8, 12, 12))

    def drawn(words, rows=slice(None), world=1, rank=0):
        draws = Draws(torch.Generator().manual_seed(6), world, rank)
        return Augmentation(words_of(words))(x[rows], masks[rows], draws)

    alone, both = drawn("affine"), drawn("affine+intensity")
    assert torch.equal(alone[1], both[1])
    assert (alone[0] == both[0]).flatten(1).all(1).any(), "an image whose intensities stay is moved as ever"
    for rank in range(2):
        assert torch.equal(both[0][rank::2], drawn("affine+intensity", slice(rank, None, 2), 2, rank)[0])
