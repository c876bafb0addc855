"""Data made by hand to hurt: sizes that are declared and not there, code, paths that lead outside, bombs."""

import gzip
import io
import pickle
import struct
import zlib
from pathlib import Path

from PIL import Image

from .hostile_crafted import GIGA, Crafted, raw, zipped
from .hostile_damage import Bomb
from .hostile_files import idx


def npy(shape: str, descr: str = "|u1", body: bytes = bytes(64)) -> bytes:
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body


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


DATA: dict[str, dict[str, Crafted]] = {
    "volumes": {
        "negative": zipped(("train_images.npy", npy("(-6, 5, 5, 5)")), ("train_labels.npy", npy("(6,)"))),
        "objects": zipped(("train_images.npy", npy("(6, 5, 5, 5)", "|O", pickle.dumps(Bomb(Path("CODE-HAS-RUN")))))),
        "bomb": zipped(("train_images.npy", npy("(6, 5, 5, 5)", body=bytes(200_000_000)))),
    },
    "mnist": {"bomb": raw(lambda: gzip.compress(idx((10**6, 28, 28), b"") + bytes(784 * 10**6), 1))},
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
}
