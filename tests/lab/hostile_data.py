"""Data made by hand to hurt: sizes that are declared and not there, code, paths that lead outside, bombs."""

import gzip
import io
import pickle
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
from PIL import Image

from .hostile_crafted import GIGA, Crafted, raw, text, zipped
from .hostile_damage import Bomb
from .hostile_files import idx


def npy(shape: str, descr: str = "|u1", body: bytes = bytes(64)) -> bytes:
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body


def hdf5(fill: Callable[[h5py.File, Path], object]) -> Crafted:
    def make(path: Path) -> None:
        with h5py.File(path, "w") as file:
            fill(file, path)

    return make


def virtual(file: h5py.File, path: Path) -> None:
    layout = h5py.VirtualLayout((6, 96, 96, 3), np.uint8)
    layout[:] = h5py.VirtualSource("/etc/passwd", "x", (6, 96, 96, 3))
    file.create_virtual_dataset("x", layout)


def png(width: int, height: int, body: bytes, extra: bytes = b"") -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + extra + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def posing(format_: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (8, 8)).save(out, format_)
    return out.getvalue()


def tiff(width: int, height: int, following: int = 0) -> bytes:
    tags = [(256, 4, width), (257, 4, height), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 8), (279, 4, 64)]
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    return b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(tags)) + entries + struct.pack("<I", following)


def _text_bomb() -> bytes:
    data = b"Comment\0\0" + zlib.compress(bytes(100_000_000))
    return struct.pack(">I", len(data)) + b"zTXt" + data + struct.pack(">I", zlib.crc32(b"zTXt" + data))


def _large_jpeg() -> bytes:
    whole = bytearray(posing("JPEG"))
    start = whole.index(b"\xff\xc0")
    whole[start + 5 : start + 9] = struct.pack(">HH", 65_000, 65_000)
    return bytes(whole)


HEAD = "{count}\nlefteye_x lefteye_y and the names of eight columns more\n"
LINE = "{name} 10 20 30 20 20 30 10 40 30 40\n"


def landmarks(name: str, count: object = 12) -> Crafted:
    rows = [LINE.format(name=f"{i:06d}.jpg") for i in range(1, 12)]
    return text(HEAD.format(count=count) + LINE.format(name=name) + "".join(rows))


DATA: dict[str, dict[str, Crafted]] = {
    "pcam": {
        "10^9 rows": hdf5(lambda f, p: f.create_dataset("x", (GIGA, 96, 96, 3), np.uint8, chunks=(1, 96, 96, 3))),
        "external link": hdf5(lambda f, p: f.__setitem__("x", h5py.ExternalLink("/etc/passwd", "x"))),
        "external storage": hdf5(
            lambda f, p: f.create_dataset("x", (6, 96, 96, 3), np.uint8, external=[("/etc/passwd", 0, 6 * 27648)])
        ),
        "virtual": hdf5(virtual),
        "other shape": hdf5(lambda f, p: f.create_dataset("x", data=np.zeros((6, 3, 96, 96), np.uint8))),
        "more rows than labels": hdf5(lambda f, p: f.create_dataset("x", data=np.zeros((7, 96, 96, 3), np.uint8))),
    },
    "volumes": {
        "10^9 rows": zipped(
            ("train_images.npy", npy(f"({GIGA}, 28, 28, 28)")), ("train_labels.npy", npy(f"({GIGA},)"))
        ),
        "negative": zipped(("train_images.npy", npy("(-6, 5, 5, 5)")), ("train_labels.npy", npy("(6,)"))),
        "code in the header": zipped(("train_images.npy", npy("__import__('os').system('touch CODE-HAS-RUN')"))),
        "objects": zipped(("train_images.npy", npy("(6, 5, 5, 5)", "|O", pickle.dumps(Bomb(Path("CODE-HAS-RUN")))))),
        "bomb": zipped(("train_images.npy", npy("(6, 5, 5, 5)", body=bytes(200_000_000)))),
    },
    "mnist": {
        "10^9 rows": raw(lambda: gzip.compress(idx((GIGA, 28, 28), bytes(64)))),
        "bomb": raw(lambda: gzip.compress(idx((10**6, 28, 28), b"") + bytes(784 * 10**6), 1)),
        "other side": raw(lambda: gzip.compress(idx((6, 29, 28), bytes(6 * 29 * 28)))),
    },
    "png": {
        "60000 x 60000": raw(lambda: png(60_000, 60_000, zlib.compress(bytes(1000)))),
        "text bomb": raw(
            lambda: png(8, 8, zlib.compress(bytes(8 * 25)), _text_bomb()),
        ),
        "gif": raw(lambda: posing("GIF")),
        "eps": raw(lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(CODE-HAS-RUN) (w) file\n"),
    },
    "jpeg": {"65000 x 65000": raw(lambda: _large_jpeg()), "webp": raw(lambda: posing("WEBP"))},
    "tiff": {
        "10^9 wide": raw(lambda: tiff(GIGA, GIGA)),
        "strip outside": raw(lambda: tiff(30, 20).replace(struct.pack("<I", 64), struct.pack("<I", GIGA))),
        "directories in a ring": raw(lambda: tiff(30, 20, following=8)),
    },
    "landmarks": {
        "name outside": landmarks("../../secret.jpg"),
        "10^9 images": landmarks("000012.jpg", GIGA),
        "count of text": landmarks("000012.jpg", "many"),
        "bad lines without end": raw(lambda: b"12\nnames\n" + b"bad\n" * 3_000_000),
    },
    "identities": {
        "name outside": text("../../secret.jpg 1\n"),
        "twice": text("".join(f"{1:06d}.jpg 1\n" for _ in range(12))),
    },
    "prepared index": {
        "points outside": lambda p: p.write_text(p.read_text().replace("\n", ",\n", 1)),
        "other columns": text("a,b,c\n1,2,3\n"),
    },
    "prepared images": {
        "10^9 rows": raw(lambda: npy(f"({GIGA}, 128, 128, 3)")),
        "objects": raw(lambda: npy("(16, 128, 128, 3)", "|O", pickle.dumps(Bomb(Path("CODE-HAS-RUN"))))),
    },
    "prepared summary": {"deep": text("[" * 200_000), "list": text("[]"), "other format": text('{"format": 99}')},
}
