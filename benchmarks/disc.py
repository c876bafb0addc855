"""What looking at a disc alone does to the symmetry of a network that was trained on tissue.

    python -m benchmarks.disc PCAM --epochs 20 --modes --seed 0

A small residual network, by default of eight orientations, learns from a tenth of the training patches, the middle
64×64 of each, turned by any angle. Its AUC is that of 1,200 other training patches; how far its outputs change is
measured on 120 of them, cut to the disc that stays in view and turned. One thread; every line printed is one network:
on the square, with the last mean over a disc but zeros beyond the border of every layer, and with `disc=True`.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchmetrics.functional.classification import binary_auroc

import liespline as ls
from liespline import models
from liespline.lab.data import as_float
from liespline.lab.transforms import in_disc, moved
from studies.data import pcam

BATCH, RATE, MARGIN, ANGLES = 32, 5e-3, 12, (7.5, 15, 22.5, 30, 45, 60, 75, 90)
KINDS = ("square", "mean over a disc", "disc")


def middle(images: Tensor) -> Tensor:
    """The middle 64×64 of patches of 88×88."""
    return images[..., MARGIN:-MARGIN, MARGIN:-MARGIN]


def network(kind: str, orientations: int) -> nn.Module:
    """A network of one of the KINDS."""
    grid = ls.uniform(ls.SO2(), orientations)
    net = models.resnet(3, 2, grid, widths=(4, 4, 8, 8), kernel="local", n_k=3, disc=kind != "square")
    for layer in net.modules() if kind == "mean over a disc" else ():
        if hasattr(layer, "padding_mode"):
            layer.padding_mode = "zeros"
    return net


def trained(images: Tensor, targets: Tensor, net: nn.Module, asked: argparse.Namespace) -> nn.Module:
    """The network after one cycle of the rate."""
    torch.manual_seed(asked.seed)
    kind = ls.optim.AdamW(net, lr=RATE) if asked.modes else torch.optim.AdamW(net.parameters(), lr=RATE)
    rate = torch.optim.lr_scheduler.OneCycleLR(kind, RATE, total_steps=asked.epochs * (len(images) // BATCH))
    augment = pcam.AnyTurn()
    for _ in range(asked.epochs):
        for rows in torch.randperm(len(images)).split(BATCH)[: len(images) // BATCH]:
            x, y = augment(images[rows], targets[rows])
            loss = F.cross_entropy(net(middle(x)), y, label_smoothing=0.1)
            kind.zero_grad()
            loss.backward()
            kind.step()
            rate.step()
    return net.eval()


@torch.no_grad()
def measured(net: nn.Module, images: Tensor, targets: Tensor) -> str:
    """AUC, and the change of the outputs at each angle, in per cent, on one grid and for the mean of two."""
    outputs = torch.cat([net(middle(part)) for part in images.split(60)])
    auc = float(binary_auroc(outputs[:, 1] - outputs[:, 0], targets))
    inside, around = in_disc(middle(images[:120]))

    turns = [torch.tensor([math.radians(angle)], dtype=torch.float64) for angle in (0, *ANGLES)]
    said = f"AUC {100 * auc:.1f}"
    for name, over in (("change", net), ("of the mean of two grids", ls.nn.GridAverage(net, 2))):
        upright, *turned = (over(moved(inside, ls.SO2(), turn) + around) for turn in turns)
        changes = [100 * float((answer - upright).norm() / upright.norm()) for answer in turned]
        overall = math.sqrt(sum(change**2 for change in changes[:-1]) / (len(changes) - 1))
        said += f"; {name} {overall:.1f} %: " + ", ".join(
            f"{angle:g}° {change:.1f}" for angle, change in zip(ANGLES, changes, strict=True)
        )
    return said


def main() -> None:
    """Train and measure the networks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with PCam's official files")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--modes", action="store_true", help="steps in modes of the splines")
    parser.add_argument("--orientations", type=int, default=8)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    patches = pcam.load(asked.data, "train")
    few = patches.share(0.1)
    images, targets = few.__getitems__(range(len(few)))
    known = {int(row) for row in few._rows}
    others = [row for row in np.random.default_rng(0).permutation(len(patches)).tolist() if row not in known][:1200]
    unseen, truth = patches.__getitems__(others)
    for kind in asked.kinds:
        torch.manual_seed(asked.seed)
        net = trained(images, targets, network(kind, asked.orientations), asked)
        print(f"{kind}: {measured(net, as_float(unseen), truth)}", flush=True)


if __name__ == "__main__":
    main()
