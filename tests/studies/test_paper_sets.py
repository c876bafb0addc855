"""The paper's tasks: their networks and their augmentation."""

import pytest
import torch

from liespline.lab.data.augment import Draws
from liespline.lab.networks import Signature
from liespline.lab.settings import ConfigError
from studies import pcam_whole
from studies.paper.celeba import CELEBA
from studies.paper.pcam import PCAM


def test_the_paper_network_takes_no_sizes():
    with pytest.raises(ConfigError, match="--parameters does nothing with the paper's network"):
        PCAM.make(PCAM.defaults.updated(parameters=5000), Signature(3, (88, 88), ("a", "b")))
    with pytest.raises(ConfigError, match="--set separable=… does nothing with the paper's network"):
        PCAM.make(PCAM.defaults.updated(separable=True), Signature(3, (88, 88), ("a", "b")))
    with pytest.raises(ConfigError, match=r"kernel_size = 9: .* has 5, or 7"):
        PCAM.make(PCAM.defaults.updated(kernel_size=9), Signature(3, (88, 88), ("a", "b")))


@pytest.mark.filterwarnings("ignore:.*energy falls outside")  # of the paper's
def test_the_set_of_whole_windows_differs_in_them_alone():
    paper, whole = pcam_whole.STUDY.configs({}).values()
    assert whole == paper.updated(kernel_size=7)
    networks = [PCAM.make(config, Signature(3, (88, 88), ("a", "b"))) for config in (paper, whole)]
    assert [p.shape for p in networks[0].parameters()] == [p.shape for p in networks[1].parameters()]


@pytest.mark.parametrize(("preset", "least", "most"), [("paper", 0, 1), ("released", 20, 44)])
def test_the_task_zooms_as_often_as_its_preset_does(preset, least, most):
    zoom = CELEBA.augmentations["zoom"](CELEBA.defaults.updated(preset=preset))
    points = torch.full((64, 1, 2), 20.0)
    _, moved = zoom(torch.zeros(64, 1, 32, 32), points, Draws(torch.Generator().manual_seed(0)))
    assert least <= int(((moved - points).abs().amax((1, 2)) < 1e-4).sum()) <= most


@pytest.mark.parametrize(("preset", "blur"), [("paper", 0.0), ("released", 1.0)])
def test_the_released_scripts_blur_before_they_look(preset, blur):
    signature = Signature(3, (128, 128), ("nose",), kind="points")
    assert CELEBA.objective(CELEBA.defaults.updated(preset=preset), signature).blur == blur
