"""What every layer and network has to hold, in memory, in files and on its grid; test_modules.py runs these too."""

import copy
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path

import safetensors.torch
import torch
from torch.nn.modules.batchnorm import _BatchNorm

from liespline.models.kernels import SPLINES
from liespline.nn import shift
from networks import Network, close, layers

X64 = torch.float64


def lies_in_memory_as_one_likes(case: Network) -> None:
    net, x = case().eval(), case.image()
    expected = net(x)
    if x.ndim in (4, 5):
        memory_format = torch.channels_last if x.ndim == 4 else torch.channels_last_3d
        net.to(memory_format=memory_format)
        x = x.contiguous(memory_format=memory_format)
    else:
        x = x.transpose(1, 2).contiguous().transpose(1, 2)
    close(net(x), expected)
    assert all(p.is_contiguous() for layer in layers(net) for p in layer.parameters())


def is_made_on_the_meta_device(case: Network) -> None:
    if not case.on_meta:
        return
    truth = case().eval()
    with torch.device("meta"):
        net, assigned = case().eval(), case()
    assert all(p.is_meta for p in net.parameters())
    net.to_empty(device="cpu").load_state_dict(truth.state_dict())
    x = case.image()
    assert torch.equal(net(x), truth(x))
    assigned.load_state_dict(truth.state_dict(), assign=True)
    for layer, right in zip(layers(assigned), layers(truth), strict=True):
        for samples, exact in zip(layer.samples(), right.samples(), strict=True):
            assert torch.equal(layer.weight, right.weight)
            assert exact is None or torch.equal(samples, exact)
    net.to("meta").to_empty(device="cpu")
    for layer in layers(net):
        layer.reset_parameters()
        assert all(p.isfinite().all() for p in layer.parameters())


def goes_through_copies_and_files(case: Network) -> None:
    net, x = case(), case.image()
    net(x)
    net.eval()
    expected = net(x)
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(twin(x), expected)
        with torch.no_grad():
            for parameter in twin.parameters():
                parameter.zero_()
        assert torch.equal(net(x), expected)
    with tempfile.TemporaryDirectory() as folder:
        torch.save(net.state_dict(), Path(folder, "net.pt"))
        apart = {key: tensor.clone() for key, tensor in net.state_dict().items()}  # no layer under two names
        safetensors.torch.save_file(apart, Path(folder, "net.safetensors"))
        by_torch = torch.load(Path(folder, "net.pt"), weights_only=True)
        states = by_torch, safetensors.torch.load_file(Path(folder, "net.safetensors"))
    for state in states:
        other = case().eval()
        assert not torch.equal(other(x), expected)
        other.load_state_dict(state, strict=True)
        assert torch.equal(other(x), expected)
    averaged = torch.optim.swa_utils.AveragedModel(net, use_buffers=True)
    for _ in range(2):
        averaged.update_parameters(net)
    close(averaged.module.eval()(x), expected)


def holds_what_is_trained_and_nothing_else(case: Network) -> None:
    net = case()
    trained = {key for key, _ in net.named_parameters(remove_duplicate=False)}
    norms = {name for name, module in net.named_modules(remove_duplicate=False) if isinstance(module, _BatchNorm)}
    counted = {f"{name}.{key}" for name in norms for key in ("running_mean", "running_var", "num_batches_tracked")}
    before = {key: tensor.clone() for key, tensor in net.eval().state_dict().items()}
    told = {key for key in before if key.endswith(f".{SPLINES}")}  # which splines what was trained belongs to
    assert before.keys() == trained | counted | told
    net(case.image())
    assert all(torch.equal(before[key], tensor) for key, tensor in net.state_dict().items())
    net.train()(case.image()).sum().backward()
    after = net.state_dict()
    assert after.keys() == before.keys()
    assert {key for key, tensor in after.items() if not torch.equal(before[key], tensor)} == counted


def comes_back_from_a_shift_to_the_bit(case: Network) -> None:
    net, x = case().double().eval(), case.image(dtype=X64)
    before, trained = net(x), {key: value.clone() for key, value in net.state_dict().items()}
    grid = layers(net)[0].out_grid
    group = grid.group.quotient_of or grid.group
    with shift(net, group.exp(0.3 * torch.linspace(1, 2, group.dim, dtype=X64))):
        changed = (net(x) - before).abs().max()
    assert torch.equal(net(x), before)
    assert all(torch.equal(trained[key], value) for key, value in net.state_dict().items())
    assert bool(changed > 1e-6) == (group.dim > 0 and len(layers(net)[0].kernel_size) > 0)


CHECKS: tuple[Callable[[Network], None], ...] = (
    lies_in_memory_as_one_likes,
    is_made_on_the_meta_device,
    goes_through_copies_and_files,
    holds_what_is_trained_and_nothing_else,
    comes_back_from_a_shift_to_the_bit,
)
