"""Synthetic faces written as CelebA's official in-the-wild files."""

import io
from functools import partial
from pathlib import Path

import numpy as np

from liespline.lab.data.files import lock, write_text

from ..celeba_source import IDENTITY_FILE, IMAGES, LANDMARKS_FILE
from ..journal import Progress
from .face import draw_face
from .person import Person
from .work import draw_all, synthetic_folder

_POINTS = ("lefteye", "righteye", "nose", "leftmouth", "rightmouth")
_HEADER = " ".join(f"{point}_{axis}" for point in _POINTS for axis in "xy")


def synthesize(
    out: Path,
    identities: int = 1000,
    pictures: int = 4,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
) -> None:
    """Draw `pictures` of each of `identities` people in the official layout; same seed, same files.

    What is finished is left alone; folders with other files are refused.
    """
    if identities < 1 or pictures < 1:
        raise ValueError(f"{identities} identities with {pictures} pictures each: both must be at least 1")
    out = Path(out)
    text = f"Synthetic faces: {identities} identities × {pictures} pictures, seed {seed}."
    synthetic_folder(out, text, (LANDMARKS_FILE, IDENTITY_FILE, IMAGES))
    with lock(out / ".lock", wait=False):
        if (out / LANDMARKS_FILE).exists():  # written last
            return
        (out / IMAGES).mkdir(exist_ok=True)
        people = []
        lines = []
        items = list(np.ndindex(identities, pictures))
        drawing = draw_all(partial(_picture, out / IMAGES, pictures, seed), items, jobs, progress, "faces")
        for (identity, _), (name, points) in zip(items, drawing, strict=True):
            people.append(f"{name} {identity + 1}\n")
            lines.append(f"{name} {' '.join(map(str, points))}\n")
        write_text(out / IDENTITY_FILE, "".join(people))
        write_text(out / LANDMARKS_FILE, f"{len(items)}\n{_HEADER}\n" + "".join(lines))


def _picture(folder: Path, pictures: int, seed: int, item: tuple[int, int]) -> tuple[str, list[int]]:
    identity, number = item
    person = Person.draw(np.random.default_rng([seed, 0, identity]))
    image, points = draw_face(person, np.random.default_rng([seed, 1, identity, number]))
    name = f"{identity * pictures + number + 1:06d}.jpg"
    # Through memory: Pillow does not notice when a full disk takes only half of a file.
    encoded = io.BytesIO()
    image.save(encoded, "JPEG", quality=90)
    (folder / name).write_bytes(encoded.getvalue())
    return name, np.clip(np.rint(points), 0, np.array(image.size) - 1).astype(int).reshape(-1).tolist()
