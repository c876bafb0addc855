"""What `liespline demo` can show: the networks of an act, the digits that they are tested on, and the words around."""

from __future__ import annotations

from dataclasses import dataclass

from .data import Split, digits
from .evaluation.evaluate import weights_in
from .networks import build
from .settings import Config, one_of
from .tasks import find_task
from .tasks.networks import Signature


@dataclass(frozen=True)
class Act:
    """One demonstration: three networks of equal size, the last one of the group that the digits are moved by."""

    group: str
    title: str
    lead: str
    moved: str
    """How the test digits lie."""
    names: tuple[str, str, str]

    @property
    def columns(self) -> tuple[str, ...]:
        """The head of the table."""
        return ("network", "upright", self.moved, "relative output change", "parameters", "seconds")

    def test_digits(self) -> Split:
        """The digits that the networks are tested on, each moved by its own element."""
        return digits.load("test", True, mirrored=self.group == "o2", shrunk=self.group == "sim2")

    def configurations(self, seed: int) -> dict[str, Config]:
        """The networks: equal in size; only the augmented one of the first act learns from moved digits."""
        # Networks so small, and steps so few, need no dropout; in one cycle the plain one learns all poses in time.
        usual = find_task("digits").defaults.updated(accelerator="cpu", seed=seed, dropout=0.0, schedule="one-cycle")
        group = usual.updated(widths=(4, 6, 12, 16), epochs=20)
        if self.group != "so2":  # larger groups cost more: thin layers and few epochs keep it short
            size = (8, 2) if self.group == "sim2" else 16
            group = usual.updated(group=self.group, elements=size, kernel="local", widths=(4, 6, 8, 12), epochs=6)
        weights = weights_in(build(group, Signature.of(digits.load("valid"))))
        plain = group.updated(group="none", elements=1, kernel="dense", parameters=weights)
        second = plain.updated(augment="rotate")
        if self.group != "so2":
            second = group.updated(group="so2", elements=8, parameters=weights)
        return dict(zip(self.names, (plain, second, group), strict=True))


ACTS = {
    act.group: act
    for act in (
        Act(
            "so2",
            "Upright in training, rotated in test",
            "Three networks of equal size learn 1,078 real handwritten digits. The test digits are turned by any "
            "angle. The plain network fails on them; shown rotated digits in training, it has to learn each pose; "
            "the SE(2) network saw upright digits only and carries what it learned over to every angle by "
            "construction.",
            "rotated",
            ("2-D", "2-D, rotated training", "SE(2)"),
        ),
        Act(
            "o2",
            "Upright in training, turned and mirrored in test",
            "Three networks of equal size learn 1,078 real handwritten digits as they are written. The test digits are "
            "turned by any angle, and all of them are mirrored. The plain network fails on them; the SE(2) network "
            "knows turns but not mirrors; the E(2) network carries what it learned over to every mirror image as well.",
            "mirrored",
            ("2-D", "SE(2)", "E(2)"),
        ),
        Act(
            "sim2",
            "Upright in training, turned and shrunk in test",
            "Three networks of equal size learn 1,078 real handwritten digits of one size. The test digits are turned "
            "by any angle and shrunk to between 100 and 60 percent. The plain network fails on them; the SE(2) network "
            "knows turns but not sizes; the SIM(2) network carries what it learned over to both.",
            "turned and shrunk",
            ("2-D", "SE(2)", "SIM(2)"),
        ),
    )
}


def act_of(group: str) -> Act:
    """The act of a group."""
    return ACTS[one_of("group", group, ACTS)]
