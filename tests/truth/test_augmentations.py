"""`--augment`: one set of words for all tasks, and images that are transformed together with their masks."""

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage

from lab.data_files import nifti
from liespline.lab.data.augment import Augmentation, Draws, words_of
from liespline.lab.data.samples import IGNORE
from liespline.lab.settings import ConfigError
from liespline.lab.training.learner import Learner
from truth.shell import fails, succeeds

PLANE = ["rotate", "flip", "mirror", "zoom-shear", "elastic", "affine", "rotate+flip", "mirror+zoom-shear+elastic"]
PLANE += ["rotate+flip+zoom-shear+elastic"]
SPACE = ["rotate", "flip", "zoom-shear", "affine", "rotate-z", "rotate-z+zoom-shear", "rotate+flip", "rotate-z+flip"]
EVERY = [*((name, (20, 31)) for name in PLANE), *((name, (16, 11, 18)) for name in SPACE)]
LEVELS = (0.25, 0.6)


def draws(seed=0, world=1, rank=0):
    return Draws(torch.Generator().manual_seed(seed), world, rank)


def hills(space, count=12):
    """Smooth images, and masks of three classes that say how high they are: (B, 1, *space) and (B, *space)."""
    rng, place = np.random.default_rng(0), np.indices(space)
    images = np.zeros((count, 1, *space), np.float32)
    for image in images:
        for height in (1.0, 0.7):
            centre = rng.uniform(0.3, 0.7, len(space)) * space
            image[0] += height * np.exp(-sum((p - c) ** 2 for p, c in zip(place, centre, strict=True)) / 40)
    return torch.from_numpy(images), torch.from_numpy(np.digitize(images[:, 0], LEVELS))


def agreement(images, masks):
    """The share of voxels whose class is that of their height: of those not near a level, or near what moved in."""
    far = np.min([np.abs(images[:, 0] - level) for level in LEVELS], axis=0) > 0.13
    known = far & np.stack([ndimage.binary_erosion(mask != IGNORE, iterations=2) for mask in masks])
    assert known.mean() > 0.05
    return (np.digitize(images[:, 0], LEVELS) == masks)[known].mean()


@pytest.mark.parametrize(("name", "space"), EVERY)
def test_image_and_mask_are_transformed_together(name, space):
    images, masks = hills(space)
    module = Augmentation(words_of(name))
    moved, found = module(images, masks, draws())
    assert found.dtype == masks.dtype
    assert agreement(moved.numpy(), found.numpy()) > 0.998
    assert (moved - images).abs().amax((1, 2, *range(3, images.ndim))).max() > 0.05
    if name != "zoom-shear":  # by less than a voxel, mostly
        _, others = module(images, masks, draws(1))
        assert agreement(moved.numpy(), others.numpy()) < 0.995, "masks by other numbers would be noticed"
    assert {0, 1, 2} <= set(found.unique().tolist()) <= {0, 1, 2, IGNORE}


@pytest.mark.parametrize(("name", "space"), EVERY)
def test_every_process_sees_what_one_would_have_seen(name, space):
    images, masks = hills(space, 6)
    module = Augmentation(words_of(name))
    whole, truth = module(images, masks, draws())
    for rank in (0, 1):
        moved, found = module(images[rank::2], masks[rank::2], draws(0, 2, rank))
        assert torch.allclose(moved, whole[rank::2], atol=1e-5)
        assert (found != truth[rank::2]).float().mean() < 2e-3


@pytest.mark.parametrize("space", [(20, 31), (9, 7, 8)])
def test_reflections_alone_are_exact_along_every_axis(space):
    images, masks = torch.rand(64, 2, *space), torch.randint(0, 3, (64, *space))
    masks[:, 0] = IGNORE
    moved, found = Augmentation({"flip"})(images, masks, draws())
    seen = set()
    for image, mask, before, truth in zip(moved, found, images, masks, strict=True):
        for number in range(2 ** len(space)):
            axes = [axis for axis in range(len(space)) if number >> axis & 1]
            if np.array_equal(image, np.flip(before.numpy(), [axis + 1 for axis in axes])):
                seen.add(number)
                assert np.array_equal(mask, np.flip(truth.numpy(), axes))
    assert len(seen) == 2 ** len(space), "each of them occurs"
    mirrored = Augmentation({"mirror"})(images[:, :, :20], masks, draws())[0] if len(space) == 2 else images
    for image, before in zip(mirrored, images, strict=True):
        assert np.array_equal(image, before) or np.array_equal(image, np.flip(before.numpy(), -1))


def test_other_targets_stay_what_they_are():
    images = torch.rand(5, 1, 12, 14)
    for targets in (torch.arange(5), torch.rand(5, 12), torch.rand(5, 12, 2)):
        assert torch.equal(Augmentation({"rotate"})(images, targets, draws())[1], targets)


