"""AdamW in the modes of splines: against torch's own AdamW on a network that is written in modes."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from liespline import SO2, SO3, GConv, Lift, Project, SplineBasis, optim, uniform
from liespline.nn import SeparableGConv
from liespline.optim.spectral import from_modes, modes, to_modes

OPTIONS: dict[str, Any] = {"lr": 0.05, "weight_decay": 0.1}


def network() -> nn.Module:
    torch.manual_seed(0)
    grid = uniform(SO2(), 8)
    layers = [Lift(1, 2, 5, grid), nn.ReLU(), GConv(2, 3, 5, grid), nn.ReLU(), SeparableGConv(3, 3, 5, grid)]
    return nn.Sequential(*layers, Project("max", grid), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 2)).double()


def batches(count: int = 4) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [
        (
            torch.randn(3, 1, 15, 15, generator=generator, dtype=torch.float64),
            torch.randn(3, 2, generator=generator, dtype=torch.float64),
        )
        for _ in range(count)
    ]


def trained(net: nn.Module, optimiser: torch.optim.Optimizer, data: list[tuple[Tensor, Tensor]]) -> nn.Module:
    for x, y in data:
        optimiser.zero_grad()
        (net(x) - y).square().mean().backward()
        optimiser.step()
    return net


class InModes(nn.Module):
    """A parametrisation: what is learned are modes, written out by sums that use nothing of the optimiser's own."""

    def __init__(self, matrices: tuple[Tensor, ...]) -> None:
        super().__init__()
        self.matrices = matrices

    def forward(self, learned: Tensor) -> Tensor:
        if len(self.matrices) == 1:
            return torch.einsum("ocp,pi->oci", learned, self.matrices[0])
        return torch.einsum("ocpq,pi,qj->ocij", learned, *self.matrices)

    def right_inverse(self, weight: Tensor) -> Tensor:
        inverse = [torch.linalg.inv(matrix) for matrix in self.matrices]
        if len(inverse) == 1:
            return torch.einsum("oci,ip->ocp", weight, inverse[0])
        return torch.einsum("ocij,ip,jq->ocpq", weight, *inverse)


@pytest.mark.parametrize("smoothness", [0.0, 0.4])
def test_steps_are_those_of_a_network_written_in_modes(smoothness: float) -> None:
    ours = network()
    explicit = copy.deepcopy(ours)
    layers = [layer for layer in explicit.modules() if isinstance(layer, ls.nn.base.Correlation)]
    assert len(layers) == 4
    for layer in layers:
        nn.utils.parametrize.register_parametrization(layer, "weight", InModes(modes(layer, smoothness)))
    trained(explicit, torch.optim.AdamW(explicit.parameters(), **OPTIONS), batches())
    trained(ours, optim.SpectralAdamW(ours, smoothness=smoothness, **OPTIONS), batches())
    plain = network()
    trained(plain, torch.optim.AdamW(plain.parameters(), **OPTIONS), batches())
    x = batches(1)[0][0]
    torch.testing.assert_close(ours(x), explicit(x), rtol=0, atol=1e-11)
    assert (ours(x) - plain(x)).abs().max() > 1e-3  # torch's steps in splines are others


def test_the_module_shows_its_optimiser_alone() -> None:
    assert {name for name in dir(optim) if not name.startswith("_")} == {"SpectralAdamW", "spectral"}


def test_in_one_kernel() -> None:
    """`fused` asks for weights and gradients that lie in memory alike."""
    nets = [network() for _ in range(2)]
    for net, fused in zip(nets, (False, True), strict=True):
        trained(net, optim.SpectralAdamW(net, fused=fused, **OPTIONS), batches())
    for mine, other in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-10)


def test_modes_on_the_circle_are_waves() -> None:
    group = modes(GConv(1, 1, 5, uniform(SO2(), 8)))[1].numpy()
    energy = np.abs(np.fft.fft(group)) ** 2
    for row in energy:
        assert row.max() / row.sum() > 0.5 - 1e-9  # one frequency, of either sign
        assert row[row.argmax()] + row[-row.argmax()] * (row.argmax() % 4 != 0) == pytest.approx(row.sum())


