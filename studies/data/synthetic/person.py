"""The people of the synthetic faces: what stays the same over one identity's pictures.

Face coordinates: the eyes lie one unit apart, x to the right, y down, z towards the viewer, origin between
the eyes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
Colour = tuple[int, int, int]

_SKIN = np.array([(255, 222, 196), (241, 194, 160), (224, 172, 125), (198, 134, 92), (141, 90, 60), (92, 58, 40)])
_HAIR = np.array(
    [
        (28, 22, 20),
        (62, 42, 30),
        (112, 74, 44),
        (176, 136, 84),
        (226, 196, 140),
        (128, 46, 26),
        (170, 168, 166),
    ]
)
_IRIS = np.array([(70, 44, 28), (96, 70, 40), (74, 110, 140), (86, 116, 80), (60, 60, 64)])


@dataclass(frozen=True)
class Person:
    """What stays the same over one identity's pictures."""

    skin: Points
    hair: Points
    iris: Colour
    jaw: float  # half-width of the head
    length: float  # half-height of the head
    eye: float  # half-width of an eye
    nose: float  # y of the nose tip
    mouth: float  # y of the mouth
    mouth_width: float
    brow: float
    long_hair: bool
    bald: bool
    beard: bool
    glasses: bool

    @staticmethod
    def draw(rng: np.random.Generator) -> "Person":
        tone, next_tone = rng.integers(len(_SKIN)), rng.integers(len(_SKIN))
        blend = rng.uniform(0, 0.3)
        return Person(
            skin=(1 - blend) * _SKIN[tone] + blend * _SKIN[next_tone],
            hair=_HAIR[rng.integers(len(_HAIR))] * rng.uniform(0.8, 1.1),
            iris=rgb(_IRIS[rng.integers(len(_IRIS))]),
            jaw=rng.uniform(0.98, 1.2),
            length=rng.uniform(1.35, 1.6),
            eye=rng.uniform(0.17, 0.23),
            nose=rng.uniform(0.55, 0.7),
            mouth=rng.uniform(0.98, 1.12),
            mouth_width=rng.uniform(0.33, 0.45),
            brow=rng.uniform(0.04, 0.09),
            long_hair=bool(rng.random() < 0.45),
            bald=bool(rng.random() < 0.1),
            beard=bool(rng.random() < 0.2),
            glasses=bool(rng.random() < 0.2),
        )


def rgb(colour: Points | Colour) -> Colour:
    """A colour as Pillow wants it."""
    red, green, blue = np.clip(np.asarray(colour), 0, 255).astype(int).tolist()
    return red, green, blue


def landmarks_of(person: Person) -> Points:
    """The five landmarks in face coordinates, image-left first: (5, 3)."""
    mouth = person.mouth_width
    return np.array(
        [
            (-0.5, 0.0, 0.0),
            (0.5, 0.0, 0.0),
            (0.0, person.nose, 0.42),
            (-mouth, person.mouth, 0.02),
            (mouth, person.mouth, 0.02),
        ]
    )
