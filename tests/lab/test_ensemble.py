"""`--set ensemble=…`: networks that learn beside each other, each as it would alone, and answer with their mean."""

import copy

import pytest
import torch
from onnxruntime import InferenceSession
from torch import nn

from lab.small_runs import new_run
from liespline.lab.evaluation.onnx_file import export_onnx
from liespline.lab.runs.checkpoint import read_weights
from liespline.lab.runs.trained import load, warm_start
from liespline.lab.settings import Training
from liespline.lab.tasks import find_task
from liespline.lab.tasks.networks import Signature
from liespline.lab.tasks.objectives import Classification
from liespline.lab.training.learner import Learner
from liespline.nn import Ensemble

CONFIG = find_task("digits").defaults.updated(
    elements=4, widths=(2, 4), ensemble=3, epochs=1, batch_size=128, ema=0.9, accelerator="cpu"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return new_run(CONFIG, tmp_path_factory.mktemp("ensemble") / "run")


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


def test_a_run_answers_with_the_mean_of_networks_that_differ(run):
    trained, (weights, _) = load(run.path), read_weights(run.model_file)
    one = find_task("digits").make(CONFIG.updated(ensemble=1), trained.signature).eval()
    x = torch.rand(4, trained.signature.in_channels, *trained.signature.space)
    answers = []
    for number in range(3):
        prefix = f"networks.{number}."
        one.load_state_dict({k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)})
        answers.append(one(x).detach())
    assert torch.allclose(trained(x), sum(answers) / 3, atol=1e-6)
    assert min((a - b).abs().max() for a, b in zip(answers, answers[1:] + answers[:1], strict=True)) > 1e-2
    assert "The mean of 3 networks, together of " in run.report_file.read_text()
    assert run.read_results()["parameters"] == 3 * sum(p.numel() for p in one.parameters())


def test_the_mean_is_what_is_exported(run, tmp_path):
    trained = load(run.path)
    x = torch.rand(1, trained.signature.in_channels, *trained.signature.space)
    export_onnx(run.path, tmp_path / "net.onnx")
    session = InferenceSession(tmp_path / "net.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    assert abs(torch.from_numpy(found) - trained(x).detach()).max() < 1e-4


def test_weights_are_those_of_all_together():
    task, signature = find_task("digits"), Signature(1, (24, 24), tuple("0123456789"))
    nets = [task.make(CONFIG.updated(parameters=30_000, ensemble=count), signature) for count in (1, 3)]
    one, three = (sum(p.numel() for p in net.parameters()) for net in nets)
    assert three == pytest.approx(30_000, rel=0.1)
    assert one == pytest.approx(30_000, rel=0.1)


def test_other_classes_begin_with_new_last_layers_in_each(run, tmp_path):
    config = CONFIG.updated(init_from=str(run.path))
    fresh = find_task("digits").make(config, Signature(1, (24, 24), ("a", "b", "c")))
    own = copy.deepcopy(fresh.state_dict())
    assert warm_start(fresh, config)
    learned, (weights, _) = fresh.state_dict(), read_weights(run.model_file)
    new = {name for name in own if own[name].shape != weights[name].shape}
    assert {name.split(".")[1] for name in new} == {"0", "1", "2"}
    assert all(torch.equal(learned[name], own[name] if name in new else weights[name]) for name in own)