WRONG = [
    ("rotate-z", (2,), "rotate-z is about the last axis of volumes; images take rotate"),
    ("elastic", (3,), "elastic is for images, not for volumes"),
    ("mirror", (3,), "mirror is left to right, for images; volumes take flip"),
    ("rotate+rotate", (2,), "rotate is there twice"),
    ("affine+rotate", (2,), "rotate is there twice"),
    ("mirror+flip", (2,), "mirror is part of flip"),
    ("rotate+rotate-z", (3,), "rotate-z is part of rotate"),
    ("none+rotate", (2,), "'none' is unknown; choose one or more, joined by +, of none, rotate"),
    ("rotate+flop", (2,), "Did you mean 'flip'?"),
    ("turns", (2,), "'turns' is called 'rotate' now"),
    ("flips-turns", (2,), "'flips-turns' is called 'rotate+flip' now"),
    ("slant", (3,), "'slant' is called 'zoom-shear' now"),
    ("spin", (3,), "'spin' is called 'rotate-z+zoom-shear' now"),
    ("elastic-slant", (2,), "'elastic-slant' is called 'zoom-shear+elastic' now"),
]


@pytest.mark.parametrize(("name", "dimensions", "says"), WRONG)
def test_what_makes_no_sense_is_refused_by_name(name, dimensions, says):
    with pytest.raises(ConfigError) as error:
        words_of(name, dimensions)
    assert str(error.value).startswith(f"augment {name!r}")
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("task", "name", "says"),
    [
        ("digits", "turns", "augment (task digits) 'turns' is called 'rotate' now"),
        ("digits", "rotate-z", "images take rotate"), ("volumes", "elastic", "for images, not for volumes"),
        ("segment", "flip-rotate", "'flip-rotate' is called 'rotate+flip' now"),
        ("pcam", "turns", "called 'rotate' now"),
        ("pcam", "affine", "choose one of rot90, no-rot90, rotate, none"), ("celeba", "rotate", "one of none, zoom"),
    ],
)  # fmt: skip
def test_the_command_refuses_before_it_reads_a_file(task, name, says, tmp_path):
    data = [] if task == "digits" else ["--data", tmp_path]
    assert says in fails("train", task, *data, "--augment", name, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def slopes(folder, suffix, space):
    """Images or volumes of one hill each, with masks of how high it is, in two folders."""
    images, masks = hills(space, 14)
    for part, values in (("images", (images[:, 0] * 120).round()), ("masks", masks)):
        (folder / part).mkdir(parents=True)
        for number, value in enumerate(values.numpy().astype(np.uint8)):
            file = folder / part / f"{(5 * number) % 14:02}{suffix}"
            if suffix == ".png":
                Image.fromarray(value).save(file)
            else:
                nifti(file, value.astype(np.float32 if part == "images" else np.uint8), np.eye(4))
    return folder


SMALL = "--epochs 1 --batch-size 5 --accelerator cpu --quiet --set widths=2,2,2".split()


@pytest.mark.parametrize("name", ["rotate+flip", "affine+elastic", "flip"])
def test_training_sees_images_with_masks_that_fit(name, tmp_path, monkeypatch):
    """The whole road: files, patches, batches, the device, and the step that learns from them."""
    folder, seen, step = slopes(tmp_path / "data", ".png", (36, 45)), [], Learner.training_step

    def watched(learner, batch, number):
        seen.append([part.clone().numpy() for part in batch])
        return step(learner, batch, number)

    monkeypatch.setattr(Learner, "training_step", watched)
    arguments = ["--data", folder, "--augment", name, "--patch", 28, "--elements", 2, "--out", tmp_path / "run", *SMALL]
    succeeds("train", "segment", *arguments)
    images, masks = (np.concatenate(parts) for parts in zip(*seen, strict=True))
    assert len(images) >= 100
    assert agreement(images * 255 / 120, masks) > 0.998
    assert ((masks == IGNORE).mean() > 0.02) == (name != "flip")


def test_volumes_with_masks_take_what_volumes_can(tmp_path):
    folder = slopes(tmp_path / "data", ".nii.gz", (12, 14, 12))
    more = ["--data", folder, "--patch", 8, "--group", "none", *SMALL]
    said = fails("train", "segment", "--augment", "elastic", "--out", tmp_path / "no", *more)
    assert "augment (task segment) 'elastic': elastic is for images, not for volumes" in said
    assert not (tmp_path / "no").exists()
    succeeds("train", "segment", "--augment", "rotate-z+flip", "--out", tmp_path / "yes", *more)
