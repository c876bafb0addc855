"""`data symmetry`: exact transformations, statistics that hold for any network, and the command on known data."""

import itertools
import json
from functools import cache

import numpy as np
import pytest
import torch
from PIL import Image

from lab.test_data_volumes import archive
from liespline.lab.data.store import fingerprint
from liespline.lab.evaluation.evaluate import wilson
from liespline.lab.symmetry import findings, pose
from liespline.lab.symmetry.findings import WEAK, advice, largest, slope
from liespline.lab.symmetry.statistics import elements, holm, pose_found, share
from liespline.lab.symmetry.transformations import Transformations, is_rotation, signed_permutations
from liespline.lab.tasks.images import load
from truth.shell import fails, succeeds

SQUARE, CUBE = signed_permutations(2), signed_permutations(3)


def number_of(matrices, wanted):
    return next(i for i, m in enumerate(matrices) if (m == wanted).all())


@pytest.mark.parametrize(("dimensions", "side"), [(2, 4), (2, 5), (3, 3), (3, 4)])
def test_transformations_are_those_of_their_matrices(dimensions, side):
    """The value at u is that at M⁻¹u, by loops; they compose as matrices do, and leave the disc as it is."""
    every = Transformations(side, dimensions)
    assert len(every) == {2: 8, 3: 48}[dimensions] == len({m.tobytes() for m in every.matrices})
    assert sum(map(is_rotation, every.matrices)) == len(every) // 2
    image = torch.randn(1, 2, *(side,) * dimensions)
    middle = (side - 1) / 2
    for number, matrix in enumerate(every.matrices):
        found = every.apply(image, torch.tensor([number]))
        for u in itertools.product(range(side), repeat=dimensions):
            v = np.rint(np.linalg.inv(matrix) @ (np.array(u) - middle) + middle).astype(int)
            assert torch.equal(found[(0, slice(None), *u)], image[(0, slice(None), *v)])
        assert torch.equal(every.apply(every.disc[None, None], torch.tensor([number]))[0, 0], every.disc)
    rng = np.random.default_rng(0)
    for g, h in rng.integers(len(every), size=(20, 2)):
        both = every.apply(every.apply(image, torch.tensor([h])), torch.tensor([g]))
        product = number_of(every.matrices, every.matrices[g] @ every.matrices[h])
        assert torch.equal(both, every.apply(image, torch.tensor([product])))


def test_names_say_what_images_look_like():
    every, image = Transformations(3, 2), np.arange(9).reshape(3, 3)
    looks = {
        "rotated by 0°": image,
        "rotated by 90°": np.rot90(image),
        "rotated by 180°": np.rot90(image, 2),
        "rotated by 270°": np.rot90(image, 3),
        "reflected top to bottom": image[::-1],
        "reflected left to right": image[:, ::-1],
        "reflected in the diagonal": image.T,
        "reflected in the antidiagonal": np.rot90(image, 2).T,
    }
    found = every.apply(torch.tensor(image)[None, None].expand(8, -1, -1, -1), torch.arange(8))
    assert {name: one[0].tolist() for name, one in zip(every.names, found, strict=True)} == {
        name: look.tolist() for name, look in looks.items()
    }
    assert Transformations(2, 3).names[0] == "axes +0 +1 +2"
    turned = number_of(CUBE, np.array([[0, 0, -1], [0, 1, 0], [1, 0, 0]]))
    assert Transformations(2, 3).names[turned] == "axes -2 +1 +0"


@pytest.mark.parametrize("dimensions", [2, 3])
def test_every_transformation_changes_the_ramp(dimensions):
    every = Transformations(6, dimensions)
    ramp = slope(every)
    assert float(ramp.abs().max()) == 1
    changed = every.apply(ramp.expand(len(every), 1, *ramp.shape), torch.arange(len(every)))[:, 0]
    assert [bool(torch.equal(one, ramp)) for one in changed] == [True] + [False] * (len(every) - 1)


def poses(images, order, generator):
    """What a network might say of a cyclic group: each image lies in a pose of its own, and its table sees the pose."""
    table = torch.randn(order, order, generator=generator, dtype=torch.float64)
    lie = torch.randint(order, (images,), generator=generator)
    return table[(lie[:, None] + torch.arange(order)) % order].log_softmax(-1)


def test_data_with_a_symmetry_are_not_told_whatever_the_network_says():
    """Also of rotations that are not their own inverse, and by networks that see in which pose an image lies."""
    generator = torch.Generator().manual_seed(0)
    for images in (11, 200):
        log_p = [poses(images, 4, generator) for _ in range(300)]
        wrong = sum(any(element.seen for element in elements(one, "abcd")) for one in log_p)
        missed = sum(not one.low <= 0.25 <= one.high for one in map(pose_found, log_p))
        assert max(wrong, missed) <= 26  # 5 % of 300, and three standard deviations more


def test_what_is_seen_is_told():
    """The first two of four transformations are seen in 8 of 10 images, the others not."""
    generator = torch.Generator().manual_seed(1)
    log_p = torch.randn(300, 4, 4, generator=generator, dtype=torch.float64)
    log_p[:, 1, 1] += 3
    log_p[:, 0, 0] += 3
    found = elements(log_p, ["none", "seen", "also", "also"])
    assert found[0].seen
    assert found[0].told.low > 0.8
    one = log_p[:, 0, 1] - log_p[:, 0, 0]
    other = log_p[:, 1, 1] - log_p[:, 1, 0]
    assert found[0].told.value == pytest.approx(float(((one < 0).double() + (other > 0).double()).mean() / 2))


