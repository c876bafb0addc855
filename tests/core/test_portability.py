"""Layers move between devices, memory layouts, processes and files without a number changing."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
import safetensors.torch
import torch

import liespline as ls
from liespline import GConv, Lift, Project, SplineBasis
from networks import NETWORKS, close, every_network, image

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


# ---- memory formats and devices ----


@every_network
def test_channels_last(name: str) -> None:
    net = NETWORKS[name]().eval()
    x = image(net)
    expected = net(x)
    if x.ndim > 3:
        memory_format = torch.channels_last if x.ndim == 4 else torch.channels_last_3d
        net.to(memory_format=memory_format)
        x = x.contiguous(memory_format=memory_format)
    else:
        x = x.transpose(1, 2).contiguous().transpose(1, 2)
    close(net(x), expected)
    assert all(p.is_contiguous() for p in net.parameters())


@every_network
def test_meta_device(name: str) -> None:
    truth = NETWORKS[name]()
    with torch.device("meta"):
        net = NETWORKS[name]()
    assert all(p.is_meta for p in net.parameters())
    net.to_empty(device="cpu").load_state_dict(truth.state_dict())
    x = image(net)
    assert torch.equal(net(x), truth(x))
    with torch.device("meta"):
        assigned = NETWORKS[name]()
    assigned.load_state_dict(truth.state_dict(), assign=True)
    assert torch.equal(assigned[:4](x), truth[:4](x))
    net.to("meta").to_empty(device="cpu")
    for module in net:
        if isinstance(module, Lift | GConv):
            module.reset_parameters()
    assert all(p.isfinite().all() for p in net[3].parameters())


def test_grids_and_bases_made_under_another_default_device() -> None:
    with torch.device("meta"):
        grids = [
            ls.uniform(ls.SO2(), 7),
            ls.uniform(ls.Scale(2), 3, spacing=0.3),
            ls.uniform(ls.SO3(), 24),
            ls.repulsion(ls.Sphere(), 5),
            ls.local(ls.SO3(), 7, 0.5),
            ls.lattice(2, 3),
            ls.disc(5),
        ]
        downsample = ls.nn.Downsample(2).to_empty(device="cpu")
        layer = GConv(1, 1, 5, grids[0], h_basis=SplineBasis(ls.local(ls.SO2(), 3, 0.9)), device="cpu")
    assert all(not grid.elements.is_meta for grid in grids)
    assert layer(torch.randn(1, 1, 7, 9, 9)).isfinite().all()
    assert torch.equal(downsample.taps, ls.nn.Downsample(2).taps)


def test_layers_first_made_in_inference_mode_leave_later_ones_trainable() -> None:
    with torch.inference_mode():
        grid = ls.uniform(ls.SO2(), 9)  # new to every cache
        GConv(1, 2, 5, grid, dtype=torch.float64)
    layer = GConv(1, 2, 5, ls.uniform(ls.SO2(), 9), dtype=torch.float64)
    layer(torch.randn(1, 1, 9, 9, 9, dtype=torch.float64)).sum().backward()
    assert layer.weight.grad.abs().max() > 0


def test_state_of_another_dtype_can_be_assigned() -> None:
    truth, net = NETWORKS["Scale 2-D"]().double(), NETWORKS["Scale 2-D"]()
    net.load_state_dict(truth.state_dict(), assign=True)
    x = image(net, dtype=torch.float64)
    assert torch.equal(net[:4](x), truth[:4](x))


# ---- copies and files ----


@every_network
def test_copies_and_files(name: str, tmp_path: Path) -> None:
    net = NETWORKS[name]()
    x = image(net)
    net(x)
    net.eval()
    expected = net(x)
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(twin(x), expected)
        with torch.no_grad():
            twin[3].weight.zero_()
        assert torch.equal(net(x), expected)

    torch.save(net.state_dict(), tmp_path / "net.pt")
    by_torch = torch.load(tmp_path / "net.pt", weights_only=True)
    safetensors.torch.save_file(net.state_dict(), tmp_path / "net.safetensors")
    for state in (by_torch, safetensors.torch.load_file(tmp_path / "net.safetensors")):
        other = NETWORKS[name]().eval()
        assert not torch.equal(other(x), expected)
        other.load_state_dict(state, strict=True)
        assert torch.equal(other(x), expected)


@every_network
def test_state_dict_holds_what_is_learned_and_nothing_else(name: str) -> None:
    net = NETWORKS[name]()
    learned = {key for key, _ in net.named_parameters()}
    norm = {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
    assert {"0.weight", "0.bias", "3.weight", "3.bias"} <= learned
    assert any(key.endswith("centres") for key in learned) == ("deformable" in name)
    before = {key: tensor.clone() for key, tensor in net.eval().state_dict().items()}
    assert before.keys() == learned | norm
    net(image(net))
    same = [torch.equal(before[key], tensor) for key, tensor in net.state_dict().items()]
    assert all(same)
    assert len(same) == len(before)
    net.train()(image(net)).sum().backward()
    after = net.state_dict()
    assert after.keys() == before.keys()
    assert {key for key, tensor in after.items() if not torch.equal(before[key], tensor)} == norm


def test_project_follows_device_and_dtype() -> None:
    project = Project("sum", ls.uniform(ls.Sphere(), 6)).to(torch.float16).double()
    assert torch.equal(project.weights, project.grid.weights)
