"""The bispectrum: invariant, and it tells apart all that no rotation relates."""

import cmath
import math

import numpy as np
import pytest
import torch
from torch import Tensor

import liespline as ls
from liespline import Project, functional
from liespline.functional.bispectrum import SOFT
from liespline.nn import shift
from networks import close

X64 = torch.float64
SIZES = [1, 2, 3, 4, 5, 6, 8, 12, 16, 24]
every_size = pytest.mark.parametrize("n", SIZES)


def project(n: int) -> Project:
    return Project("bispectrum", ls.uniform(ls.SO2(), n)).double()


def of(features: Tensor) -> Tensor:
    """The bispectra of `(many, n)`."""
    return project(features.shape[1])(features.unsqueeze(1))


@every_size
def test_it_is_its_formula(n: int) -> None:
    """By loops over Fourier sums in Python's complex numbers."""
    feature = torch.randn(n, dtype=X64)
    f = feature.tolist()
    hat = [sum(f[j] * cmath.exp(-2j * math.pi * j * k / n) for j in range(n)) / n for k in range(n + 1)]
    power = sum(value**2 for value in f) / n
    u = [value / math.sqrt(abs(value) ** 2 + SOFT * power) for value in hat]
    products = [u[1] * u[k] * hat[k + 1].conjugate() for k in range(1, (n - 1) // 2 + 1)]
    wanted = [hat[0].real, math.sqrt(power), *([abs(hat[1])] if n > 1 else [])]
    wanted += [product.real for product in products] + [product.imag for product in products]
    found = of(feature.unsqueeze(0))[0]
    assert len(found) == len(wanted) == project(n).per_channel
    close(found, torch.tensor(wanted, dtype=X64), 1e-9)


@every_size
def test_it_is_invariant_and_complete(n: int) -> None:
    """Equal for all rotations of a feature; as many independent directions as it has; different for other orbits."""
    generator = torch.Generator().manual_seed(n)
    features = torch.randn(10_000, n, generator=generator, dtype=X64)
    found = of(features)
    for s in range(n):
        close(of(features[:100].roll(s, 1)), found[:100], 1e-9)
    one = features[0]
    slopes = torch.autograd.functional.jacobian(lambda f: of(f.unsqueeze(0))[0], one)
    assert torch.linalg.matrix_rank(slopes) == n  # orbits of a finite group are points
    others = features.roll(1, 0)
    apart = torch.stack([(features - others.roll(s, 1)).norm(dim=1) for s in range(n)]).amin(0)
    gap = (found - found.roll(1, 0)).norm(dim=1)
    assert float((gap / apart).min()) > 1e-3


@pytest.mark.parametrize("n", [n for n in SIZES if n > 3])
def test_near_misses_are_told_apart(n: int) -> None:
    """Equal maxima, equal values in another order, equal amplitudes with other phases, and a reflection."""
    generator = torch.Generator().manual_seed(n)
    feature = torch.rand(n, generator=generator, dtype=X64)
    shuffled = feature.clone()
    shuffled[:2] = feature[:2].flip(0)
    phases = torch.exp(2j * math.pi * torch.rand(n // 2 + 1, generator=generator, dtype=X64))
    phases[0], phases[-1] = 1, 1 if n % 2 == 0 else phases[-1]
    same_power = torch.fft.irfft(torch.fft.rfft(feature) * phases, n)
    for other in (shuffled, same_power, feature.flip(0)):
        apart = min(float((feature - other.roll(s)).norm()) for s in range(n))
        gap = float((of(feature.unsqueeze(0)) - of(other.unsqueeze(0))).norm())
        assert apart > 1e-2
        assert gap > 1e-2 * apart
    assert torch.equal(feature.amax(), shuffled.amax())  # what "max" would take for the same


@pytest.mark.parametrize("n", [n for n in SIZES if n > 1])
def test_joint_is_complete_for_all_channels_together(n: int) -> None:
    """The sum over Fourier coefficients in numpy; equal for one rotation of all, unlike for each rotation of one."""
    grid, features = ls.uniform(ls.SO2(), n), torch.randn(1, 3, n, dtype=X64)
    alone, joint = Project("bispectrum", grid).double(), Project("joint-bispectrum", grid).double()
    found = joint(features).unflatten(1, (3, -1))
    assert found.shape[2] == joint.per_channel == alone.per_channel + 2
    close(found[:, :, :-2].flatten(1), alone(features))
    hat, power = np.fft.fft(features[0].numpy())[:, 1] / n, features[0].square().mean(1).numpy()
    first = hat[0] / np.sqrt(abs(hat[0]) ** 2 + SOFT * power[0])
    close(torch.view_as_complex(found[0, :, -2:].contiguous()), torch.from_numpy(hat * first.conj()), 1e-9)
    close(joint(features.roll(1, 2)).unflatten(1, (3, -1)), found, 1e-9)
    for channel in range(3):
        for s in range(1, n):
            rotated = features.clone()
            rotated[:, channel] = features[:, channel].roll(s, 1)
            close(alone(rotated), alone(features), 1e-9)
            assert (joint(rotated).unflatten(1, (3, -1)) - found).abs().max() > 1e-4


def test_other_shapes_grids_and_dtypes() -> None:
    grid = ls.uniform(ls.SO2(), 6)
    layer, x = Project("bispectrum", grid), torch.randn(2, 3, 6, 4, 5)
    found = layer(x)
    assert found.shape == (2, 3 * 7, 4, 5)
    close(found[:, 7:14, 2, 3], layer(x[:, 1:2, :, 2, 3]))
    with shift(layer, torch.tensor([0.7])):  # counted from another angle, it is the same
        close(layer(x), found)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.float32
    large = (1e4 * x).half()
    assert layer.half()(large).isfinite().all()
    assert torch.zeros(1, 1, 6, requires_grad=True).add(layer.float()(torch.zeros(1, 1, 6)).sum()).isfinite().all()
    x = torch.zeros(1, 1, 6, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert Project("max", grid).per_channel == 1
    for other in (
        ls.uniform(ls.O2(), 6),
        ls.uniform(ls.SO3(), 12),
        ls.Grid(ls.SO2(), torch.rand(4, 1), torch.ones(4), 1.0),
    ):
        with pytest.raises(ValueError, match=r"is for uniform\(SO2\(\), n\)"):
            Project("bispectrum", other)
    with pytest.raises(ValueError, match="'median'"):
        Project("median", grid)
    assert functional.per_channel(8) == 9
    assert functional.per_channel(8, joint=True) == 11
