"""Where a face is drawn: a picture with a projection from face coordinates to its pixels."""

import numpy as np
from PIL import Image, ImageDraw

from .person import Colour, Points, rgb


class Canvas:
    """A picture under work with a projection from face coordinates to its pixels."""

    def __init__(self, image: Image.Image, turn: Points, centre: Points, unit: float) -> None:
        self.image, self.turn, self.centre, self.unit = image, turn, centre, unit
        self.pen = ImageDraw.Draw(image)

    def project(self, points: Points) -> Points:
        """(…, 3) face coordinates to (…, 2) pixels (x, y)."""
        return self.centre + self.unit * (points @ self.turn.T)[..., :2]

    def polygon(self, points: Points, colour: Points | Colour) -> None:
        self.pen.polygon([(x, y) for x, y in self.project(points)], fill=rgb(colour))

    def line(self, points: Points, colour: Points | Colour, width: float) -> None:
        thick = max(1, round(width * self.unit))
        self.pen.line([(x, y) for x, y in self.project(points)], fill=rgb(colour), width=thick, joint="curve")


def muted(rng: np.random.Generator, count: int = 1) -> Points:
    """Colours as rooms and streets have them: any brightness, seldom vivid. (count, 3)"""
    grey, vividness = rng.uniform(15, 240, (count, 1)), rng.beta(1.3, 3.5, (count, 1))
    return np.clip(grey + 110 * vividness * rng.uniform(-1, 1, (count, 3)), 0, 255)


def oval(x: float, y: float, z: float, a: float, b: float, count: int = 28, lid: float = 1.0) -> Points:
    """An ellipse in the face's frontal plane; `lid` < 1 flattens its upper half."""
    t = np.linspace(0, 2 * np.pi, count, endpoint=False)
    up = np.where(np.sin(t) < 0, lid, 1.0)
    return np.stack([x + a * np.cos(t), y + b * up * np.sin(t), np.full(count, z)], axis=-1)


def rotation(yaw: float, pitch: float, roll: float) -> Points:
    cy, sy, cp, sp, cr, sr = (
        np.cos(yaw),
        np.sin(yaw),
        np.cos(pitch),
        np.sin(pitch),
        np.cos(roll),
        np.sin(roll),
    )
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_x = np.array([[1, 0, 0], [0, cp, -sp], [0, sp, cp]])
    about_z = np.array([[cr, -sr, 0], [sr, cr, 0], [0, 0, 1]])
    turn: Points = about_z @ about_x @ about_y
    return turn
