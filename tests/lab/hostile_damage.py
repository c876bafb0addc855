"""Ways to spoil a file: cut off, flipped, of another type, pointing elsewhere, carrying code."""

import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path, random.Random], None]


class Bomb:
    """What a pickle would run: make the file whose path it carries."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def marker(path: Path) -> Path:
    """The file that exists only when code out of a hostile file has been run."""
    return path.parent / "CODE-HAS-RUN"


def changed(change: Callable[[bytearray, random.Random], bytes | bytearray]) -> Damage:
    def damage(path: Path, draw: random.Random) -> None:
        path.write_bytes(change(bytearray(path.read_bytes()), draw))

    return damage


def flipped(raw: bytearray, draw: random.Random) -> bytearray:
    """Bits turned over, mostly near the ends, where headers and tables are."""
    for _ in range(draw.choice([1, 1, 2, 8])):
        near = draw.randrange(min(len(raw), 600))
        place = draw.choice([near, len(raw) - 1 - near, draw.randrange(len(raw))])
        raw[place] ^= 1 << draw.randrange(8)
    return raw


def elsewhere(path: Path, draw: random.Random) -> None:
    """A link to a file that is none of the reader's business."""
    secret = path.parent / "secret"
    secret.write_text("the password is swordfish\n" * 50)
    path.unlink()
    path.symlink_to(secret)


def replaced_by(make: Callable[[Path], None]) -> Damage:
    def damage(path: Path, draw: random.Random) -> None:
        path.unlink()
        make(path)

    return damage


DAMAGES: dict[str, Damage] = {
    "cut to 1 byte": changed(lambda raw, draw: raw[:1]),
    "cut at the front": changed(lambda raw, draw: raw[: min(len(raw) - 1, draw.randrange(2, 80))]),
    "cut in the middle": changed(lambda raw, draw: raw[: draw.randrange(len(raw) // 4, 3 * len(raw) // 4)]),
    "last byte gone": changed(lambda raw, draw: raw[:-1]),
    "flipped 1": changed(flipped),
    "flipped 2": changed(flipped),
    "flipped 3": changed(flipped),
    "random bytes": changed(lambda raw, draw: draw.randbytes(len(raw))),
    "empty": replaced_by(Path.touch),
    "pickle": replaced_by(lambda path: path.write_bytes(pickle.dumps(Bomb(marker(path))))),
    "folder": replaced_by(Path.mkdir),
    "pipe": replaced_by(os.mkfifo),
    "link elsewhere": elsewhere,
}
# After these nothing honest is left: a reader that takes the file is wrong.
NEVER_SOUND = frozenset({"cut to 1 byte", "empty", "random bytes", "pickle", "folder", "pipe", "link elsewhere"})
