"""Networks from outside: any `nn.Module` of a file is trained, scored and loaded like our own."""

import json

import pytest
import torch
from torch import nn

from liespline.lab import load
from liespline.lab.data.digits import load as digits
from liespline.lab.runs.model_file import read_weights

FILE = """
from torch import nn

def small(in_channels, classes):
    return nn.Sequential(nn.Conv2d(in_channels, 5, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(20, classes))

number = 3
"""  # noqa: E501
TRAIN = "train digits --group none --epochs 1 --accelerator cpu --quiet".split()


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file of a name that no other test has imported, in the current directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{tmp_path.name}.py").write_text(FILE)
    return f"{tmp_path.name}.py"


def test_a_network_of_a_file_is_trained_and_scored_as_it_answers(liespline, tmp_path, file):
    status, said = liespline(*TRAIN, "--set", f"network={file}:small", "--out", "run")
    assert status == 0, said
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    net = nn.Sequential(
        nn.Conv2d(1, 5, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(20, 10)
    ).eval()  # fmt: skip
    net.load_state_dict(read_weights(tmp_path / "run" / "model.safetensors")[0])
    images, targets = digits("test").__getitems__(range(450))
    answers = net(images / 255).argmax(1)
    assert results["scores"]["accuracy"] == pytest.approx((answers == targets).float().mean().item(), abs=1e-6)
    assert results["parameters"] == sum(p.numel() for p in net.parameters())
    assert torch.equal(load("run").network(images / 255).argmax(1), answers)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("{}:large", "has no function of that name"),
        ("{}:number", "has no function of that name"),
        ("absent.py:small", "does not exist"),
        ("resnets", "Did you mean 'resnet'?"),
    ],
)
def test_what_is_no_network_is_refused_by_its_name(liespline, file, word, said):
    word = word.format(file)
    status, message = liespline(*TRAIN, "--set", f"network={word}", "--out", "run")
    assert status == 2
    assert said in message
