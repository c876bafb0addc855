"""Rotated digits"""

# %% A network is trained on upright digits only and tested on digits rotated by any angle. An ordinary network fails;
# for one that is equivariant to rotations, accuracy transfers to rotated inputs. The digits ship with scikit-learn.

import torch
from torch import nn

from liespline import SO2, models, uniform
from liespline.lab.data import as_float, digits

torch.manual_seed(0)


def images(split, rotated):
    data = digits.load(split, rotated=rotated)
    pixels, labels = data.__getitems__(range(len(data)))
    return as_float(pixels), labels  # (B, 1, 24, 24) in [0, 1], (B,)


x, y = images("train", rotated=False)
print(x.shape, y.shape)

# %% `uniform(SO2(), 8)` is the grid of eight orientations in which kernels are sampled; local kernels relate each
# orientation to its neighbours. The ordinary network is the same function with a grid of one, and with its widths
# scaled so that both have about the same parameter count.

turning = models.classifier(1, 10, uniform(SO2(), 8), kernel="local", n_k=3, parameters=20_000)
count = sum(p.numel() for p in turning.parameters())
plain = models.classifier(1, 10, uniform(SO2(), 1), parameters=count)

# %% Both are trained as any `nn.Module` is, briefly, so that the page runs in seconds.

STEPS = 100


def train(net):
    optimiser = torch.optim.AdamW(net.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.02, total_steps=STEPS)
    for _ in range(STEPS):
        rows = torch.randint(len(x), (32,))
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return net.eval()


# %% Accuracy on upright and on rotated test digits:


@torch.no_grad()
def accuracy(net, rotated):
    images_, labels = images("test", rotated)
    return float((net(images_).argmax(-1) == labels).double().mean())


for name, net in (("2-D", train(plain)), ("SE(2)", train(turning))):
    print(f"{name}: upright {accuracy(net, False):.0%}, rotated {accuracy(net, True):.0%}")

# %% Whatever the parameters are, a quarter turn of the image changes nothing:

rotated = torch.rot90(x[:8], 1, (-2, -1))
with torch.no_grad():
    assert torch.allclose(turning(rotated), turning(x[:8]), atol=1e-4)
