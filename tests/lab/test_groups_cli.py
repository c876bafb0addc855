"""Groups beyond rotations on the command line: their grids, their kernels, and networks that keep their word."""

import itertools
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lab.data_files import same_sets
from liespline import GL2, O2, O3, SO2, GConv, Lift, Product, Project, Scale, SplineBasis, local, uniform
from liespline.lab.networks import Signature, build
from liespline.lab.report.page import lead_of
from liespline.lab.settings import Config, ConfigError, Network
from liespline.lab.tasks import find_task
from liespline.lab.tasks.defaults import DEFAULTS
from liespline.lab.tasks.grids import make_grid, within
from liespline.models.kernels import h_basis
from truth.shell import succeeds

SMALL = "--set widths=2,2,3 --epochs 1 --batch-size 8 --accelerator cpu --quiet".split()
STEP = 0.5 * math.log(2)


def turns(n):
    angles = 2 * np.pi * np.arange(n) / n
    return [np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in angles]


def matrices(group, n_h, space=2):
    grid = make_grid(Network(group=group, elements=n_h), space)
    return grid.group.matrix(grid.elements)


def squeezed(a, b):
    return torch.linalg.matrix_exp(torch.tensor([[a, b], [b, -a]], dtype=torch.float64)).numpy()


SIGNS = [np.diag(s) for s in np.array(np.meshgrid(*[[1, -1]] * 3)).T.reshape(-1, 3)]
ORDERS = [np.eye(3)[list(order)] for order in itertools.permutations(range(3))]
CUBE = [s @ p for s in SIGNS for p in ORDERS]
SQUEEZES = [squeezed(a, b) for a in (-0.3, 0, 0.3) for b in (-0.3, 0, 0.3)]


@pytest.mark.parametrize(
    ("group", "elements", "expected"),
    [
        ("o2", 16, [r @ m for r in turns(8) for m in (np.eye(2), np.diag([1.0, -1.0]))]),
        ("sim2", (8, 4), [2 ** (i / 2) * r for r in turns(8) for i in range(4)]),
        ("gl2", (8, 1, 3, 3), [s @ r for s in SQUEEZES for r in turns(8)]),
        ("o3", 48, CUBE),
        ("so3", 24, [m for m in CUBE if np.linalg.det(m) > 0]),
    ],
)
def test_the_elements_of_a_group_are_those_of_its_definition(group, elements, expected):
    """Rotations with and without a reflection, at every scale, after every zoom and squeeze; the cube's symmetries."""
    assert len(expected) == np.prod(elements)
    assert same_sets(matrices(group, elements, len(expected[0])), expected)


def test_half_of_the_elements_of_o3_are_reflections():
    assert (torch.linalg.det(matrices("o3", 10, 3)) < 0).sum() == 5


@pytest.mark.parametrize(("group", "space"), [("so2", 2), ("o2", 2), ("so3", 3), ("o3", 3)])
def test_one_number_counts_the_elements_of_every_group(group, space):
    assert len(matrices(group, 12, space)) == 12


def test_splines_all_over_o2_are_counted_as_its_elements_are():
    def shapes(kernel, n_k):
        config = DEFAULTS["images"].updated(group="o2", elements=16, kernel=kernel, basis=n_k, widths=(2, 2, 2))
        network = find_task("images").make(config, Signature(1, (24, 24), ("a", "b")))
        return {len(layer.h_basis) for layer in network.modules() if isinstance(layer, GConv)}

    assert shapes("dense", 4) == {4}
    assert shapes("atrous", 8) == {8}
    assert shapes("local", 3) == {6}, "about the identity, and as many about the reflection"
    with pytest.raises(ConfigError, match="basis = 5: half of the elements of o2 are reflections"):
        shapes("dense", 5)


def test_the_grid_of_gl2_has_the_weights_of_its_haar_measure():
    """Turned on the right or left, a grid that turns onto itself integrates a function to the same number."""
    grid = make_grid(Network(group="gl2", elements=(8, 1, 3, 3)), 2)

    def integral(elements):
        return float((grid.weights * (-(elements - torch.eye(2)).square().sum((-1, -2))).exp()).sum())

    turn = torch.tensor(turns(8)[1])
    assert integral(grid.elements @ turn) == pytest.approx(integral(grid.elements), rel=1e-12)
    assert integral(turn @ grid.elements) == pytest.approx(integral(grid.elements), rel=1e-12)


