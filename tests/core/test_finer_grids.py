"""Weights on a finer grid: the same function where the splines on H are the same, an error where they are not."""

import copy
import io
import pickle

import pytest
import torch

from liespline import SO2, uniform
from liespline.models import classifier


def network(n_h, kernel, n_k):
    torch.manual_seed(0)
    return classifier(1, 3, uniform(SO2(), n_h), widths=(3, 4, 4), kernel=kernel, n_k=n_k).double().eval()


def image():
    noise = torch.rand(2, 1, 25, 25, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return torch.nn.functional.avg_pool2d(noise, 5, 1)


@torch.no_grad()
def test_dense_splines_are_the_same_on_every_grid():
    coarse, fine = network(8, "dense", 8), network(16, "dense", 8)
    for parameter in coarse.parameters():
        parameter.add_(0.01 * torch.ones_like(parameter))  # other weights than the finer one began with
    fine.load_state_dict(coarse.state_dict())
    change = (fine(image()) - coarse(image())).norm() / coarse(image()).norm()
    assert change < 0.05


@pytest.mark.parametrize("kernel", ["local", "atrous", "deformable"])
@torch.no_grad()
def test_splines_as_wide_as_a_step_are_refused(kernel):
    n_k = 4 if kernel == "atrous" else 3
    coarse, fine = network(8, kernel, n_k), network(16, kernel, n_k)
    with pytest.raises(RuntimeError, match="splines on H of width"):
        fine.load_state_dict(coarse.state_dict())
    network(8, kernel, n_k).load_state_dict(coarse.state_dict())


def test_the_refusal_survives_a_file_and_a_copy():
    coarse, fine = network(8, "local", 3), network(16, "local", 3)
    file = io.BytesIO()
    torch.save(coarse.state_dict(), file)
    file.seek(0)
    for other in (fine, copy.deepcopy(fine), pickle.loads(pickle.dumps(fine))):
        with pytest.raises(RuntimeError, match="splines on H of width"):
            other.load_state_dict(torch.load(io.BytesIO(file.getvalue()), weights_only=True))


def test_plain_tensors_still_load():
    coarse = network(8, "local", 3)
    tensors = dict(coarse.state_dict())  # as safetensors gives them, without metadata
    network(8, "local", 3).load_state_dict(tensors)
    assert all(isinstance(value, torch.Tensor) for value in tensors.values())
