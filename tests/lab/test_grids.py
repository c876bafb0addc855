"""`--tta-grids`: a run is trained on one grid and answers with the mean over several."""

import math
from dataclasses import replace

import pytest
import torch
from onnxruntime import InferenceSession

from lab.small_runs import new_run
from liespline.lab.evaluation.onnx_file import export_onnx
from liespline.lab.runs.trained import load
from liespline.lab.settings import Config, ConfigError, Network, Training
from liespline.nn import shift

CONFIG = Config(
    task="digits",
    network=Network(group="so2", elements=4, widths=(2, 4), kernel_size=5, tta_grids=2),
    training=Training(epochs=1, batch_size=128, accelerator="cpu"),
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grids")
    once = replace(CONFIG, network=replace(CONFIG.network, tta_grids=1))
    return new_run(once, folder / "one"), new_run(CONFIG, folder / "two")


def test_weights_are_learned_on_one_grid(runs):
    one, two = runs
    assert one.model_file.read_bytes()[-1000:] == two.model_file.read_bytes()[-1000:]
    assert one.read_results()["parameters"] == two.read_results()["parameters"]
    assert one.read_metrics()[0]["valid_loss"] == two.read_metrics()[0]["valid_loss"]


def test_a_trained_network_answers_with_the_mean_and_changes_less(runs):
    one, two = (load(run.path) for run in runs)
    x = torch.rand(3, *(one.signature.in_channels, *one.signature.space))
    with torch.no_grad():
        expected = one(x) / 2
        with shift(one, torch.tensor([math.pi / 4])):
            expected = expected + one(x) / 2
        assert torch.allclose(two(x), expected, atol=1e-6)
        assert not torch.allclose(one(x), expected, atol=1e-3)
    change = [run.read_results()["transformed"]["relative_output_change"] for run in runs]
    assert change[1] < 0.8 * change[0]


def test_the_mean_is_what_is_exported(runs, tmp_path):
    trained = load(runs[1].path)
    x = torch.rand(1, trained.signature.in_channels, *trained.signature.space)
    export_onnx(runs[1].path, tmp_path / "net.onnx")
    session = InferenceSession(tmp_path / "net.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    assert abs(torch.from_numpy(found) - trained(x).detach()).max() < 1e-4


def test_a_network_without_a_grid_is_refused():
    with pytest.raises(ConfigError, match="--tta-grids 3 with --group none: it has no grid to offset"):
        replace(CONFIG, network=Network(group="none", elements=1, tta_grids=3))