def test_a_grid_is_restricted_to_what_is_in_a_group():
    """Counted by hand: the rotations of D4, those of the cube, those of it about an axis, those of eight scales."""
    cases = {
        ("o2", 8, 2): {"so2": 4, "none": 1}, ("so3", 24, 3): {"axial": 4, "none": 1},
        ("o3", 48, 3): {"so3": 24, "axial": 4, "none": 1}, ("sim2", (8, 3), 2): {"so2": 8, "scale": 3, "none": 1},
        ("axial-o2", 16, 3): {"axial": 8},
    }  # fmt: skip
    for (group, elements, d), expected in cases.items():
        grid = make_grid(Network(group=group, elements=elements), d)
        for smaller, count in expected.items():
            found = within(grid, smaller)
            assert len(found) == count
            matrices = found.group.matrix(found.elements)
            if smaller != "scale":
                assert (torch.linalg.det(matrices) > 0.5).all()
            if smaller == "axial":
                assert torch.equal(matrices[:, :, 2].round(decimals=9), torch.eye(3)[2].expand(count, 3).double())
    with pytest.raises(ConfigError, match="restrict to so2: all of its elements are in it"):
        within(make_grid(Network(group="so2", elements=8), 2), "so2")
    with pytest.raises(ConfigError, match="restrict = '4:so2': expected STAGE=GROUP, such as 3=none, the group one of"):
        Network(restrict="4:so2")


def test_what_a_configuration_restricts_and_projects_is_built():
    signature = Signature(1, (24, 24), ("a", "b"))
    for name, network in (("images", "classifier"), ("images", "resnet"), ("segment", "unet")):
        config = DEFAULTS[name].updated(
            group="o2", elements=8, network=network, widths=(2, 3, 4), restrict="1=so2,2=none"
        )
        assert Config.from_yaml(config.to_yaml(), "here") == config
        assert config.network.restrictions == {1: "so2", 2: "none"}
        made = find_task(name).make(config, signature)
        sizes = {len(layer.out_grid) for layer in made.modules() if isinstance(layer, GConv | Lift)}
        assert sizes == {8, 4, 1}
    about = lead_of(
        SimpleNamespace(config=config, signature=signature, classes=signature.classes),
        {"parameters": 9, "images": 2, "split": "test", "synthetic": False},
    )
    for stage, what in ((1, "rotations"), (2, "translations")):
        assert f" From stage {stage} on it is equivariant to {what} alone." in about
    bispectrum = DEFAULTS["images"].updated(elements=8, widths=(2, 3, 4), project="bispectrum")
    made = find_task("images").make(bispectrum, signature)
    assert {layer.reduce for layer in made.modules() if isinstance(layer, Project)} == {"bispectrum"}
    assert made(torch.randn(2, 1, 24, 24)).shape == (2, 2)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_axial_groups_leave_their_axis_alone(axis):
    for group, count in (("axial", 8), ("axial-o2", 16)):
        grid = make_grid(Network(group=group, elements=count, axis=axis), 3)
        assert len(grid) == count
        assert torch.equal(grid.group.matrix(grid.elements)[:, :, axis], torch.eye(3)[axis].expand(count, 3).double())


def test_windows_of_thick_slices_are_settings():
    signature = Signature(1, (16, 16, 16), ("a", "b"))
    for name in ("volumes", "segment"):
        config = find_task(name).configured(DEFAULTS[name], group="axial", axis=0, kernel_size="1x5x5", widths=(2, 3))
        assert config.network.kernel_size == (1, 5, 5)
        assert (config.network.elements, config.network.kernel, config.network.basis) == (8, "local", 3)
        assert Config.from_yaml(config.to_yaml(), "here") == config
        made = build(config, signature)
        lifts = [layer for layer in made.modules() if isinstance(layer, Lift)]
        assert [(layer.kernel_size, layer.out_grid.group.axis) for layer in lifts] == [((1, 5, 5), 0)]
    resnet = DEFAULTS["volumes"].updated(group="axial", elements=8, network="resnet", kernel_size=(1, 5, 5))
    with pytest.raises(ConfigError, match="kernel_size = 1x5x5: --network resnet takes one number"):
        build(resnet, signature)
    with pytest.raises(ValueError, match=r"kernel_size = \(1, 5, 5\) has 3 numbers, must have 2"):
        build(DEFAULTS["images"].updated(kernel_size=(1, 5, 5)), Signature(1, (32, 32), ("a", "b")))
    with pytest.raises(
        ConfigError, match=r"kernel_size = \(5, 5\): must be from 1 to 101, or three of them for volumes"
    ):
        DEFAULTS["segment"].updated(kernel_size="5x5")


def test_other_wrong_groups_are_named():
    for group in ("sim2", "o2", "gl2"):
        with pytest.raises(ConfigError, match=rf"'{group}' acts on images.*so3, o3, axial, scale or none"):
            make_grid(Network(group=group, elements=8), 3)
    for group, space, odd in (("o3", 3, 7), ("o2", 2, 9)):
        says = (
            f"elements = {odd}: half of the elements of {group} are reflections; take an even number, such as {odd + 1}"
        )
        with pytest.raises(ConfigError, match=says):
            make_grid(Network(group=group, elements=odd), space)
    for task, right, wrong in (("pcam", "so2", "o2"), ("celeba", "scale", "sim2"), ("landmarks", "scale", "so2")):
        config = find_task(task).defaults.updated(group=wrong)
        network = find_task(task).networks[0]
        with pytest.raises(ConfigError, match=f"'{wrong}': network {network} is for {right} or none"):
            find_task(task).make(config, Signature(3, (96, 96), ("a_row", "a_column"), kind="points"))


