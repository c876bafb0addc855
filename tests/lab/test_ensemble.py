"""Networks that a setting makes: means over networks trained side by side and over grids, and separable layers."""

import copy
import math

import pytest
import torch
from onnxruntime import InferenceSession
from torch import nn

from lab.small_runs import new_run
from liespline import GConv
from liespline.lab.evaluation.onnx_file import export_onnx
from liespline.lab.networks import Signature
from liespline.lab.runs.model_file import read_weights
from liespline.lab.runs.trained import load, warm_start
from liespline.lab.settings import Training
from liespline.lab.tasks import find_task
from liespline.lab.tasks.objectives import Classification
from liespline.lab.training.learner import Learner
from liespline.nn import Ensemble, SeparableGConv, shift

SMALL = find_task("digits").defaults.updated(elements=4, widths=(2, 4), epochs=1, batch_size=128, accelerator="cpu")
ENSEMBLE = SMALL.updated(ensemble=3, ema=0.9)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """On one grid, over two grids, and of three networks."""
    folder = tmp_path_factory.mktemp("means")
    configs = {"one": SMALL, "grids": SMALL.updated(tta_grids=2), "networks": ENSEMBLE}
    return {name: new_run(config, folder / name) for name, config in configs.items()}


@pytest.fixture
def images(runs):
    signature = load(runs["one"].path).signature
    return torch.rand(3, signature.in_channels, *signature.space)


def test_each_has_the_gradient_that_it_would_have_alone():
    members = [nn.Linear(4, 3).double() for _ in range(3)]
    x, targets = torch.randn(5, 4, dtype=torch.float64), torch.tensor([0, 1, 2, 2, 0])
    alone = copy.deepcopy(members)
    learner = Learner(Ensemble(members), Classification("abc", smoothing=0.1), Training()).train()
    losses = [nn.functional.cross_entropy(member(x), targets, label_smoothing=0.1) for member in alone]
    sum(losses).backward()
    learner.training_step((x, targets), 0).backward()
    assert learner._losses[0].item() == pytest.approx(sum(losses).item() / 3, abs=1e-14), "the curve shows their mean"
    for member, one in zip(members, alone, strict=True):
        assert torch.allclose(member.weight.grad, one.weight.grad, atol=1e-14)


def test_an_ensemble_gives_the_mean_of_networks_that_differ(runs, images):
    run = runs["networks"]
    trained, (weights, _) = load(run.path), read_weights(run.model_file)
    one = find_task("digits").make(SMALL, trained.signature).eval()
    outputs = []
    for number in range(3):
        prefix = f"networks.{number}."
        one.load_state_dict({k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)})
        outputs.append(one(images).detach())
    assert torch.allclose(trained(images), sum(outputs) / 3, atol=1e-6)
    assert min((a - b).abs().max() for a, b in zip(outputs, outputs[1:] + outputs[:1], strict=True)) > 1e-2
    assert "The mean of 3 networks, together of " in run.report_file.read_text()
    assert run.read_results()["parameters"] == 3 * sum(p.numel() for p in one.parameters())


def test_a_network_over_grids_is_trained_on_one_and_changes_less(runs, images):
    one, two = runs["one"], runs["grids"]
    assert one.model_file.read_bytes()[-1000:] == two.model_file.read_bytes()[-1000:]
    assert one.read_results()["parameters"] == two.read_results()["parameters"]
    assert one.read_metrics()[0]["valid_loss"] == two.read_metrics()[0]["valid_loss"]
    network = load(one.path)
    with torch.no_grad():
        expected = network(images) / 2
        with shift(network, torch.tensor([math.pi / 4])):
            expected = expected + network(images) / 2
        assert torch.allclose(load(two.path)(images), expected, atol=1e-6)
        assert not torch.allclose(network(images), expected, atol=1e-3)
    change = [run.read_results()["transformed"]["relative_output_change"] for run in (one, two)]
    assert change[1] < 0.8 * change[0]


@pytest.mark.parametrize("name", ["grids", "networks"])
def test_the_mean_is_what_is_exported(runs, images, name, tmp_path):
    export_onnx(runs[name].path, tmp_path / "net.onnx")
    session = InferenceSession(tmp_path / "net.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: images[:1].numpy()})
    assert abs(torch.from_numpy(found) - load(runs[name].path)(images[:1]).detach()).max() < 1e-4


def test_parameters_are_those_of_all_together():
    task, signature = find_task("digits"), Signature(1, (24, 24), tuple("0123456789"))
    nets = [task.make(ENSEMBLE.updated(parameters=30_000, ensemble=count), signature) for count in (1, 3)]
    assert [sum(p.numel() for p in net.parameters()) for net in nets] == [pytest.approx(30_000, rel=0.1)] * 2


def test_other_classes_begin_with_new_last_layers_in_each(runs):
    run = runs["networks"]
    config = ENSEMBLE.updated(init_from=str(run.path))
    fresh = find_task("digits").make(config, Signature(1, (24, 24), ("a", "b", "c")))
    own = copy.deepcopy(fresh.state_dict())
    assert warm_start(fresh, config)
    taken, (weights, _) = fresh.state_dict(), read_weights(run.model_file)
    new = {name for name in own if own[name].shape != weights[name].shape}
    assert {name.split(".")[1] for name in new} == {"0", "1", "2"}
    assert all(torch.equal(taken[name], own[name] if name in new else weights[name]) for name in own)


SIGNATURE = Signature(1, (16, 16), ("a", "b"))


def made(task: str, **changes):
    chosen = find_task(task)
    return chosen.make(chosen.defaults.updated(elements=4, **changes), SIGNATURE)


@pytest.mark.parametrize(
    ("task", "changes"),
    [("digits", {}), ("images", {"network": "resnet", "widths": (4, 6)}), ("segment", {"widths": (4, 6)})],
)
def test_no_layer_mixes_space_and_the_group_at_once(task, changes):
    torch.manual_seed(0)
    net = made(task, separable=True, **changes).eval()
    parts = [part for layer in net.modules() if isinstance(layer, SeparableGConv) for part in layer.children()]
    whole = [layer for layer in net.modules() if isinstance(layer, GConv) and layer not in parts]
    assert parts
    assert all(set(layer.weight.shape[2:3]) == {1} for layer in whole), "one spline in space: nothing to separate"
    assert not any(isinstance(layer, SeparableGConv) for layer in made(task, **changes).modules())
    x = torch.randn(2, 1, 16, 16)
    turned = net(torch.rot90(x, 1, (-2, -1)))
    right = torch.rot90(net(x), 1, (-2, -1)) if task == "segment" else net(x)
    assert torch.allclose(turned, right, atol=1e-4)


def test_the_budget_of_weights_counts_separable_layers():
    sizes = [sum(p.numel() for p in made("digits", separable=s, parameters=20_000).parameters()) for s in (True, False)]
    assert all(abs(size - 20_000) < 2_000 for size in sizes)
