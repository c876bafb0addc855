"""A small network that is trained to say by which transformation an image was transformed."""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .transformations import Transformations

STEPS = 400
BATCH = {2: 64, 3: 32}
RATE = 3e-3
_AT_ONCE = 256
_LAYERS = {
    2: (nn.Conv2d, nn.BatchNorm2d, nn.AdaptiveAvgPool2d),
    3: (nn.Conv3d, nn.BatchNorm3d, nn.AdaptiveAvgPool3d),
}


def pose_network(channels: int, dimensions: int, classes: int) -> nn.Sequential:
    """Three convolutions of stride 2, the means over 3 × 3 (× 3) parts of the image, and a linear layer."""
    conv, norm, pool = _LAYERS[dimensions]
    widths, layers = (channels, 16, 32, 32), list[nn.Module]()
    for i, (inputs, outputs) in enumerate(pairwise(widths)):
        size = 5 if dimensions == 2 and i == 0 else 3
        layers += [conv(inputs, outputs, size, stride=2, padding=size // 2, bias=False), norm(outputs), nn.ReLU()]
    return nn.Sequential(
        *layers, pool(3), nn.Flatten(), nn.Dropout(0.3), nn.Linear(widths[-1] * 3**dimensions, classes)
    )


def trained(images: Tensor, transformations: Transformations, seed: int) -> nn.Module:
    """The network after STEPS steps on images (N, C, *space) that are transformed anew each time they are seen."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = pose_network(images.shape[1], transformations.dimensions, len(transformations))
        optimiser = torch.optim.AdamW(net.parameters(), RATE, weight_decay=1e-2)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=STEPS)
        for _ in range(STEPS):
            batch = images[torch.randint(len(images), (BATCH[transformations.dimensions],))]
            which = torch.randint(len(transformations), (len(batch),))
            loss = F.cross_entropy(net(transformations.apply(batch, which)), which)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return net.eval()


@torch.no_grad()
def log_probabilities(net: nn.Module, images: Tensor, transformations: Transformations) -> Tensor:
    """What the network says of each image under each transformation: (N, transformations, classes)."""
    found = []
    for batch in images.split(max(1, _AT_ONCE // len(transformations))):
        which = torch.arange(len(transformations)).repeat(len(batch))
        repeated = batch.repeat_interleave(len(transformations), 0)
        found.append(net(transformations.apply(repeated, which)).log_softmax(1).unflatten(0, (len(batch), -1)))
    return torch.cat(found).double()
