"""Ways in which files are spoilt, and what readers make of them: cut off, bits flipped, of another type, pickled."""

import pickle
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from liespline.lab.data import DataError
from liespline.lab.settings import ConfigError

from .kinds_of_files import KINDS

Damage = Callable[[bytes, random.Random], bytes]


class Bomb:
    """What a pickle would run: make a file in the working folder."""

    def __reduce__(self):
        return (Path.touch, (Path("CODE-HAS-RUN"),))


def flipped(raw: bytes, draw: random.Random) -> bytes:
    """Some bits turned over, mostly near the ends, where headers and tables are."""
    out = bytearray(raw)
    for _ in range(draw.choice([1, 1, 2, 8])):
        near = draw.randrange(min(len(out), 600))
        out[draw.choice([near, len(out) - 1 - near, draw.randrange(len(out))])] ^= 1 << draw.randrange(8)
    return bytes(out)


DAMAGES: dict[str, Damage] = {
    "empty": lambda raw, draw: b"",
    "cut at the front": lambda raw, draw: raw[: min(len(raw) - 1, draw.randrange(1, 80))],
    "cut in the middle": lambda raw, draw: raw[: draw.randrange(len(raw) // 4, 3 * len(raw) // 4)],
    "last byte gone": lambda raw, draw: raw[:-1],
    "flipped": flipped,
    "flipped again": flipped,
    "another type": lambda raw, draw: draw.randbytes(len(raw)),
    "pickle": lambda raw, draw: pickle.dumps(Bomb()),
}
# After these nothing honest is left.
NEVER_SOUND = {"empty", "another type", "pickle"}


def judge(kind: str, how: str, honest: Path, folder: Path, seed: int) -> tuple[str, str]:
    """(refused | sound | WRONG, what was said) of a copy of an honest folder, whose file of this kind is damaged."""
    shutil.copytree(honest, folder)
    file = folder / KINDS[kind].file
    file.write_bytes(DAMAGES[how](file.read_bytes(), random.Random(f"{seed} {kind} {how}")))
    try:
        said = repr(KINDS[kind].read(folder))
    except (DataError, ConfigError) as error:
        named = any(part in str(error) for part in (file.name, str(folder), "task '"))
        return ("refused" if named else "WRONG"), str(error)
    except Exception as error:
        return "WRONG", f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(folder)
    sound = how not in NEVER_SOUND and said == repr(KINDS[kind].read(honest))
    return ("sound" if sound else "WRONG"), f"read as {said[:200]}"