def test_a_configuration_with_factors_is_read_as_it_was_written():
    config = DEFAULTS["images"].given(group="sim2", elements="8x4", basis="3x3")
    assert (config.network.elements, config.network.basis) == ((8, 4), (3, 3))
    assert "elements: 8x4" in config.to_yaml()
    assert Config.from_yaml(config.to_yaml(), "here") == config


def test_large_groups_come_with_a_grid_and_kernels_of_their_own():
    base = DEFAULTS["images"]
    assert (base.given(group="sim2").network.elements, base.given(group="sim2").network.kernel) == ((8, 3), "local")
    assert base.given(group="sim2", kernel="dense").network.kernel == "dense"
    assert base.given(group="o2").network == base.updated(group="o2", elements=16).network, "as many rotations as so2"
    assert base.given(group="o2", elements=8).network.elements == 8
    chosen = base.given(group="gl2", elements="4x1x3x1")
    assert chosen.given(group="gl2", seed=3).network == chosen.network


@pytest.mark.parametrize(("group", "n_h"), [("o2", "8"), ("sim2", "4x2"), ("gl2", "4x1x3x1")])
def test_every_command_takes_the_group(tmp_path, image_folder, group, n_h):
    run = tmp_path / "run"
    succeeds("train", "images", "--data", image_folder, "--group", group, "--elements", n_h, "--out", run, *SMALL)
    page = (run / "report.html").read_text()
    words = {"o2": "reflected", "sim2": "at scale 0.71", "gl2": "squeezed along an axis"}
    assert words[group] in page
    assert "Learned kernels" in page
    text = succeeds("evaluate", run, "--layers", "--json")
    moves, rows = (json.loads(text)[name] for name in ("transformed", "equivariance"))
    assert len(moves["labels"]) == 48
    assert sum(words[group] in label for label in moves["labels"]) in (16, 24)
    errors = {row["layer"]: row["worst error"] for row in rows}
    assert all(math.isfinite(error) for error in errors.values())
    assert (sum(row["left out"] for row in rows) > 0) == (group != "o2"), "scales and squeezes have ends"
    if group == "o2":  # quarter turns and their mirror images move pixels onto pixels
        assert max(errors.values()) < 1e-4


def test_local_kernels_relate_mirror_images():
    grid = uniform(O2(), 16)
    mirror = torch.tensor([[0.0, -1.0]], dtype=torch.float64)
    basis = h_basis(grid, "local", 3)
    assert len(basis) == 6
    assert basis(mirror).abs().max() > 0.5
    one_sided = SplineBasis(local(O2(), 3, grid.spacing))
    assert one_sided(mirror).abs().max() == 0
    cube = h_basis(uniform(O3(), 48), "local")
    assert len(cube) == 14
    assert cube(-torch.eye(3, dtype=torch.float64)).abs().max() > 0.1


def test_kernels_on_products_take_one_number_per_factor():
    group = Product(SO2(), Scale(2))
    grid = uniform(group, (8, 4), spacing=(None, STEP))
    dense = h_basis(grid, "dense", (4, 2))
    angles, scales = group.split(dense.grid.elements)
    assert sorted(set(np.round(angles[:, 0].tolist(), 6) % 6.283185)) == pytest.approx(
        [0, 1.570796, 3.141593, 4.712389]
    )
    assert sorted(set(np.round(scales[:, 0].tolist(), 9))) == pytest.approx([1, 2**1.5])
    assert dense.widths == pytest.approx((math.pi / 2, 3 * STEP))
    assert h_basis(grid, "atrous", (4, 2)).widths == pytest.approx((math.pi / 4, STEP))
    assert (len(h_basis(grid, "local")), len(h_basis(grid, "local", (3, 3)))) == (5, 9)
    assert len(h_basis(grid, "dense")) == 32
    with pytest.raises(ValueError, match=r"n_k = 5 splines cannot be spread.*2 numbers, one per factor"):
        h_basis(grid, "dense", 5)


def test_kernels_on_other_groups():
    assert len(h_basis(uniform(O2(), 8), "dense", 16)) == 16
    assert h_basis(uniform(O2(), 16), "atrous", 8).widths == pytest.approx((math.pi / 4,))
    affine = make_grid(Network(group="gl2", elements=(4, 1, 3, 1)), 2)
    assert len(h_basis(affine, "dense")) == 12
    assert isinstance(h_basis(affine, "local").grid.group, GL2)
    with pytest.raises(ValueError, match="n_k = 5 splines cannot be spread"):
        h_basis(affine, "dense", 5)
