"""Optimisers and schedules against loops written out."""

import math

import pytest
import torch
from torch import nn

from liespline import SO2, Lift, models, optim, uniform
from liespline.lab.settings import Training
from liespline.lab.tasks import find_task
from liespline.lab.training.optimisers import DecoupledSGD, optimiser, schedule


def test_decoupled_decay_is_not_amplified_by_momentum():
    weight, plain = (nn.Parameter(torch.tensor([2.0, -3.0], dtype=torch.float64)) for _ in range(2))
    lr, decay, momentum = 0.1, 0.05, 0.9
    stepper = DecoupledSGD([{"params": [weight]}, {"params": [plain], "decay": 0.0}], lr, momentum, decay)
    expected, velocity = [2.0, -3.0], [0.0, 0.0]
    for step in range(5):
        gradient = [math.sin(step + 1), math.cos(step)]
        for p in (weight, plain):
            p.grad = torch.tensor(gradient, dtype=torch.float64)
        stepper.step()
        for i in range(2):
            velocity[i] = momentum * velocity[i] + gradient[i]
            expected[i] = (1 - lr * decay) * expected[i] - lr * velocity[i]
    assert weight.tolist() == pytest.approx(expected, abs=1e-14)
    reference = nn.Parameter(torch.tensor([2.0, -3.0], dtype=torch.float64))
    coupled = torch.optim.SGD([reference], lr, momentum, weight_decay=decay)
    for step in range(5):
        reference.grad = torch.tensor([math.sin(step + 1), math.cos(step)], dtype=torch.float64)
        coupled.step()
    assert not torch.allclose(reference, weight, atol=1e-4)  # torch's own decay is another thing


def test_a_closure_is_called_before_the_weights_move():
    weight = nn.Parameter(torch.tensor([1.0]))
    stepper = DecoupledSGD([{"params": [weight]}], 0.1, 0.0, 0.5)

    def closure():
        stepper.zero_grad()
        loss = weight.square().sum()
        loss.backward()
        return loss

    assert stepper.step(closure).item() == 1.0
    assert weight.item() == pytest.approx((1 - 0.05) * 1.0 - 0.1 * 2.0)


@pytest.mark.filterwarnings("ignore:.*falls outside.*")
@pytest.mark.parametrize(
    ("network", "convolutions"), [(lambda: models.pcam(4, 4, "dense"), 7), (lambda: models.celeba(2, 1, "local"), 10)]
)
def test_the_weights_of_every_convolution_decay_and_nothing_else(network, convolutions):
    """All numbered layers of the paper's tables, the plain 2-D ones too; one step without a gradient shows it."""
    net = network()
    sgd = optimiser(net, Training(optimiser="sgd", lr=0.01, weight_decay=5e-4))
    before = {name: p.detach().double().clone() for name, p in net.named_parameters()}
    for parameter in net.parameters():
        parameter.grad = torch.zeros_like(parameter)
    sgd.step()
    shrunk = 0
    for name, parameter in net.named_parameters():
        factor = 1 - 0.01 * 5e-4 if parameter.ndim >= 3 else 1.0  # norms and biases have one axis
        torch.testing.assert_close(parameter.double(), factor * before[name], rtol=2e-7, atol=0)
        shrunk += parameter.ndim >= 3
    assert shrunk == convolutions


def test_centres_and_biases_never_decay():
    network = models.classifier(1, 2, uniform(SO2(), 4), widths=(2, 2), kernel="deformable")
    adamw = optimiser(network, Training())
    decayed, rest = adamw.param_groups
    assert (decayed["weight_decay"], rest["weight_decay"]) == (0.01, 0.0)
    kept = {id(p) for p in rest["params"]}
    for name, parameter in network.named_parameters():
        assert (id(parameter) in kept) == ("centres" in name or name.endswith("bias") or parameter.ndim == 1), name


def test_the_papers_rate_is_halved_every_twelve_epochs_of_a_hundred_and_in_proportion():
    for epochs in (100, 40):
        factor = schedule(Training(optimiser="sgd", epochs=epochs), steps_per_epoch=10)
        twelve = 12 * epochs // 10
        assert [factor(step) for step in (0, twelve - 1, twelve, 2 * twelve - 1, 2 * twelve)] == [1, 1, 0.5, 0.5, 0.25]
        assert factor(10 * epochs - 1) == 0.5**8


def test_the_other_rate_rises_and_falls_to_zero():
    factor = schedule(Training(epochs=10), steps_per_epoch=10)
    values = [factor(step) for step in range(101)]
    top = values.index(max(values))
    assert values[:top] == sorted(values[:top])
    assert values[top:] == sorted(values[top:], reverse=True)
    assert max(values) == pytest.approx(1, abs=0.01)
    assert values[-1] == pytest.approx(0, abs=1e-12)
    assert values[0] > 0


@pytest.mark.parametrize(
    ("name", "kind"), [("adamw", torch.optim.AdamW), ("spectral-adamw", optim.SpectralAdamW), ("sgd", DecoupledSGD)]
)
def test_every_optimiser_by_its_name(name, kind):
    net = Lift(1, 2, 5, uniform(SO2(), 4))
    made = optimiser(net, find_task("images").defaults.updated(optimiser=name).training)
    assert type(made) is kind
    net(torch.randn(1, 1, 7, 7)).square().mean().backward()
    before = net.weight.clone()
    made.step()
    assert not torch.equal(net.weight, before)
