"""nnU-Net v2: its own commands plan, train and predict with the network of our plans, on the CPU.

Twelve small volumes with a ball in each, one epoch of two steps.
"""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np
import pytest
import torch

NAME = "Dataset004_Balls"
PLANS = "liesplineSO3"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of nnU-Net with a planned dataset, and our plans, written by the command, beside its own."""
    root = tmp_path_factory.mktemp("nnunet")
    for kind in ("raw", "preprocessed", "results"):
        os.environ[f"nnUNet_{kind}"] = str(root / kind)
        (root / kind).mkdir()
    os.environ |= {"nnUNet_n_proc_DA": "1", "nnUNet_def_n_proc": "1", "nnUNet_compile": "f"}
    raw = root / "raw" / NAME
    for folder in ("imagesTr", "labelsTr"):
        (raw / folder).mkdir(parents=True)
    drawn = np.random.default_rng(0)
    places = np.stack(np.meshgrid(*map(np.arange, (18, 20, 16)), indexing="ij"), -1)
    for i in range(12):
        ball = np.linalg.norm(places - drawn.uniform(6, 11, 3), axis=-1) < 4
        image = ball + 0.5 * drawn.normal(size=ball.shape)
        nibabel.save(
            nibabel.Nifti1Image(image.astype(np.float32), np.eye(4)), raw / "imagesTr" / f"b{i:02}_0000.nii.gz"
        )
        nibabel.save(nibabel.Nifti1Image(ball.astype(np.uint8), np.eye(4)), raw / "labelsTr" / f"b{i:02}.nii.gz")
    about = {"channel_names": {"0": "MRI"}, "labels": {"background": 0, "ball": 1}, "numTraining": 12}
    (raw / "dataset.json").write_text(json.dumps(about | {"file_ending": ".nii.gz"}))
    command("nnUNetv2_plan_and_preprocess -d 4 -c 2d 3d_fullres -np 1 1")
    said = command("liespline nnunet plans 4 --group so3 --elements 12")
    assert f"train with: nnUNetv2_train 4 3d_fullres 0 -p {PLANS}" in said
    command("liespline nnunet plans 4 --group o3 --name mirrored")
    return root


def command(line: str) -> str:
    """Run a command of this environment."""
    name, *arguments = line.split()
    found = subprocess.run([Path(sys.executable).with_name(name), *arguments], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout[-2000:] + found.stderr[-4000:]
    return found.stdout


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """nnU-Net's trainer, with one epoch of two steps."""
    from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer

    made = nnUNetTrainer.__init__

    def shorter(self, *given, **named):
        made(self, *given, **named)
        self.num_epochs, self.num_iterations_per_epoch, self.num_val_iterations_per_epoch = 1, 2, 1

    shorter.__signature__ = inspect.signature(made)
    monkeypatch.setattr(nnUNetTrainer, "__init__", shorter)
    monkeypatch.setenv("nnUNet_n_proc_DA", "0")


def test_its_commands_train_and_predict(root: Path, short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from nnunetv2.inference.predict_from_raw_data import predict_entry_point
    from nnunetv2.run.run_training import run_training_entry

    monkeypatch.setattr("sys.argv", f"x 4 3d_fullres 0 -p {PLANS} -device cpu".split())
    run_training_entry()
    trained = root / "results" / NAME / f"nnUNetTrainer__{PLANS}__3d_fullres"
    scores = json.loads((trained / "fold_0" / "validation" / "summary.json").read_text())
    assert 0 <= scores["foreground_mean"]["Dice"] <= 1
    images, out = root / "raw" / NAME / "imagesTr", root / "out"
    line = f"x -i {images} -o {out} -d 4 -c 3d_fullres -f 0 -p {PLANS} -device cpu -npp 1 -nps 1 --disable_tta"
    monkeypatch.setattr("sys.argv", line.split())
    predict_entry_point()
    assert len(list(out.glob("*.nii.gz"))) == 12
    check_logits(trained, images / "b00_0000.nii.gz", out / "b00.nii.gz")


def check_logits(trained: Path, image: Path, mask: Path) -> None:
    """What nnU-Net predicts is what the network says, built here from its plans and parameters alone."""
    from nnunetv2.inference.predict_from_raw_data import nnUNetPredictor

    from liespline.integrations.nnunet import EquivariantUNet

    configuration = json.loads((trained / "plans.json").read_text())["configurations"]["3d_fullres"]
    net = EquivariantUNet(1, 2, **configuration["architecture"]["arch_kwargs"], deep_supervision=False).eval()
    parameters = torch.load(trained / "fold_0" / "checkpoint_final.pth", weights_only=False)["network_weights"]
    net.load_state_dict(parameters)
    predictor = nnUNetPredictor(use_gaussian=False, use_mirroring=False, device=torch.device("cpu"), allow_tqdm=False)
    predictor.initialize_from_trained_model_folder(str(trained), (0,))
    patch = torch.randn(1, *configuration["patch_size"])
    with torch.no_grad():
        found, expected = predictor.predict_logits_from_preprocessed_data(patch).float(), net(patch[None])[0]
    assert (found - expected).abs().max() < 0.02 * expected.std()  # it adds up windows in half precision
    # Of pretrained parameters it leaves the heads out, so that classes may be others.
    from nnunetv2.run.load_pretrained_weights import load_pretrained_weights

    other = EquivariantUNet(1, 4, **configuration["architecture"]["arch_kwargs"])
    load_pretrained_weights(other, trained / "fold_0" / "checkpoint_final.pth")
    assert torch.equal(other.decoder.down[0][0].weight, net.decoder.down[0][0].weight)
    assert set(np.unique(nibabel.load(mask).get_fdata())) <= {0.0, 1.0}
    assert nibabel.load(mask).shape == nibabel.load(image).shape


def test_mirror_images_add_nothing_where_the_grid_has_them(root: Path) -> None:
    """`-tr nnUNetTrainerNoMirroring` predicts the same: in an eighth of the time."""
    from nnunetv2.inference.predict_from_raw_data import nnUNetPredictor
    from nnunetv2.training.nnUNetTrainer.variants.data_augmentation.nnUNetTrainerNoMirroring import (
        nnUNetTrainerNoMirroring,
    )

    from liespline.integrations.nnunet import NO_MIRRORING, EquivariantUNet

    assert nnUNetTrainerNoMirroring.__name__ == NO_MIRRORING
    plans = json.loads((root / "preprocessed" / NAME / "mirrored.json").read_text())
    options = plans["configurations"]["3d_fullres"]["architecture"]["arch_kwargs"]
    predictor = nnUNetPredictor(device=torch.device("cpu"))
    options["widths"] = [2] * len(options["widths"])
    predictor.network = EquivariantUNet(1, 2, **options, deep_supervision=False).eval().double()
    x = torch.randn(1, 1, 16, 16, 16).double()
    predictor.allowed_mirroring_axes = None
    once = predictor._internal_maybe_mirror_and_predict(x)
    predictor.allowed_mirroring_axes = (0, 1, 2)
    assert torch.allclose(predictor._internal_maybe_mirror_and_predict(x), once, atol=1e-9)
