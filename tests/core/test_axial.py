"""Groups of the plane about an axis of a volume, with windows and steps that differ along it."""

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from liespline import Axial, GConv, Lift, Project, testing
from liespline.nn import Downsample, NormReLU, Restrict, Upsample
from networks import close

X64 = torch.float64
AXES = pytest.mark.parametrize("axis", [0, 1, 2])


@AXES
@pytest.mark.parametrize("plane", [ls.SO2(), ls.O2(), ls.Product(ls.SO2(), ls.Scale(2)), ls.GL2()], ids=repr)
def test_it_is_a_group_that_keeps_its_axis(plane: ls.Group, axis: int) -> None:
    group = Axial(plane, axis)
    testing.check_group(group, n=200)
    h, x = group.exp(torch.randn(5, group.dim, dtype=X64)), torch.randn(5, 3, dtype=X64)
    moved, across = group.act(h, x), [other for other in range(3) if other != axis]
    assert torch.equal(moved[:, axis], x[:, axis])
    assert torch.equal(moved[:, across], plane.act(h, x[:, across]))
    assert repr(group) == f"Axial({plane!r}, axis={axis})"
    assert group == Axial(plane, axis)
    assert group != Axial(plane, (axis + 1) % 3)


def test_what_it_is_not() -> None:
    for plane in (ls.SO3(), ls.Scale(3), "SO2", ls.Sphere()):
        with pytest.raises(ValueError, match="must be a group of the plane"):
            Axial(plane)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="axis = 3, must be 0, 1 or 2"):
        Axial(ls.SO2(), 3)


def network(grid: ls.Grid, window: tuple[int, ...], factor: tuple[int, ...]) -> nn.Module:
    """With coarser and finer space, as a U-Net of thick slices has."""
    return nn.Sequential(
        *(Lift(1, 3, window, grid, padding="same"), NormReLU(3), Downsample(factor)),
        *(GConv(3, 2, window, grid, padding="same"), nn.SiLU(), Upsample(factor), Project("max", grid)),
    ).double()


@AXES
@pytest.mark.parametrize("along", [1, 3, 5])
def test_quarter_turns_and_reflections_are_exact(axis: int, along: int) -> None:
    """About each axis, for windows and steps that are shorter along it; not about another."""
    grid = ls.uniform(Axial(ls.O2(), axis), 8)
    window, factor = [5, 5, 5], [2, 2, 2]
    window[axis], factor[axis] = along, 1
    net, shape = network(grid, tuple(window), tuple(factor)), [8, 8, 8]
    shape[axis] = 6
    x = torch.randn(2, 1, *shape, dtype=X64)
    net(x)  # in training: statistics of the norm
    net.eval()
    across = [2 + other for other in range(3) if other != axis]

    def turned(t: Tensor, d: list[int]) -> Tensor:
        return torch.rot90(t, 1, d)

    with torch.no_grad():
        close(net(turned(x, across)), turned(net(x), across), 1e-10)
        close(net(x.flip(across[1])), net(x).flip(across[1]), 1e-10)
        changed = (net(x.flip(2 + axis)) - net(x).flip(2 + axis)).abs().max()
        assert (changed > 1e-3) == (along > 1)  # slices that do not see each other cannot know their order
    one = Restrict(grid, ls.uniform(ls.Trivial(3), 1))
    assert one(torch.randn(1, 2, 8, 3, 3, 3)).shape == (1, 16, 1, 3, 3, 3)


@AXES
def test_between_the_angles_of_the_grid(axis: int) -> None:
    """As a network of images is: an image along the axis, in a volume, gives what the image gives."""
    plane, grid = ls.uniform(ls.SO2(), 8), ls.uniform(Axial(ls.SO2(), axis), 8)
    window = [5, 5, 5]
    window[axis] = 1
    flat = nn.Sequential(Lift(1, 2, 5, plane), nn.SiLU(), GConv(2, 2, 5, plane), Project("max", plane)).double()
    layers = Lift(1, 2, tuple(window), grid), GConv(2, 2, tuple(window), grid)
    deep = nn.Sequential(layers[0], nn.SiLU(), layers[1], Project("max", grid)).double()
    deep.load_state_dict(flat.state_dict())
    with torch.no_grad():
        for layer in layers:
            layer.weight.mul_(3 / 2)  # the cubic spline along the axis is 2/3 at its centre
    x = torch.randn(2, 1, 12, 12, dtype=X64)
    slices = torch.stack((x, 2 * x), 2 + axis)
    close(deep(slices).select(2 + axis, 0), flat(x), 1e-10)
    close(deep(slices).select(2 + axis, 1), flat(2 * x), 1e-10)


def test_a_unet_of_thick_slices() -> None:
    """Windows and factors per axis; quarter turns across the slices are exact, sizes return."""
    grid = ls.uniform(Axial(ls.SO2(), 0), 4)
    for separable in (False, True):
        net = ls.models.unet(
            1, 2, grid, widths=(2, 3), kernel_size=(1, 5, 5), factor=(1, 2, 2), separable=separable, activation="silu"
        ).double()
        x = torch.randn(1, 1, 3, 12, 12, dtype=X64)
        net(x)  # in training: statistics of the norms
        net.eval()
        with torch.no_grad():
            assert net(x).shape == (1, 2, 3, 12, 12)
            close(net(x.rot90(1, (-2, -1))), net(x).rot90(1, (-2, -1)), 1e-10)
    with pytest.raises(ValueError, match=r"unet: kernel_size = \(5, 5\) has 2 numbers, must have 3"):
        ls.models.unet(1, 2, grid, kernel_size=(5, 5))


@pytest.mark.parametrize("window", [(1, 3, 3), (3, 5, 5)])
def test_a_classifier_of_thick_slices(window: tuple[int, ...]) -> None:
    """Quarter turns about the axis change nothing, about another one something."""
    net = ls.models.classifier(
        1, 2, ls.uniform(Axial(ls.SO2(), 0), 4), widths=(2, 3, 3), kernel_size=window, activation="silu", dropout=0.0
    ).double()
    x = torch.randn(2, 1, 8, 8, 8, dtype=X64)
    net(x)  # in training: statistics of the norms
    net.eval()
    assert {layer.kernel_size for layer in net.modules() if isinstance(layer, Lift | GConv)} == {window}
    with torch.no_grad():
        close(net(x.rot90(1, (-2, -1))), net(x), 1e-10)
        assert (net(x.rot90(1, (-3, -1))) - net(x)).abs().max() > 1e-4
    with pytest.raises(ValueError, match=r"classifier: kernel_size = \(3, 3\) has 2 numbers, must have 3"):
        ls.models.classifier(1, 2, ls.uniform(ls.SO3(), 12), kernel_size=(3, 3))
