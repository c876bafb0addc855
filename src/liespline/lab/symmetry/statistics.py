"""How surely a pose network tells transformed images from those as they are."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from scipy.stats import binomtest
from scipy.stats import t as student
from torch import Tensor

LEVEL = 0.05


class Share(NamedTuple):
    """A share with its interval of 95 %."""

    value: float
    low: float
    high: float

    @property
    def words(self) -> str:
        return f"{100 * self.value:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"


class Element(NamedTuple):
    """A transformation: how often it is told from none (half is chance), and how likely so often by chance."""

    name: str
    told: Share
    p: float
    """Adjusted for how many transformations were asked for (Holm 1979)."""

    @property
    def seen(self) -> bool:
        """Whether the data show it."""
        return self.p < LEVEL


def share(of_images: Tensor) -> Share:
    """The mean of shares (N,), one per image, with Wilson's interval for as many trials as the images are worth.

    p(1 − p)/n is the variance of their mean: n is N where an image's trials all end alike, and more where they do not.
    """
    count, p = len(of_images), float(of_images.mean())
    variance = float(of_images.var()) / count if count > 1 else 0.0
    n = p * (1 - p) / variance if variance > 0 else count
    # Student's quantile where the variance is estimated, from few images perhaps; else the normal one.
    z = float(student.ppf(0.975, count - 1 if variance > 0 else math.inf))
    middle, half = p + z**2 / (2 * n), z * math.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2)
    return Share(p, max(0.0, (middle - half) / (1 + z**2 / n)), min(1.0, (middle + half) / (1 + z**2 / n)))


def pose_found(log_p: Tensor) -> Share:
    """How often the right one of K transformations has the highest probability (N, K, K).

    Where the data have all K symmetries this is 1/K, whatever the network: each image is seen in all its poses.
    """
    right = log_p.argmax(2) == log_p.new_tensor(range(log_p.shape[1]))
    return share(right.double().mean(1))


def elements(log_p: Tensor, names: Sequence[str]) -> list[Element]:
    """Each transformation but the identity: is h·x told from x?

    The network says "h" where p(h) > p(e). If x and h·x have one distribution, it says so of both equally often, and
    of the images where it says different things of x and h·x half are right (McNemar's test). Comparing p(h) of x with
    p(h) of h·x would not do: which of two images is the other one rotated by 90° can be seen in any data.
    """
    found = []
    for number in range(1, log_p.shape[1]):
        says = (log_p[..., number] - log_p[..., 0]).sign()
        told = (2 + says[:, number] - says[:, 0]) / 4  # 1 where it is right of both, 0 where it is wrong of both
        better, worse = int((told > 0.5).sum()), int((told < 0.5).sum())
        p = float(binomtest(better, better + worse, alternative="greater").pvalue) if better + worse else 1.0
        found.append((names[number], share(told), p))
    adjusted = holm([p for *_, p in found])
    return [Element(name, told, p) for (name, told, _), p in zip(found, adjusted, strict=True)]


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted so that the chance of any false one among them is that of one alone (Holm 1979)."""
    adjusted, running = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = running
    return adjusted
