"""A tiny official CelebA folder whose pictures show where their landmarks are."""

import csv
from pathlib import Path

import numpy as np
from PIL import Image

LIST, WHO = "list_landmarks_celeba.txt", "identity_CelebA.txt"
POINTS = ("lefteye", "righteye", "nose", "leftmouth", "rightmouth")
HEADER = " ".join(f"{point}_{axis}" for point in POINTS for axis in "xy")


class Official:
    """A tiny official folder in which every image shows red dots where the landmarks are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "img_celeba").mkdir(parents=True)
        self.rows: list[tuple[str, list[int], int, tuple[int, int]]] = []

    def add(self, name: str, eyes: int, identity: int, size: tuple[int, int] = (200, 300)) -> None:
        x, y = size[0] // 2, size[1] // 2
        left = x - eyes // 2
        points = [left, y, left + eyes, y, x, y + 20, x - 15, y + 40, x + 15, y + 40]
        pixels = np.zeros((size[1], size[0], 3), np.uint8)
        pixels[..., 2] = 80
        for px, py in np.reshape(points, (5, 2)):
            pixels[py - 4 : py + 5, px - 4 : px + 5] = (255, 0, 0)
        Image.fromarray(pixels).save(self.folder / "img_celeba" / name, quality=95)
        self.rows.append((name, points, identity, size))

    def write(self) -> Path:
        listing = "".join(f"{name} {' '.join(map(str, points))}\n" for name, points, _, _ in self.rows)
        (self.folder / "list_landmarks_celeba.txt").write_text(f"{len(self.rows)}\n{HEADER}\n{listing}")
        identities = "".join(f"{name} {identity}\n" for name, _, identity, _ in self.rows)
        (self.folder / "identity_CelebA.txt").write_text(identities)
        return self.folder


def official(folder: Path, people: int = 10) -> Path:
    """Each person has two small faces, one large one; person 1 has small ones only."""
    source = Official(folder)
    for person in range(1, people + 1):
        source.add(f"{person:03d}a.jpg", 30, person)
        source.add(f"{person:03d}b.jpg", 34, person, (300, 200))
        source.add(f"{person:03d}c.jpg", 20 if person == 1 else 90 + person, person, (151, 97 + person))
    return source.write()


def size_of(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


def table(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((out / "index.csv").read_text().splitlines()))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
