"""MONAI: its sliding windows, losses and configurations take our networks as they are, and `convert` takes its own."""

import shutil
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np
import pytest
import torch
from monai.bundle import ConfigParser
from monai.inferers import SlidingWindowInferer
from monai.losses import DiceCELoss
from monai.networks.nets import DynUNet, UNet

import liespline as ls

GRID = ls.uniform(ls.SO3(), 12)
NETWORK = {
    "_target_": "liespline.models.unet",
    "in_channels": 1,
    "out_channels": 3,
    "grid": {"_target_": "liespline.uniform", "group": {"_target_": "liespline.SO3"}, "n": 12},
    "widths": [2, 3],
    "kernel_size": 3,
}


def test_a_configuration_names_the_network() -> None:
    torch.manual_seed(0)
    named = ConfigParser({"network": NETWORK}).get_parsed_content("network")
    torch.manual_seed(0)
    ours = ls.models.unet(1, 3, GRID, widths=(2, 3), kernel_size=3)
    volume = torch.randn(1, 1, 12, 12, 12)
    assert torch.equal(named.eval()(volume), ours.eval()(volume))


def test_sliding_windows_are_the_network_where_one_is_enough() -> None:
    """And rotate with the volume where there are several, for their places do."""
    net = ls.models.unet(1, 3, GRID, widths=(2, 3), kernel_size=3).eval().double()
    volume = torch.randn(1, 1, 16, 16, 16).double()
    with torch.no_grad():
        whole = SlidingWindowInferer(roi_size=(16, 16, 16))(volume, net)
        assert torch.allclose(whole, net(volume))
        windows = SlidingWindowInferer(roi_size=(8, 8, 8), overlap=0.5, mode="gaussian")
        turned = windows(volume.rot90(2, (2, 3)), net)
        assert torch.allclose(turned, windows(volume, net).rot90(2, (2, 3)), atol=1e-4)


def test_a_step_of_training() -> None:
    net = ls.models.unet(1, 3, GRID, widths=(2, 3), kernel_size=3, checkpoint=True)
    loss_of, optimiser = DiceCELoss(to_onehot_y=True, softmax=True), torch.optim.AdamW(net.parameters(), 1e-2)
    volumes, masks = torch.randn(2, 1, 10, 10, 10), torch.randint(3, (2, 1, 10, 10, 10))
    losses = []
    for _ in range(4):
        optimiser.zero_grad()
        loss = loss_of(net(volumes), masks)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def spread_of_change(net: torch.nn.Module, volume: torch.Tensor) -> float:
    """By how much output changes, beyond rotating, when a volume is rotated; over its spread."""
    with torch.no_grad():
        upright, rotated = net(volume), net(volume.rot90(2, (2, 3)))
    return float((rotated - upright.rot90(2, (2, 3))).abs().max() / upright.std())


@pytest.mark.parametrize("norm", ["instance", "batch"])
def test_its_unet_is_converted(norm: str) -> None:
    plain = UNet(3, 1, 2, channels=(4, 6, 8), strides=(2, 2), norm=norm, act="PRELU")
    net, volume = ls.convert(plain, GRID).eval(), torch.randn(1, 1, 16, 16, 16)
    assert net(volume).shape == plain(volume).shape
    assert spread_of_change(net, volume) < 1e-4
    assert spread_of_change(plain.eval(), volume) > 0.1


def test_its_residual_unet_is_converted_behind_a_convolution() -> None:
    plain = UNet(3, 4, 2, channels=(4, 6, 8), strides=(2, 2), num_res_units=2)
    net = ls.convert(torch.nn.Sequential(torch.nn.Conv3d(1, 4, 3, padding=1), plain), GRID).eval()
    assert spread_of_change(net, torch.randn(1, 1, 16, 16, 16)) < 1e-4


def test_dynunet_is_converted() -> None:
    """Without its deep supervision, which resizes feature maps in its own `forward`."""
    options = {
        "kernel_size": [3] * 4,
        "strides": [1, 2, 2, 2],
        "upsample_kernel_size": [2] * 3,
        "filters": [4, 6, 8, 8],
    }
    plain = DynUNet(3, 1, 2, **options)
    net, volume = ls.convert(plain, GRID), torch.randn(1, 1, 16, 16, 16)
    net.train()(volume).sum().backward()
    assert net.eval()(volume).shape == plain.eval()(volume).shape
    assert spread_of_change(net, volume) < 1e-4


def test_the_bundle_trains_and_predicts(tmp_path: Path) -> None:
    """docs/monai_bundle, by MONAI's own command; its masks are those of the network it kept."""
    for folder in ("images", "labels"):
        (tmp_path / "data" / folder).mkdir(parents=True)
    affine = np.diag([1.0, 1.0, 2.0, 1.0])
    for i in range(6):
        ball = (np.linalg.norm(np.indices((14, 12, 13)).T - (6, 5 + i % 3, 6), axis=-1).T < 4).astype(np.float32)
        image = ball + 0.3 * np.random.default_rng(i).normal(size=ball.shape).astype(np.float32)
        for folder, values in (("images", image), ("labels", ball.astype(np.uint8))):
            nibabel.save(nibabel.Nifti1Image(values, affine), tmp_path / "data" / folder / f"{i}.nii.gz")
    bundle = tmp_path / "bundle"
    shutil.copytree(Path(__file__).parents[2] / "docs" / "monai_bundle", bundle)
    options = ["--dataset_dir", tmp_path / "data", "--patch", "[12,12,12]", "--network_def#widths", "[2,3]"]
    both = "['configs/train.yaml','configs/inference.yaml']"
    for config, more in (("configs/train.yaml", ("--epochs", "2")), (both, ())):
        run = [sys.executable, "-m", "monai.bundle", "run", "--config_file", config, *options, *more]
        found = subprocess.run(run, cwd=bundle, capture_output=True, text=True)
        assert found.returncode == 0, found.stderr[-3000:]
    net = ls.models.unet(1, 3, GRID, widths=(2, 3), norm="instance").eval()
    net.load_state_dict(torch.load(bundle / "models" / "model.pt", weights_only=True))
    mask = nibabel.load(bundle / "masks" / "0.nii.gz")
    image = torch.tensor(nibabel.load(tmp_path / "data" / "images" / "0.nii.gz").get_fdata(dtype=np.float32))
    image = ((image - image.mean()) / image.std(correction=0))[None, None]
    with torch.no_grad():
        logits = SlidingWindowInferer((12, 12, 12), 4, 0.5, "gaussian")(image, net)
    assert (logits.argmax(1)[0].numpy() == mask.get_fdata()).mean() > 0.999
    assert np.array_equal(mask.affine, affine)
