"""`--set separable=true` reaches every network of the lab that can be built of separable layers."""

import pytest
import torch

from liespline import GConv
from liespline.lab.networks import Signature
from liespline.lab.tasks import find_task
from liespline.nn import SeparableGConv

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
