"""Ways to spoil a file: cut off, flipped, of another type, pointing elsewhere, carrying code."""

import os
import pickle
import random
import zlib
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


def blotted(raw: bytearray, draw: random.Random) -> bytearray:
    """A stretch of one byte, as a bad block on a disk leaves."""
    start = draw.randrange(max(1, len(raw) - 16))
    length = draw.choice([16, 512])
    raw[start : start + length] = bytes([draw.choice([0, 255])]) * len(raw[start : start + length])
    return raw


def repeated(raw: bytearray, draw: random.Random) -> bytearray:
    start = draw.randrange(len(raw))
    return raw[:start] + raw[start : start + 64] * 2 + raw[start:]


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


PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x04\x00\x00\x00\x04\x08\x00\x00\x00\x00"
DAMAGES: dict[str, Damage] = {
    "cut to 1 byte": changed(lambda raw, draw: raw[:1]),
    "cut at the front": changed(lambda raw, draw: raw[: min(len(raw) - 1, draw.randrange(2, 80))]),
    "cut in the middle": changed(lambda raw, draw: raw[: draw.randrange(len(raw) // 4, 3 * len(raw) // 4)]),
    "last byte gone": changed(lambda raw, draw: raw[:-1]),
    "first byte gone": changed(lambda raw, draw: raw[1:]),
    "flipped 1": changed(flipped),
    "flipped 2": changed(flipped),
    "flipped 3": changed(flipped),
    "flipped 4": changed(flipped),
    "blotted 1": changed(blotted),
    "blotted 2": changed(blotted),
    "repeated": changed(repeated),
    "empty": replaced_by(Path.touch),
    "random bytes": changed(lambda raw, draw: draw.randbytes(len(raw))),
    "zeros": changed(lambda raw, draw: bytes(len(raw))),
    "text": replaced_by(lambda path: path.write_text("no such thing\n" * 20)),
    "picture": replaced_by(lambda path: path.write_bytes(PNG + zlib.compress(bytes(20)))),
    "pickle": replaced_by(lambda path: path.write_bytes(pickle.dumps(Bomb(marker(path))))),
    "folder": replaced_by(Path.mkdir),
    "pipe": replaced_by(os.mkfifo),
    "endless device": replaced_by(lambda path: path.symlink_to("/dev/zero")),
    "link to nothing": replaced_by(lambda path: path.symlink_to("../../nowhere")),
    "link elsewhere": elsewhere,
}
# After these nothing honest is left: a reader that takes the file is wrong.
NEVER_SOUND = frozenset(
    {"cut to 1 byte", "empty", "random bytes", "zeros", "text", "pickle", "folder", "pipe", "endless device",
     "link to nothing", "link elsewhere"}
)  # fmt: skip
