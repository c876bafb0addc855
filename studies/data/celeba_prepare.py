"""From the official CelebA files to the paper's 128×128 set: `python -m studies.data.celeba_prepare SRC OUT`.

One resumable pass (section 4).
While it works, `OUT/.work` holds two journals: the size of each image, then each chosen picture. The result
is written whole at the end, `prepared.json` last: without it the folder is not a data set.
"""

import csv
import hashlib
import io
import json
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from PIL import Image

from liespline.lab.data.arrays import Array
from liespline.lab.data.files import DataError, lock, write_text
from liespline.lab.data.pictures import picture, strict_pillow

from ..command import Target, console, progress_bar, run
from .celeba_source import IDENTITY_FILE, LANDMARKS, LANDMARKS_FILE, Source, listed_and_present, read_source
from .journal import Progress, journal
from .npy import write_npy

SIDE = 128
FORMAT = 1
MARKER, INDEX, PICTURES, DROPPED, WORK = "prepared.json", "index.csv", "images.npy", "dropped.csv", ".work"
COLUMNS = (
    *("file", "identity", "split", "size", "eye_distance"),
    *(f"{name.replace(' ', '_')}_{axis}" for name in LANDMARKS for axis in ("row", "column")),
)
_SHARES = (0.8, 0.1)  # train, valid; the rest is test. The released scripts train on 80 %, so do we.
_SIZE = np.dtype([("width", "<i4"), ("height", "<i4")])
_PICTURE = np.dtype([("source", "<i4"), ("checksum", "<u4"), ("image", "u1", (SIDE, SIDE, 3))])
_BLOCK = 256


def prepare(src: Path, out: Path, seed: int = 0, progress: Progress | None = None) -> dict[str, Any]:
    """Write the paper's set to `out` and return its summary: counts, mean eye distance, what was left out.

    Every usable image is scaled to a longest side of 128 and zero-padded; eye distances below their mean make
    small faces, the others large ones; each identity that has both gives one image of each, chosen by `seed`;
    identities are split 80/10/10. Same input and seed, same files, whether killed and resumed or not.
    `progress(what, done, total)` is called now and then.
    """
    src, out = Path(src), Path(out)
    source = read_source(src)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{out}: cannot be made ({error.strerror}); choose a folder you can write to") from error
    with lock(out / ".lock", wait=False), strict_pillow():
        fingerprint = _fingerprint(src, seed)
        if (out / MARKER).exists():
            summary = _finished(out, fingerprint)
            shutil.rmtree(out / WORK, ignore_errors=True)  # left by a kill behind the last step
            return summary
        work = _work_folder(out, fingerprint)
        progress = progress or (lambda what, done, total: None)
        present, unlisted = listed_and_present(source)
        drops = dict.fromkeys(unlisted, "no landmarks")

        def size_of(row: int) -> Array:
            return _size(source, row, present)

        sizes = journal(work / "sizes", _SIZE, len(source.names), size_of, progress)
        usable, eyes = _usable(source, sizes, present, drops)
        mean = float(eyes[usable].mean()) if usable.any() else 0.0
        small = eyes < mean
        candidates = _candidates(source, usable, small, seed)

        def picture_of(choice: int) -> Array:
            return _picture(source, candidates[choice][1])

        records = journal(work / "pictures", _PICTURE, len(candidates), picture_of, progress)
        summary = _write(out, source, sizes, eyes, small, candidates, records, drops, seed)
        summary |= {
            "mean_eye_distance": mean,
            "fingerprint": fingerprint,
            "synthetic": (src / "SYNTHETIC.txt").exists(),
        }
        write_text(out / MARKER, json.dumps(summary, indent=2) + "\n")
        shutil.rmtree(work)
    return summary


def _fingerprint(src: Path, seed: int) -> str:
    digest = hashlib.sha256(f"{FORMAT} {seed}".encode())
    for name in (LANDMARKS_FILE, IDENTITY_FILE):
        digest.update((src / name).read_bytes())
    return digest.hexdigest()


def _finished(out: Path, fingerprint: str) -> dict[str, Any]:
    try:
        summary: dict[str, Any] = dict(json.loads((out / MARKER).read_text()))
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{out / MARKER}: is no summary of a prepared set ({error}); choose an empty folder") from error
    if summary.get("fingerprint") != fingerprint:
        raise DataError(f"{out}: holds a set prepared from other files or another seed; choose an empty folder")
    return summary


def _work_folder(out: Path, fingerprint: str) -> Path:
    work = out / WORK
    work.mkdir(exist_ok=True)
    plan = work / "fingerprint"
    if plan.exists() and plan.read_text() != fingerprint:
        raise DataError(f"{work}: belongs to a preparation from other files or another seed; remove it to start anew")
    write_text(plan, fingerprint)
    return work


def _size(source: Source, row: int, present: set[str]) -> NDArray[Any]:
    if source.names[row] not in present:
        return np.array((0, 0), _SIZE)
    try:
        with picture(source.image(row)) as image:
            return np.array(image.size, _SIZE)
    except DataError:
        return np.array((0, 0), _SIZE)


def _usable(source: Source, sizes: Array, present: set[str], drops: dict[str, str]) -> tuple[Array, Array]:
    """Which images can be used, and all eye distances in pixels of 128×128; the others go to `drops`."""
    extent = np.stack([sizes["width"], sizes["height"]], axis=-1).astype(np.int64)  # (N, 2) as (x, y)
    readable = extent.min(-1) > 0
    inside = ((source.landmarks >= 0) & (source.landmarks < extent[:, None])).all((1, 2))
    for row in np.flatnonzero(~(readable & inside)):
        name = source.names[row]
        why = "landmark outside the image" if readable[row] else "unreadable image"
        drops[name] = why if name in present else "no image file"
    gap = source.landmarks[:, 0] - source.landmarks[:, 1]
    return readable & inside, np.hypot(*gap.T) * SIDE / np.maximum(extent.max(-1), 1)