def test_intervals_are_wilsons_of_as_many_trials_as_images_are_worth():
    of_images = (torch.arange(50) < 31).double()
    found, (low, high) = share(of_images), wilson(31, 50)
    assert (found.low, found.high) == (pytest.approx(low, abs=0.01), pytest.approx(high, abs=0.01))
    # Eight trials per image that all end alike are one, and eight that are independent are eight.
    together = of_images[:, None].expand(-1, 8)
    assert share(together.mean(1)) == found
    apart = (torch.rand(2000, 8, generator=torch.Generator().manual_seed(0)) < 0.3).double()
    one, eight = share(apart[:, 0]), share(apart.mean(1))
    assert (one.high - one.low) / (eight.high - eight.low) == pytest.approx(8**0.5, rel=0.1)
    assert share(torch.ones(20)).low == pytest.approx(wilson(20, 20)[0])


def test_holm():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.6]) == [1, 1]


def kept(matrices, rule):
    return [i for i, m in enumerate(matrices) if rule(m)]


def test_advice_names_the_group():
    up = np.array([1, 0, 0])
    about = kept(CUBE, lambda m: (m @ up == up).all())
    said = {
        "--group o2": (SQUARE, range(8)),
        "--group so2": (SQUARE, range(4)),
        "--group o3": (CUBE, range(48)),
        "--group so3": (CUBE, range(24)),
        "rotations about axis 0 and reflections that keep it are not seen": (CUBE, about),
        "rotations about axis 0 are not seen": (CUBE, [i for i in about if is_rotation(CUBE[i])]),
        "reflections along axis 1 are not seen": (SQUARE, kept(SQUARE, lambda m: m[0, 0] == 1)),
        "All images lie alike": (SQUARE, [0]),
    }
    for words, (matrices, group) in said.items():
        assert words in advice(matrices, list(group), 0.9, True)
        if len(group) == len(matrices):
            assert "Too few" in advice(matrices, list(group), 0.9, False)
    assert "a weak direction" in advice(SQUARE, [0], WEAK / 2, True)
    assert largest(SQUARE, [0, 1, 2, 4]) in ([0, 4], [0, 5], [0])  # not all of what is kept is a group


@pytest.fixture
def few_steps(monkeypatch):
    """Images as simple as these need no more."""
    monkeypatch.setattr(pose, "STEPS", 120)


@pytest.fixture
def noise(tmp_path, few_steps):
    """Two classes of images of noise, and how to light them from above."""

    def make(lit):
        rng, root = np.random.default_rng(0), tmp_path / f"lit-{lit}"
        for name in ("one", "two"):
            (root / name).mkdir(parents=True)
            for i in range(150):
                light = lit * np.linspace(1, -1, 14)[:, None]
                pixels = (128 + 30 * (rng.normal(size=(12, 14)) + light[:12])).clip(0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(root / name / f"{i}.png")
        return root

    return cache(make)


def test_the_command_on_images(noise, liespline, tmp_path):
    text = succeeds("data", "symmetry", noise(0), "--json")
    found = json.loads(text[: text.rindex("}") + 1])
    assert found["pose"]["low"] <= found["chance"] <= found["pose"]["high"]
    assert found["with_ramp"]["low"] > found["chance"]
    assert "rotations and reflections fit (--group o2)" in found["sentence"]
    text = succeeds("data", "symmetry", noise(1.5), "--picture", tmp_path / "found.svg", "--json")
    found = json.loads(text[: text.rindex("}") + 1])
    assert found["pose"]["low"] > 0.3
    assert found["at_random"]["low"] <= found["chance"] <= found["at_random"]["high"]
    assert "reflections along axis 1 are not seen" in found["sentence"]
    unseen = [element["name"] for element in found["elements"] if not element["seen"]]
    assert unseen == ["reflected left to right"]
    drawing = (tmp_path / "found.svg").read_text()
    assert drawing.count("<circle") == 7
    assert "rotated by 90°" in drawing


def test_no_image_is_looked_at_twice(monkeypatch, noise):
    """Those that are trained on come from the training split, those that are looked at from the others."""
    seen = {}

    def answers(net, images, transformations):
        seen.setdefault("looked at", images)
        return torch.zeros(len(images), 8, 8, dtype=torch.float64)

    monkeypatch.setattr(findings, "trained", lambda images, *others: seen.setdefault("trained", images))
    monkeypatch.setattr(findings, "log_probabilities", answers)
    first, *others = (load(noise(0), split) for split in ("train", "valid", "test"))
    findings.look(first, others)
    fitted, looked_at = (set(map(fingerprint, seen[name].numpy())) for name in ("trained", "looked at"))
    assert (len(fitted), len(looked_at)) == (len(first), sum(map(len, others)))
    assert not fitted & looked_at


def test_volumes_and_too_few_images(tmp_path, few_steps):
    rng = np.random.default_rng(0)
    light = np.linspace(100, 0, 7)[:, None, None]
    sets = {
        f"{split}_{what}": values
        for split, count in (("train", 60), ("val", 15), ("test", 15))
        for what, values in (
            ("images", (light + rng.integers(0, 100, (count, 7, 7, 7))).astype(np.uint8)),
            ("labels", np.arange(count)[:, None] % 2),
        )
    }
    np.savez(tmp_path / "lit.npz", **sets)
    text = succeeds("data", "symmetry", tmp_path / "lit.npz")
    assert "rotations about axis 0 and reflections that keep it are not seen" in text
    assert "at least 10 each are needed" in fails("data", "symmetry", archive(tmp_path / "few.npz"))
