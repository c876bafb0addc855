"""Synthetic tissue: official files, the same for the same seed, the label in structure, not in colour."""

import numpy as np
import pytest

from studies.data import pcam
from studies.data.synthetic import tissue
from studies.data.synthetic.tissue import draw_patch


def test_tissue_is_read_as_pcam(tmp_path):
    tissue.synthesize(tmp_path / "a", train=20, valid=6, test=6, seed=2)
    tissue.synthesize(tmp_path / "b", train=20, valid=6, test=6, seed=2)
    tissue.synthesize(tmp_path / "c", train=20, valid=6, test=6, seed=3)
    assert pcam.check(tmp_path / "a") == []
    assert pcam.available(tmp_path / "a") == ("train", "valid", "test")
    batches = {}
    for name in "abc":
        data = pcam.load(tmp_path / name, "train")
        batches[name] = data.__getitems__(range(len(data)))
        assert data.synthetic
        assert int(batches[name][1].sum()) == 10
    for one, two in zip(batches["a"], batches["b"], strict=True):
        assert one.equal(two), "same seed, same patches"
    assert not batches["a"][0].equal(batches["c"][0])
    first = batches["a"][0].flatten(1)
    assert len({bytes(row.numpy()) for row in first}) == 20, "no patch twice"
    assert "Synthetic tissue" in (tmp_path / "a" / "SYNTHETIC.txt").read_text()
    with pytest.raises(ValueError, match="1 train, 6 valid"):
        tissue.synthesize(tmp_path / "d", train=1, valid=6, test=6)


def test_colour_and_density_do_not_tell_the_class():
    """A linear reading of colour histograms, the kind of shortcut a network would take, stays near chance."""

    def histograms(label: int, seeds: range) -> np.ndarray:
        patches = (draw_patch(label, np.random.default_rng([9, label, seed])) for seed in seeds)
        return np.stack([[np.histogram(p[..., c], 8, (0, 256))[0] for c in range(3)] for p in patches]).reshape(
            len(seeds), -1
        )

    features = np.concatenate([histograms(label, range(200)) for label in (0, 1)]).astype(float)
    labels = np.repeat([0.0, 1.0], 200)
    features = (features - features.mean(0)) / (features.std(0) + 1e-9)
    learn = np.arange(400) % 2 == 0
    ridge = features[learn].T @ features[learn] + 30 * np.eye(features.shape[1])
    weights = np.linalg.solve(ridge, features[learn].T @ (labels[learn] - 0.5))
    accuracy = ((features[~learn] @ weights > 0) == (labels[~learn] > 0.5)).mean()
    assert accuracy < 0.62


def test_structure_tells_the_class():
    """Nuclei lie along their layer in class 0 and across it in class 1, mirrored or not."""
    for label in (0, 1):
        for seed in range(20):
            rng = np.random.default_rng(seed)
            cells = tissue._layers(label, np.array([47.5, 47.5]), np.zeros((96, 96)), rng)
            places, angles = np.array([cell.place for cell in cells]), np.array([cell.angle for cell in cells])
            # All layers of a structure share a centre: fit one circle to them by least squares.
            system = np.column_stack([2 * places, np.ones(len(places))])
            centre = np.linalg.lstsq(system, (places**2).sum(1), rcond=None)[0][:2]
            for sign in (1, -1):
                outwards = np.arctan2(sign * (places - centre)[:, 1], (places - centre)[:, 0])
                across = np.cos(2 * (sign * angles - outwards)).mean()  # +1 across the layer, −1 along it
                assert across > 0.3 if label else across < -0.3