def _candidates(source: Source, usable: Array, small: Array, seed: int) -> list[tuple[int, list[int]]]:
    """(identity, images to try in this order): small faces, then large ones, of identities that have both."""
    classes: dict[int, tuple[list[int], list[int]]] = {}
    for row in np.flatnonzero(usable):
        classes.setdefault(int(source.identities[row]), ([], []))[0 if small[row] else 1].append(int(row))
    out = []
    for identity in sorted(classes):
        if all(classes[identity]):
            for rows in classes[identity]:
                out.append((identity, sorted(rows, key=lambda row: _draw(seed, source.names[row]))))
    return out


def _draw(seed: int, what: str) -> bytes:
    """A random key that depends on the seed and on the thing itself alone, not on the order of things."""
    return hashlib.sha256(f"{seed} {what}".encode()).digest()


def _geometry(width: int, height: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Scaled size and left/top padding, both as (x, y)."""
    scaled = tuple(max(1, round(side * SIDE / max(width, height))) for side in (width, height))
    return (scaled[0], scaled[1]), ((SIDE - scaled[0]) // 2, (SIDE - scaled[1]) // 2)


def _picture(source: Source, rows: list[int]) -> NDArray[Any]:
    """The first of the images that can be read, scaled and padded; source −1 when none can."""
    for row in rows:
        try:
            with picture(source.image(row)) as stored:
                image = stored.convert("RGB")
        except DataError:
            continue
        size, pad = _geometry(*image.size)
        canvas = Image.new("RGB", (SIDE, SIDE))
        canvas.paste(image.resize(size, Image.Resampling.BICUBIC), pad)
        pixels = np.asarray(canvas)
        return np.array((row, zlib.crc32(pixels.tobytes()), pixels), _PICTURE)
    empty = np.zeros((SIDE, SIDE, 3), np.uint8)
    return np.array((-1, zlib.crc32(empty.tobytes()), empty), _PICTURE)


def _write(
    out: Path,
    source: Source,
    sizes: Array,
    eyes: Array,
    small: Array,
    candidates: list[tuple[int, list[int]]],
    records: Array,
    drops: dict[str, str],
    seed: int,
) -> dict[str, Any]:
    chosen = records["source"]
    for (_, rows), taken in zip(candidates, chosen, strict=True):
        unread = rows if taken < 0 else rows[: rows.index(taken)]
        drops |= {source.names[row]: "unreadable image" for row in unread}
    pairs = np.flatnonzero((chosen.reshape(-1, 2) >= 0).all(-1))  # identities with a small and a large face
    split_of = _split_identities([candidates[2 * pair][0] for pair in pairs], seed)
    kept = np.stack([2 * pairs, 2 * pairs + 1], axis=-1).reshape(-1)

    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(COLUMNS)
    for choice in kept:
        row, identity = int(chosen[choice]), candidates[choice][0]
        width, height = int(sizes["width"][row]), int(sizes["height"][row])
        scaled, pad = (np.array(pair) for pair in _geometry(width, height))
        # Pixel centres are whole numbers, so pixel i covers [i − ½, i + ½].
        points = (source.landmarks[row] + 0.5) * scaled / (width, height) - 0.5 + pad
        size = "small" if small[row] else "large"
        numbers = [f"{value:.4f}" for value in (eyes[row], *points[:, ::-1].reshape(-1))]
        writer.writerow([source.names[row], identity, split_of[identity], size, *numbers])
    write_text(out / INDEX, table.getvalue())

    lines = "".join(f"{name},{why}\n" for name, why in sorted(drops.items()))
    write_text(out / DROPPED, "file,why\n" + lines)

    def blocks() -> Iterator[Array]:
        for start in range(0, len(kept), _BLOCK):
            yield records["image"][kept[start : start + _BLOCK]]

    write_npy(out / PICTURES, (len(kept), SIDE, SIDE, 3), np.dtype(np.uint8), blocks())
    reasons = sorted(set(drops.values()))
    return {
        "format": FORMAT,
        "seed": seed,
        "listed": len(source.names),
        "images": len(kept),
        "identities": len(pairs),
        "dropped": {why: sum(w == why for w in drops.values()) for why in reasons},
    }


def _split_identities(identities: list[int], seed: int) -> dict[int, str]:
    if len(identities) < 3:
        raise DataError(
            f"{len(identities)} identities have both a small and a large face; at least 3 are needed to split"
        )
    shuffled = sorted(identities, key=lambda identity: _draw(seed, f"identity {identity}"))
    train, valid = (max(1, round(share * len(shuffled))) for share in _SHARES)
    train = min(train, len(shuffled) - valid - 1)
    names = ["train"] * train + ["valid"] * valid + ["test"] * (len(shuffled) - train - valid)
    return dict(zip(shuffled, names, strict=True))


def main(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="Folder with the official files.", show_default=False)],
    out: Target,
    seed: Annotated[int, typer.Option(help="Seed of the choice of images.")] = 0,
) -> None:
    """Turn the official CelebA files into the paper's 128×128 set; if killed, it continues where it was."""
    with progress_bar() as report:
        summary = prepare(source, out, seed, report)
    console.print_json(data=summary)


if __name__ == "__main__":
    run(main)
