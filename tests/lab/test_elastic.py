"""Elastic augmentation against SciPy's splines and interpolation, and what it must leave alone."""

import numpy as np
import pytest
import torch
from scipy import interpolate, ndimage

from liespline.lab.data import elastic
from liespline.lab.data.augment import Augmentation, Draws
from liespline.lab.data.elastic import NODES, displacement, lattice_points

AFFINE = {"rotate", "zoom-shear"}
CUBIC = interpolate.BSpline.basis_element([-2, -1, 0, 1, 2], extrapolate=False)


def draws(seed=0):
    return Draws(torch.Generator().manual_seed(seed))


def strokes(count=64, size=(28, 28)):
    """Smooth spots off the centre, in an image that is black around."""
    rows, columns = np.indices(size)
    rng = np.random.default_rng(0)
    images = np.zeros((count, *size))
    for image in images:
        for r, c in rng.uniform(0.35, 0.65, (4, 2)) * size:
            image += np.exp(-((rows - r) ** 2 + (columns - c) ** 2) / 8)
    return images / images.max((1, 2), keepdims=True)


def field_by_loops(coefficients, point, size):
    """u(x), spline by spline, from SciPy's B-splines."""
    u = np.zeros(2)
    for i in range(NODES):
        for j in range(NODES):
            places = [4 * x / n - (k - NODES // 2) for x, n, k in zip(point, size, (i, j), strict=True)]
            u += coefficients[i, j] * np.prod(np.nan_to_num(CUBIC(places)))
    return u


def test_the_field_is_a_cubic_spline_of_its_coefficients():
    rng = np.random.default_rng(1)
    coefficients, points, size = rng.normal(size=(3, NODES, NODES, 2)), rng.uniform(-20, 20, (3, 9, 2)), (24, 32)
    ours = displacement(torch.from_numpy(coefficients), torch.from_numpy(points), size).numpy()
    truth = [[field_by_loops(c, p, size) for p in row] for c, row in zip(coefficients, points, strict=True)]
    assert np.allclose(ours, truth, atol=1e-12)


def test_the_field_has_the_deviation_it_says_on_the_whole_image():
    normal = torch.randn(2 * NODES**2, 2000, generator=torch.Generator().manual_seed(0))
    lattice = lattice_points(torch.zeros(1, 1, 28, 28))
    u = displacement(1.5 / elastic.SPREAD * normal.T.unflatten(-1, (NODES, NODES, 2)), lattice.unsqueeze(0), (28, 28))
    assert float(u.std()) == pytest.approx(1.5, rel=0.02)
    at = u.std(0)  # (784, 2)
    assert float(at.min()) > 1.38, "no lattice ends inside the image"
    assert float(at.max()) < 1.65


def by_scipy(images, seed, back=True):
    """f(φ(Ax − δ)) in float64, image by image: δ found by sampling the bent image finely."""
    x = torch.from_numpy(images).float().unsqueeze(1)
    numbers = draws(seed)
    matrices = Augmentation(AFFINE).matrices(x, numbers).double().numpy()
    normal = numbers.normal(x, 2 * NODES**2).double().numpy().T.reshape(-1, NODES, NODES, 2)
    coefficients = normal * 28 * (1 / 28) * 315 / 151
    size = images.shape[1:]
    lattice = np.stack(np.meshgrid(*(np.arange(n) - (n - 1) / 2 for n in size), indexing="ij"), -1).reshape(-1, 2)

    def at(image, where):
        return ndimage.map_coordinates(image, (where + (np.array(size) - 1) / 2).T, order=3, mode="grid-constant")

    def mass(image):
        return image @ lattice / image.sum()

    out = []
    for image, matrix, c in zip(images, matrices, coefficients, strict=True):

        def bend(points, c=c):
            return points + np.stack([field_by_loops(c, p, size) for p in points])

        delta = mass(image.reshape(-1)) - mass(at(image, bend(lattice)))
        out.append(at(image, bend(lattice @ matrix.T - delta * back)).reshape(size))
    return np.stack(out)


@pytest.mark.parametrize("fault", [False, True])
def test_images_are_bent_as_scipy_bends_them(fault):
    """One interpolation for all; the planted fault leaves the centre of mass where the field brings it."""
    images = strokes(3)
    x = torch.from_numpy(images).float().unsqueeze(1)
    ours = Augmentation({*AFFINE, "elastic"})(x, torch.zeros(3), draws(4))[0][:, 0].numpy()
    worst = np.abs(ours - by_scipy(images, 4, back=not fault)).max()
    assert worst > 0.1 if fault else worst < 0.03


def centre(images):
    return np.array([ndimage.center_of_mass(image) for image in images])


def test_the_centre_of_mass_stays_though_every_stroke_moves(monkeypatch):
    images = strokes()
    x = torch.from_numpy(images).float().unsqueeze(1)
    module = Augmentation({"elastic"})
    out = module(x, torch.zeros(len(x)), draws())[0][:, 0].numpy()
    assert np.abs(out - images).mean((1, 2)).min() > 0.005
    assert (centre(out) - centre(images)).std() < 0.08
    monkeypatch.setattr(elastic, "_centre_of_mass", lambda light, lattice: torch.zeros(len(light), 1, 2))  # the fault
    out = module(x, torch.zeros(len(x)), draws())[0][:, 0].numpy()
    assert (centre(out) - centre(images)).std() > 0.5


def test_without_displacement_it_is_the_affine_one_and_colour_moves_in():
    x = torch.from_numpy(strokes(4)).float().unsqueeze(1) * 0.5 + 0.3
    ours = Augmentation({*AFFINE, "elastic"}, deviation=0.0)(x, torch.zeros(4), draws(7))[0]
    assert (ours - Augmentation(AFFINE)(x, torch.zeros(4), draws(7))[0]).abs().max() < 1e-4
    bent = Augmentation({*AFFINE, "elastic"})(x, torch.zeros(4), draws(7))[0]
    assert (bent[..., 0, :] - 0.3).abs().max() < 0.05
