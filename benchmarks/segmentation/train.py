"""One training: patches drawn on the device, the best epoch by images kept apart from the training ones, its scores."""

import argparse
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from liespline import SO2, SO3, repulsion
from liespline.lab.evaluation.mask_scores import dice, under_rotations
from networks import make

PICKING = 0.15  # of the training images pick the best weights, so that the validation images stay clean
STEPS_BETWEEN = 100
PATCH, BATCH = {2: 128, 3: 32}, {2: 16, 3: 8}
MULTIPLE = 8


def train(job: dict[str, Any], folder: Any, options: dict[str, Any], settings: argparse.Namespace) -> dict[str, Any]:
    """Train a network and score it on held-out images, upright and turned."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(job["seed"])
    pairs, held_out, classes = read(folder / f"{job['data']}.npz", device)
    places = [[torch.nonzero(mask == c).cpu().float() for c in range(1, classes)] for _, mask in pairs]
    learn, pick, test = shares(len(pairs), held_out, job["share"], job["seed"])
    d = pairs[0][0].ndim - 1
    torch.backends.cudnn.benchmark = d == 2  # volumes have a hundred sizes: trying algorithms for each takes longer
    network = make(options, len(pairs[0][0]), classes, settings.weights).to(device)
    step = torch.compile(network) if settings.compile else network
    optimiser = torch.optim.AdamW(network.parameters(), lr=4e-3, weight_decay=1e-3)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, settings.steps, pct_start=0.15)
    draw = torch.Generator().manual_seed(job["seed"])
    best, kept, curve = -1.0, network.state_dict(), []
    for number in range(1, settings.steps + 1):
        images, masks = batch([(*pairs[row], places[row]) for row in learn], d, job["turns"], draw)
        network.train()
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = step(images.to(memory_format=layout(d)))
        loss = loss_of(logits.float(), masks, classes)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        rate.step()
        if number % STEPS_BETWEEN == 0 or number == settings.steps:
            score = mean_dice(network, [pairs[row] for row in pick], classes)
            curve.append(round(score, 4))
            if score >= best:
                best, kept = score, {key: value.clone() for key, value in network.state_dict().items()}
    network.load_state_dict(kept)
    scores = final(network, [pairs[row] for row in test], d, classes)
    weights = sum(p.numel() for p in network.parameters() if p.requires_grad)
    memory = torch.cuda.max_memory_allocated() >> 20 if device.type == "cuda" else 0
    images = {"train": len(learn), "pick": len(pick), "test": len(test)}
    return {
        "weights": weights,
        "steps": settings.steps,
        "images": images,
        "memory_mib": memory,
        "curve": curve,
    } | scores


def layout(d: int) -> torch.memory_format:
    """Channels innermost, which convolutions like."""
    return torch.channels_last if d == 2 else torch.channels_last_3d


def read(file: Any, device: torch.device) -> tuple[list[tuple[Tensor, Tensor]], np.ndarray, int]:
    """Images (C, *space) and masks (*space) on the device, which of them are held out, and the number of classes."""
    with np.load(file) as arrays:
        images, masks = torch.from_numpy(arrays["images"]).to(device), torch.from_numpy(arrays["masks"]).to(device)
        shapes, held_out, classes = arrays["shapes"], arrays["held_out"], len(arrays["classes"])
    sizes = shapes.prod(1)
    spaces = shapes[:, 1:].prod(1)
    pairs = []
    for shape, image, mask in zip(
        shapes.tolist(), images.split(sizes.tolist()), masks.split(spaces.tolist()), strict=True
    ):
        pairs.append(((image.float().sub_(128) / 32).view(shape), mask.view(shape[1:]).long()))
    return pairs, held_out, classes


def shares(count: int, held_out: np.ndarray, share: float, seed: int) -> tuple[list[int], list[int], list[int]]:
    """Rows to learn from, to pick by and to test on; without given splits a fifth is for testing, the same for all."""
    test = np.flatnonzero(held_out)
    if not len(test):
        test = np.random.default_rng(1234).permutation(count)[: count // 5]
    rest = np.random.default_rng(seed).permutation(np.setdiff1d(np.arange(count), test))
    rest = rest[: max(4, round(share * len(rest)))]
    picking = max(2, round(PICKING * len(rest)))
    return rest[picking:].tolist(), rest[:picking].tolist(), test.tolist()


def batch(
    pairs: list[tuple[Tensor, Tensor, list[Tensor]]], d: int, turns: bool, draw: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Random patches; with `turns`, each turned by its own random rotation and half of them mirrored."""
    side, device = PATCH[d], pairs[0][0].device
    chosen = [pairs[int(row)] for row in torch.randint(len(pairs), (BATCH[d],), generator=draw)]
    spaces = torch.tensor([mask.shape for _, mask, _ in chosen], dtype=torch.float32)
    centres = []
    for (_, _, places), space in zip(chosen, spaces, strict=True):
        where = torch.rand(d, generator=draw) * space
        found = places[int(torch.randint(len(places), (), generator=draw))]
        if len(found) and torch.rand((), generator=draw) < 0.5:  # half of the patches around what is to be found
            where = found[int(torch.randint(len(found), (), generator=draw))]
        half = torch.full((d,), side / 2)
        low, high = torch.minimum(half, space / 2), torch.maximum(space - half, space / 2)
        # Between two samples, where the middle of an even patch lies: without turns nothing is interpolated.
        centres.append(torch.minimum(torch.maximum(where, low), high).floor() - 0.5)
    matrices = torch.stack([rotation(d, turns, draw) for _ in chosen])
    moves = torch.cat([matrices.flatten(1), torch.stack(centres), spaces], 1).to(device)
    axis = torch.arange(side, dtype=torch.float32, device=device) - (side - 1) / 2
    points = torch.stack(torch.meshgrid(*[axis] * d, indexing="ij"), -1).flatten(0, -2)  # (P, d)
    reads = points @ moves[:, : d * d].unflatten(1, (d, d)).transpose(1, 2) + moves[:, None, d * d : d * d + d]
    scaled = ((2 * reads + 1) / moves[:, None, d * d + d :] - 1).flip(-1)  # as grid_sample counts, x first
    scaled = scaled.unflatten(1, (side,) * d)
    images, masks = [], []
    for places, (image, mask, _) in zip(scaled, chosen, strict=True):
        images.append(F.grid_sample(image[None], places[None], padding_mode="reflection", align_corners=False))
        truth = F.grid_sample(mask[None, None].float(), places[None], "nearest", "reflection", align_corners=False)
        masks.append(truth[:, 0])
    return torch.cat(images), torch.cat(masks).round().long()


