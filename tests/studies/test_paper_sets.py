"""The paper's tasks: their networks, their augmentation, and the runs of their sweeps."""

from pathlib import Path

import pytest
import torch

from liespline.lab.data.augment import Draws
from liespline.lab.settings import ConfigError
from liespline.lab.sweep.plan import plan
from liespline.lab.tasks.networks import Signature
from studies import celeba_paper, celeba_released, celeba_short, pcam_paper, pcam_short, pcam_whole
from studies.paper.celeba import CELEBA
from studies.paper.pcam import PCAM


def test_the_papers_25_pcam_runs():
    runs = pcam_paper.STUDY.configs({})
    assert len(runs) == 25
    pairs = [(c.network.kernel, c.network.elements, c.network.basis, c.training.augment) for c in runs.values()]
    assert len(set(pairs)) == 25
    assert ("dense", 12, 12, "no-rot90") in pairs
    assert ("local", 16, 3, "rot90") in pairs
    assert {p for p in pairs if p[3] == "no-rot90"} == {("dense", 1, 1, "no-rot90"), ("dense", 12, 12, "no-rot90")}


def test_the_short_pcam_set_is_balanced_wherever_it_stops():
    """Fourteen networks; each but the 2-D one, when its turn comes, finds the network that the paper compares it to."""
    names = list(pcam_short.STUDY.configs({}))
    equal, coarse = ["dense-4-4", "dense-8-8", "dense-12-12", "dense-16-16"], ["16-4", "16-8"]
    wanted = {"dense-1-1", "unturned-1-1", "unturned-12-12", "local-16-3", "local-16-5", "local-12-3", *equal}
    wanted |= {f"{kernel}-{pair}" for kernel in ("dense", "atrous") for pair in coarse}
    assert set(names) == wanted
    assert len(names) == 14
    beside = dict.fromkeys(["unturned-1-1", "unturned-12-12", *equal], "dense-1-1")
    beside |= {"dense-16-4": "dense-4-4", "dense-16-8": "dense-8-8", "atrous-16-4": "dense-16-4"}
    beside |= {"atrous-16-8": "dense-16-8", "local-16-3": "dense-16-4", "local-16-5": "dense-16-4"}
    assert all(names.index(other) < names.index(name) for name, other in beside.items())


def test_the_short_celeba_set_has_every_network_of_several_scales():
    runs = celeba_short.STUDY.configs({})
    scaled = {f"local-{n}-{k}" for n in range(2, 6) for k in (1, 3)} | {f"dense-{n}-{n}" for n in range(2, 6)}
    assert set(runs) == scaled | {"plain-1", "plain-1-zoom", "plain-3", "plain-3-zoom"}
    for start in range(0, 12, 3):  # three kernels of as many scales follow each other
        assert len({config.network.elements for config in list(runs.values())[start : start + 3]}) == 1


def test_the_papers_celeba_runs():
    runs = celeba_paper.STUDY.configs({})
    grouped = [c for c in runs.values() if c.network.group == "scale"]
    plain = [c for c in runs.values() if c.network.group == "none"]
    assert {(c.network.elements, c.network.basis) for c in grouped} >= {(n, k) for n in range(2, 6) for k in (1, 3, n)}
    assert sorted({round(c.network.scale, 3) for c in plain}) == [1, 1.414, 2, 2.828, 4]
    assert [c.training.augment for c in plain].count("zoom") == 5
    assert all(c.training.augment == "none" for c in grouped)


def test_the_scripts_had_2d_networks_at_other_scales():
    entries = plan(celeba_released.STUDY, Path("x"), 1, {})
    plain = [e.config for e in entries if e.config.network.group == "none"]
    assert sorted({c.network.scale for c in plain}) == [1, 1.6, 2, 2.8, 4]
    assert {e.config.preset for e in entries} == {"released"}


def test_seeds_come_round_by_round():
    entries = plan(pcam_paper.STUDY, Path("x"), 2, {"epochs": 3, "data": "d"})
    assert len(entries) == 50
    assert [e.config.seed for e in entries] == [0] * 25 + [1] * 25
    assert {e.config.training.epochs for e in entries} == {3}
    assert len({e.run.path for e in entries}) == 50
    assert entries[0].run.path == Path("x/runs/dense-1-1/seed-0")


def test_the_paper_network_takes_no_sizes():
    with pytest.raises(ConfigError, match="--parameters does nothing with the paper's network"):
        PCAM.make(PCAM.defaults.updated(parameters=5000), Signature(3, (88, 88), ("a", "b")))
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