def test_smooth_modes_take_longer_steps() -> None:
    """With a gradient of equal parts of all modes, Adam's first step is in proportion to λ^s, of geometric mean 1."""
    layer = Lift(1, 1, 9, uniform(ls.Scale(1), 2, spacing=0.5)).double()
    samples = layer.samples()[0].flatten(0, -2)
    norms, vectors = np.linalg.eigh((samples.T @ samples).numpy())
    before = layer.weight.detach().clone()
    optimiser = optim.SpectralAdamW(layer, lr=1e-3, smoothness=0.5, weight_decay=0)
    layer.weight.grad = torch.from_numpy(vectors.sum(1)).expand_as(layer.weight).clone()
    optimiser.step()
    steps = ((layer.weight.detach() - before) / -1e-3).flatten().numpy() @ vectors
    np.testing.assert_allclose(steps, np.sqrt(norms) / np.exp(np.log(norms).mean() / 2), rtol=1e-6)


@pytest.mark.parametrize(
    "layer",
    [
        lambda: Lift(1, 1, 7, uniform(SO2(), 5)),
        lambda: GConv(2, 1, 3, uniform(SO3(), 12)),
        lambda: GConv(1, 2, 5, uniform(SO2(), 6), h_basis=SplineBasis(ls.local(SO2(), 3, 1.0), trainable=True)),
    ],
)
def test_modes_are_orthogonal_and_turn_back(layer: Any) -> None:
    made = layer().double()
    turns = modes(made)
    for matrix in turns:
        torch.testing.assert_close(matrix @ matrix.T, torch.eye(len(matrix), dtype=torch.float64))
    weight = torch.randn_like(made.weight)
    torch.testing.assert_close(from_modes(to_modes(weight, turns), turns), weight)
    torch.testing.assert_close(to_modes(weight, turns).norm(), weight.norm())


def test_gradients_are_left_alone_and_what_has_none_stays() -> None:
    net = network()
    optimiser = optim.SpectralAdamW(net, lr=0.1, weight_decay=0)
    (x, y), *_ = batches(1)
    (net(x) - y).square().mean().backward()
    net[0].weight.grad = None
    before = {name: parameter.clone() for name, parameter in net.named_parameters()}
    gradients = {name: parameter.grad for name, parameter in net.named_parameters()}
    copies = {name: None if grad is None else grad.clone() for name, grad in gradients.items()}
    optimiser.step()
    for name, parameter in net.named_parameters():
        assert parameter.grad is gradients[name]
        if copies[name] is None:
            assert torch.equal(parameter, before[name])
        else:
            assert torch.equal(gradients[name], copies[name])
            assert not torch.equal(parameter, before[name])


def test_no_gradient_no_rounding() -> None:
    """Weights of few digits are not worn off by turning them there and back."""
    net = GConv(2, 2, 5, uniform(SO2(), 8)).to(torch.bfloat16)
    before = net.weight.clone()
    optimiser = optim.SpectralAdamW(net, lr=0.1, weight_decay=0)
    for _ in range(20):
        net.weight.grad = torch.zeros_like(net.weight)
        optimiser.step()
    assert torch.equal(net.weight, before)


def test_a_closure_and_a_resumed_run() -> None:
    net, whole = network(), network()
    trained(net, first := optim.SpectralAdamW(net, **OPTIONS), batches()[:2])
    saved = copy.deepcopy((net.state_dict(), first.state_dict()))
    whole.load_state_dict(saved[0])
    trained(net, first, batches()[2:])
    later = optim.SpectralAdamW(whole, **OPTIONS)
    later.load_state_dict(saved[1])
    for x, y in batches()[2:]:

        def closure(x: Tensor = x, y: Tensor = y) -> Tensor:
            later.zero_grad()
            loss = (whole(x) - y).square().mean()
            loss.backward()
            return loss

        assert later.step(closure) > 0
    for mine, other in zip(whole.parameters(), net.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_groups_of_parameters() -> None:
    net = network()
    groups = [{"params": [net[0].weight], "lr": 0.0}, {"params": [net[2].weight]}]
    before = [net[i].weight.clone() for i in (0, 2, 8)]
    trained(net, optim.SpectralAdamW(net, lr=0.1, params=groups), batches(1))
    changed = [not torch.equal(net[i].weight, old) for i, old in zip((0, 2, 8), before, strict=True)]
    assert changed == [False, True, False]