def rotation(d: int, turns: bool, draw: torch.Generator) -> Tensor:
    """A uniformly drawn orthogonal matrix, or the identity."""
    if not turns:
        return torch.eye(d)
    q, r = torch.linalg.qr(torch.randn(d, d, generator=draw))
    return q * r.diagonal().sign()


def loss_of(logits: Tensor, masks: Tensor, classes: int) -> Tensor:
    """Cross-entropy plus one minus the Dice of all classes but the first, over the batch."""
    shares = logits.softmax(1)
    truth = F.one_hot(masks, classes).movedim(-1, 1).to(shares)
    axes = (0, *range(2, logits.ndim))
    soft = (2 * (shares * truth).sum(axes) + 1) / (shares.sum(axes) + truth.sum(axes) + 1)
    return F.cross_entropy(logits, masks) + 1 - soft[1:].mean()


@torch.no_grad()
def answer(network: nn.Module, images: Tensor) -> Tensor:
    """Logits of images of any size, continued by their edge to a multiple of the coarsest step."""
    network.eval()
    more = [-n % MULTIPLE for n in images.shape[2:]]
    around = [side for m in reversed(more) for side in (m // 2, m - m // 2)]
    with torch.autocast(images.device.type, torch.bfloat16, enabled=images.device.type == "cuda"):
        logits = network(F.pad(images, around, mode="replicate") if any(more) else images).float()
    for axis, (m, n) in enumerate(zip(more, images.shape[2:], strict=True), 2):
        logits = logits.narrow(axis, m // 2, n)
    return logits


@torch.no_grad()
def mean_dice(network: nn.Module, pairs: list[tuple[Tensor, Tensor]], classes: int) -> float:
    """Dice over all voxels of the images, mean of all classes but the first."""
    table = torch.zeros(classes, classes, dtype=torch.long)
    for image, mask in pairs:
        found = answer(network, image[None]).argmax(1)[0]
        table += torch.bincount((mask * classes + found).flatten(), minlength=classes**2).view(classes, classes).cpu()
    return float(dice(table)[1:].nanmean())


def final(network: nn.Module, pairs: list[tuple[Tensor, Tensor]], d: int, classes: int) -> dict[str, Any]:
    """Dice on whole images, and inside the disc in view: upright, turned, and how masks follow turns."""
    group = SO2() if d == 2 else SO3()
    angles = torch.tensor([[math.pi / 4], [math.pi / 12], [math.pi / 2]], dtype=torch.float64)
    elements = angles if d == 2 else repulsion(SO3(), 4).elements.double()[1:]
    totals: dict[str, Tensor] = {}
    for image, mask in pairs:
        tables = under_rotations(lambda x: answer(network, x), image[None], mask[None], group, elements, classes)
        for kind, found in tables.items():
            totals[kind] = totals.get(kind, 0) + torch.stack(found)
    out: dict[str, Any] = {"dice": round(mean_dice(network, pairs, classes), 4)}
    for kind, tables in totals.items():
        out[kind] = [round(float(dice(table)[1:].nanmean()), 4) for table in tables]
        out[f"{kind}_per_class"] = [[round(float(v), 4) for v in dice(table)] for table in tables]
    return out
