"""The general classifier: exact where the lattice has the symmetry, equal in size where asked."""

import pytest
import torch

from liespline import SO2, SO3, Scale, Trivial, models, uniform
from liespline.models.classifier import classifier
from liespline.nn import Centre


def settled(network, shape):
    """In eval mode with statistics that are not those of a fresh network."""
    torch.manual_seed(1)
    network = network.double().train()
    network(torch.randn(8, *shape, dtype=torch.float64))
    return network.eval()


def change(network, x, turned):
    reference = network(x).detach()
    return float((network(turned).detach() - reference).norm() / reference.norm())


@pytest.mark.parametrize("size", [16, 17, 18])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", ["dense", "local", "atrous"])
def test_quarter_turns_change_nothing(size, stride, kernel):
    size = 2 * size if stride == 2 else size
    network = classifier(2, 3, uniform(SO2(), 4), widths=(3, 4, 5), kernel=kernel, stride=stride)
    network = settled(network, (2, size, size))
    x = torch.randn(2, 2, size, size, dtype=torch.float64)
    for turns in (1, 2, 3):
        assert change(network, x, torch.rot90(x, turns, (-2, -1))) < 1e-12


def test_without_centring_quarter_turns_would_change_the_answer(monkeypatch):
    """The planted fault: strides that keep samples 0, 2, 4, … of an even image."""
    monkeypatch.setattr(Centre, "forward", lambda self, x: x)
    network = settled(classifier(1, 3, uniform(SO2(), 4), widths=(3, 4, 5), stride=2), (1, 32, 32))
    x = torch.randn(2, 1, 32, 32, dtype=torch.float64)
    assert change(network, x, torch.rot90(x, 1, (-2, -1))) > 1e-3


@pytest.mark.parametrize("stride", [2, 3, 4])
def test_every_stride_is_centred_at_every_size(stride):
    for size in range(24, 37):
        x = torch.randn(1, 1, size, size, dtype=torch.float64)
        found = Centre(stride)(x)
        assert all((n - 1) % stride == 0 for n in found.shape[2:])
        assert size - stride <= found.shape[2] <= size
        assert (Centre(stride)(torch.rot90(x, 1, (-2, -1))) - torch.rot90(found, 1, (-2, -1))).abs().max() < 1e-14


def test_all_24_rotations_of_the_cube_change_nothing():
    grid = uniform(SO3(), 24)
    network = classifier(1, 2, grid, widths=(2, 2, 2), kernel="local", n_k=7, stride=2)
    network = settled(network, (1, 18, 18, 18))
    x = torch.randn(1, 1, 18, 18, 18, dtype=torch.float64)
    for matrix in grid.elements[1:]:
        # A signed permutation: out[y] = x[matrixᵀ y], axis by axis.
        axes = matrix.abs().argmax(1)
        moved = x.permute(0, 1, *(2 + axes).tolist())
        flips = [2 + i for i in range(3) if matrix[i, axes[i]] < 0]
        assert change(network, x, moved.flip(flips)) < 1e-12


def test_a_network_without_group_does_change():
    network = settled(classifier(1, 3, uniform(Trivial(2), 1), widths=(3, 4, 5)), (1, 16, 16))
    x = torch.randn(2, 1, 16, 16, dtype=torch.float64)
    assert change(network, x, torch.rot90(x, 1, (-2, -1))) > 1e-2


@pytest.mark.parametrize(
    ("grid", "shape"),
    [
        (uniform(Scale(1), 3, spacing=0.35), (2, 40)),
        (uniform(Scale(2), 3, spacing=0.35), (2, 18, 23)),
        (uniform(Scale(3), 2, spacing=0.35), (2, 13, 12, 14)),
        (uniform(Trivial(3), 1), (2, 12, 12, 12)),
    ],
)
def test_every_dimension_and_odd_shapes(grid, shape):
    network = classifier(2, 5, grid, widths=(2, 3, 2))
    assert network(torch.randn(3, *shape)).shape == (3, 5)


@pytest.mark.parametrize("target", [2_000, 20_000, 200_000])
@pytest.mark.parametrize("grid", [uniform(Trivial(2), 1), uniform(SO2(), 8)])
def test_widths_are_scaled_to_a_number_of_parameters(grid, target):
    network = classifier(1, 10, grid, widths=(8, 12, 16, 24), parameters=target)
    assert sum(p.numel() for p in network.parameters()) == pytest.approx(target, rel=0.12)


def test_a_seed_gives_one_network_whatever_was_built_before():
    grid = uniform(SO2(), 7)  # which no other test counts the splines of

    def weights():
        torch.manual_seed(3)
        return torch.cat([p.flatten() for p in classifier(1, 2, grid, widths=(3, 4), parameters=3000).parameters()])

    assert torch.equal(weights(), weights())


def test_deformable_kernels_learn_their_centres():
    network = classifier(1, 2, uniform(SO2(), 4), widths=(2, 3, 3), kernel="deformable")
    centres = [p for name, p in network.named_parameters() if "centres" in name]
    assert len(centres) == 2
    network(torch.randn(4, 1, 16, 16)).square().sum().backward()
    assert all(bool(p.grad.abs().sum() > 0) for p in centres)


def test_errors_repeat_the_value():
    with pytest.raises(ValueError, match="fuzzy"):
        models.classifier(1, 2, uniform(SO2(), 4), kernel="fuzzy")
    with pytest.raises(ValueError, match=r"\(3,\)"):
        classifier(1, 2, uniform(SO2(), 4), widths=(3,))
