"""nnU-Net's plans: ours are written beside them, and the network they name is what its trainer and predictor need.

`make stacks` runs nnU-Net itself.
"""

import json
import pydoc
from pathlib import Path
from typing import Any

import pytest
import torch

import liespline as ls
from liespline.integrations.nnunet import EquivariantUNet, grid_of, has_mirrors, write_plans

SIZES = {"strides": [[1, 1, 1], [1, 2, 2], [2, 2, 2]], "kernel_sizes": [[1, 3, 3], [3, 3, 3], [3, 3, 3]]}


def architecture(d: int) -> dict[str, Any]:
    own = {name: [sides[-d:] for sides in values] for name, values in SIZES.items()}
    return {"arch_kwargs": own | {"features_per_stage": [8, 16, 32], "n_stages": 3, "conv_bias": True}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What nnU-Net's planning leaves: plans of three configurations, of which the last takes over another's."""
    made = tmp_path / "Dataset004_Hippocampus"
    made.mkdir()
    configurations = {
        "2d": {"batch_size": 17, "architecture": architecture(2)},
        "3d_fullres": {"batch_size": 2, "patch_size": [8, 16, 16], "architecture": architecture(3)},
        "3d_cascade_fullres": {"inherits_from": "3d_fullres", "previous_stage": "3d_lowres"},
    }
    plans = {"plans_name": "nnUNetPlans", "configurations": configurations}
    (made / "nnUNetPlans.json").write_text(json.dumps(plans))
    (made / "dataset.json").write_text(json.dumps({"labels": {"background": 0}}))
    monkeypatch.setenv("nnUNet_preprocessed", str(tmp_path))
    return made


def test_plans_name_a_network_that_trains_as_nnunet_does(folder: Path) -> None:
    written = write_plans(4, "so3", 12)
    plans = json.loads(written.file.read_text())
    assert (written.file, plans["plans_name"]) == (folder / "liesplineSO3.json", "liesplineSO3")
    assert written.configurations["2d"] == "left out: so3 acts on volumes"
    assert list(plans["configurations"]) == ["3d_fullres", "3d_cascade_fullres"]
    configuration = plans["configurations"]["3d_fullres"]
    assert configuration["patch_size"] == [8, 16, 16]
    named = configuration["architecture"]
    assert named["arch_kwargs"]["kernel_sizes"][:2] == [[1, 5, 5], [5, 5, 5]]
    # As nnunetv2.utilities.get_network_from_plans does.
    small = named["arch_kwargs"] | {"widths": [2, 2, 3], "kernel_sizes": SIZES["kernel_sizes"]}
    made = pydoc.locate(named["network_class_name"])(input_channels=1, num_classes=3, deep_supervision=True, **small)
    x = torch.randn(1, 1, 8, 8, 8)
    maps = made(x)
    assert [tuple(m.shape) for m in maps] == [(1, 3, 8, 8, 8), (1, 3, 8, 4, 4)]
    made.decoder.deep_supervision = False
    assert torch.equal(made(x), maps[0])
    assert made.decoder.checkpoint
    assert {type(m) for m in made.modules() if hasattr(m, "haar")} == {ls.nn.InstanceNorm}
    left_out = [key for key in made.state_dict() if ".seg_layers." in key]
    assert len(left_out) == 4  # weight and bias of both heads
    # The predictor builds it without, and loads what the trainer kept.
    again = EquivariantUNet(1, 3, deep_supervision=False, **small)
    again.load_state_dict(made.state_dict())
    assert torch.equal(again(x), maps[0])


@pytest.mark.parametrize(("group", "elements", "d"), [("o3", 24, 3), ("o3", 48, 3), ("o2", 8, 2)])
def test_grids_with_all_reflections_need_no_mirrored_predictions(group: str, elements: int, d: int) -> None:
    assert has_mirrors(grid_of(group, elements, d))
    options = {"widths": [2, 2], "strides": [[1] * d, [2] * d], "kernel_sizes": [[3] * d] * 2}
    net = EquivariantUNet(1, 2, group=group, elements=elements, deep_supervision=False, **options).double()
    x = torch.randn(1, 1, *(6, 5, 4)[:d]).double()
    for axis in range(2, 2 + d):
        assert torch.allclose(net(x.flip(axis)), net(x).flip(axis), atol=1e-10)


def test_grids_without_them_do(folder: Path) -> None:
    for group, elements, d in (("so3", 24, 3), ("so2", 8, 2), ("none", 1, 3), ("o2", 8, 3), ("o2", 6, 2)):
        assert not has_mirrors(grid_of(group, elements, d)), (group, d)
    assert write_plans(4, "so2").trainers == {"2d": None, "3d_fullres": None}
    assert write_plans(4, "o2").trainers == {"2d": "nnUNetTrainerNoMirroring", "3d_fullres": None}


def test_volumes_rotate_about_the_coarsest_axis_with_groups_of_the_plane() -> None:
    assert grid_of("so2", 8, 3).group == ls.Axial(ls.SO2(), 0)
    net = EquivariantUNet(1, 2, group="so2", elements=4, widths=[2, 3, 3], deep_supervision=False, **SIZES).double()
    x = torch.randn(1, 1, 4, 8, 8).double()
    assert torch.allclose(net(x.rot90(1, (3, 4))), net(x).rot90(1, (3, 4)), atol=1e-10)


def test_what_is_missing_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for given, why in (
        ((7, "so3"), r"dataset 7: no folder .*run nnUNetv2_plan_and_preprocess -d 7 first"),
        ((4, "cube"), "group = 'cube', must be one of so2"),
        ((4, "so3", 13), "n = 13 for SO3.*12, 24 or 60"),
    ):
        with pytest.raises(ValueError, match=why):
            write_plans(*given)
    with pytest.raises(ValueError, match=r"no plans nnUNetResEncUNetMPlans.json; there are nnUNetPlans"):
        write_plans(4, "so3", base="nnUNetResEncUNetMPlans")
    assert write_plans(4, "so3", 12).file == write_plans(4, "so3", 12).file
    with pytest.raises(ValueError, match="other plans of this name; give these another with --name"):
        write_plans(4, "so3", 24)
    assert write_plans(4, "so3", 24, name="cube").file.name == "cube.json"
    with pytest.raises(ValueError, match="acts on volumes, and this configuration has 2 axes"):
        EquivariantUNet(1, 2, group="so3", elements=12, widths=[2], strides=[[1, 1]], kernel_sizes=[[3, 3]])
    with pytest.raises(ValueError, match=r"strides = \[\[2, 2\]\]; the first must be 1"):
        EquivariantUNet(1, 2, group="so2", elements=4, widths=[2], strides=[[2, 2]], kernel_sizes=[[3, 3]])
    (folder / "nnUNetPlans.json").unlink()
    (folder / "liesplineSO3.json").unlink()
    (folder / "cube.json").unlink()
    with pytest.raises(ValueError, match="run nnUNetv2_plan_and_preprocess -d 4 first"):
        write_plans(4, "so3")
    monkeypatch.delenv("nnUNet_preprocessed")
    with pytest.raises(ValueError, match="nnUNet_preprocessed is not set"):
        write_plans(4, "so3")
