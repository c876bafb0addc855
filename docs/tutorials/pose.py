"""Vectors: which way it points"""

# %% Classes do not change when the image is rotated. Directions do: they rotate with it. `Project("vector", H)` reads a
# vector off the orientations of a feature map, v = Σ_h w(h) F(h) h·e₀, which rotates with the input whatever the
# parameters are. Here a network predicts where comets fly to. It is trained on comets that fly about downwards, and
# tested on all directions.

import math

import torch
from torch import nn

from liespline import SO2, GConv, Lift, Project, Trivial, uniform
from liespline.nn import Downsample, NormReLU

torch.manual_seed(0)


def comets(angles, size=25):
    """Images of comets and their directions: angle 0 flies along axis 0, down the image."""
    axis = torch.arange(size) - (size - 1) / 2
    points = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1)  # (size, size, 2)
    direction = torch.stack((angles.cos(), angles.sin()), -1)  # (B, 2)
    middle = 2 * torch.rand(len(angles), 2) - 1
    image = 0
    for place, width in ((3.0, 1.8), (0.0, 1.3), (-3.0, 0.9)):  # a head, and a tail that gets thinner
        centre = (middle + place * direction).view(-1, 1, 1, 2)
        image = image + (-(points - centre).square().sum(-1) / (2 * width**2)).exp()
    return image.unsqueeze(1), direction


images, directions = comets(torch.tensor([0.0, math.pi / 2]))
print(images.shape, directions)

# %% The network ends with one field, read as a vector at every position, and the mean over positions. The ordinary one
# has a grid of a single element: its last layer gives two numbers, and nothing relates them to other directions than
# those of training.


def network(grid, widths):
    turning = len(grid) > 1
    last = 1 if turning else 2
    return nn.Sequential(
        Lift(1, widths[0], 7, grid, padding=3),
        NormReLU(widths[0]),
        Downsample(2),
        GConv(widths[0], widths[1], 5, grid, padding=2),
        NormReLU(widths[1]),
        GConv(widths[1], last, 5, grid, padding=2),
        Project("vector" if turning else "mean", grid),
        nn.Flatten(1, 2) if turning else nn.Identity(),  # (B, 1, 2, height, width) to (B, 2, height, width)
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


nets = {"2-D": network(uniform(Trivial(2), 1), (16, 24)), "SE(2)": network(uniform(SO2(), 8), (6, 8))}
for name, net in nets.items():
    print(name, sum(p.numel() for p in net.parameters()), "parameters")

# %% Training shows directions within 30° of downwards only.

STEPS = 120


def train(net):
    optimiser = torch.optim.AdamW(net.parameters(), lr=0.01)
    for _ in range(STEPS):
        x, y = comets((2 * torch.rand(16) - 1) * math.pi / 6)
        loss = (net(x) - y).square().sum(-1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return net.eval()


# %% The mean angle between what is found and what is true, within that range and all around:


@torch.no_grad()
def error(net, most):
    x, y = comets((2 * torch.rand(200) - 1) * most)
    cosine = nn.functional.cosine_similarity(net(x), y)
    return math.degrees(cosine.clamp(-1, 1).acos().mean())


for name, net in nets.items():
    train(net)
    print(f"{name}: {error(net, math.pi / 6):.0f}° as in training, {error(net, math.pi):.0f}° all around")

# %% A quarter turn of the image turns the vector exactly: axis 0 goes to axis 1, and axis 1 to minus axis 0.

x, _ = comets(torch.rand(4))
with torch.no_grad():
    v, rotated = nets["SE(2)"](x), nets["SE(2)"](torch.rot90(x, 1, (-2, -1)))
assert torch.allclose(rotated, torch.stack((-v[:, 1], v[:, 0]), -1), atol=1e-4)

# %% The same head at every position gives a flow: leave out the mean over positions, or put it behind
# `models.unet(…, features=True)`. In three dimensions, with `SO3()`, vectors have three components.
