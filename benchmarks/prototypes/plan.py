"""The order of measurement, most decisive rows first."""

from variants import LAYERS, Variant, banded
from variants_depthwise import baselines, separable

Tile = dict[str, int]


def tile(columns: int, images: int, channels: int, lines: int, stages: int, warps: int, planes: int = 1) -> Tile:
    """A tile of the correlation."""
    found = {"columns": columns, "images": images, "channels": channels, "lines": lines, "stages": stages}
    return found | {"warps": warps, "planes": planes}


def stream(columns: int, images: int, channels: int, lines: int, stages: int, warps: int, each: int, planes: int = 1):
    """A tile of the correlation with a warp that copies, `each` programs on a multiprocessor."""
    registers = 65536 // each // ((warps + 4) * 32) // 8 * 8
    more = {"registers": min(registers, 168), "programs": 132 * each}
    return tile(columns, images, channels, lines, stages, warps, planes) | more


def weight(columns: int, images: int, channels: int, blocks: int, splits: int, stages: int, planes: int = 1) -> Tile:
    """A tile of the weight gradient."""
    found = {"columns": columns, "images": images, "channels": channels, "blocks": blocks, "splits": splits}
    return found | {"stages": stages, "planes": planes}


def copying(
    columns: int, images: int, channels: int, blocks: int, splits: int, stages: int, keep: int, planes: int = 1
) -> Tile:  # fmt: skip
    """A tile of the weight gradient with a warp that copies; `keep` rows of samples wait in registers."""
    return weight(columns, images, channels, blocks, splits, stages, planes) | {"registers": 168, "keep": keep}


FORWARD = {
    "C32": [stream(8, 64, 32, 2, 3, 8, 1), stream(8, 32, 32, 2, 2, 8, 2), stream(8, 16, 32, 2, 2, 4, 3),
            stream(8, 32, 32, 1, 3, 8, 2), tile(8, 32, 32, 2, 2, 8)],
    "C64": [stream(16, 32, 32, 1, 3, 8, 1), stream(8, 64, 32, 1, 3, 8, 1), stream(4, 64, 32, 1, 2, 8, 2),
            stream(4, 32, 32, 1, 3, 4, 2), stream(8, 32, 32, 1, 2, 8, 2)],
    "C23": [stream(8, 64, 16, 2, 6, 8, 1), stream(8, 64, 32, 2, 3, 8, 1), stream(8, 32, 16, 2, 4, 8, 2),
            stream(8, 16, 16, 2, 4, 4, 3), tile(8, 32, 16, 2, 4, 8)],
    "N32": [stream(8, 64, 32, 2, 3, 8, 1), stream(8, 32, 32, 2, 2, 8, 2)],
    "C16": [stream(8, 64, 16, 4, 4, 8, 1), stream(8, 64, 16, 2, 6, 8, 1), stream(8, 32, 16, 4, 3, 8, 2)],
    "SE3": [stream(8, 2, 16, 2, 4, 4, 3, 8), stream(8, 2, 16, 4, 3, 4, 3, 8)],
}  # fmt: skip
INPUT = {
    "C32": [stream(16, 32, 32, 2, 3, 8, 1), stream(8, 64, 32, 2, 3, 8, 1), stream(4, 64, 32, 2, 2, 8, 2),
            stream(8, 32, 32, 2, 2, 8, 2)],
    "C64": [stream(16, 32, 32, 1, 3, 8, 1), stream(8, 64, 32, 1, 3, 8, 1), stream(8, 32, 32, 1, 2, 8, 2)],
    "C23": [stream(16, 32, 16, 2, 6, 8, 1), stream(16, 32, 32, 2, 3, 8, 1), stream(4, 64, 16, 2, 3, 8, 2),
            stream(8, 32, 16, 2, 4, 8, 2)],
    "N32": [stream(16, 32, 32, 2, 3, 8, 1), stream(8, 32, 32, 2, 2, 8, 2)],
    "C16": [stream(16, 32, 16, 4, 4, 8, 1), stream(16, 32, 16, 2, 6, 8, 1)],
    "SE3": [stream(8, 2, 16, 2, 4, 4, 3, 8)],
}  # fmt: skip
WEIGHT = {
    "C32": [copying(2, 32, 32, 8, 4, 4, 64), copying(2, 32, 32, 8, 4, 4, 0), copying(4, 16, 32, 8, 4, 5, 64),
            copying(2, 64, 32, 8, 4, 2, 64), copying(2, 32, 32, 8, 4, 4, 32), weight(2, 32, 32, 8, 4, 4)],
    "C64": [copying(4, 16, 64, 2, 1, 6, 0), copying(4, 32, 64, 2, 1, 3, 0), copying(4, 16, 64, 2, 1, 6, 64),
            copying(8, 16, 64, 2, 1, 3, 0), copying(2, 32, 64, 2, 1, 5, 0)],
    "C23": [copying(2, 32, 32, 8, 4, 4, 64), copying(2, 32, 32, 8, 4, 4, 0), copying(4, 16, 32, 8, 4, 5, 64)],
    "N32": [copying(4, 16, 32, 8, 2, 5, 64), copying(2, 32, 32, 8, 2, 4, 64)],
    "C16": [copying(2, 32, 16, 16, 8, 4, 64), copying(2, 32, 16, 8, 4, 6, 64)],
    "SE3": [copying(8, 2, 16, 16, 1, 2, 64, 8), copying(8, 2, 16, 16, 1, 4, 64, 4), copying(8, 2, 16, 16, 1, 2, 0, 8)],
}  # fmt: skip


def slab(columns: int, planes: int, images: int, pairs: int) -> Tile:
    """A tile of the slab kernel, one program on a multiprocessor."""
    return {"columns": columns, "planes": planes, "images": images, "pairs": pairs, "programs": 132}


SLABS = {
    ("SE3", "forward"): [slab(8, 4, 2, 5), slab(8, 8, 2, 2)],
    ("SE3", "input"): [slab(8, 4, 2, 6), slab(8, 8, 2, 2)],
    ("C16", "forward"): [slab(8, 1, 8, 5), slab(8, 1, 16, 2)],
    ("C16", "input"): [slab(8, 1, 8, 6)],
}


def walk(columns: int, images: int, channels: int, parts: int, wide: int = 0, registers: int = 128) -> Tile:
    """A tile of the depthwise kernels."""
    found = {"columns": columns, "images": images, "channels": channels, "parts": parts, "warps": 4}
    return found | {"wide": wide, "registers": registers}


WALKS = [walk(4, 4, 64, 1), walk(4, 8, 32, 1), walk(4, 4, 64, 2), walk(4, 4, 64, 1, 0, 104)]
GATHERS = [walk(4, 4, 64, 1), walk(4, 4, 64, 1, 1), walk(4, 8, 32, 1), walk(4, 4, 64, 1, 1, 136)]


def variants() -> list[Variant]:
    """All rows."""
    found = baselines()
    for name in ("C32", "C64", "C23", "N32"):
        for what, tiles in (("forward", FORWARD), ("weight", WEIGHT), ("input", INPUT)):
            found += banded(LAYERS[name], what, tiles[name])
    found += separable("D32", {"forward": WALKS, "weight": GATHERS, "input": WALKS})
    for name in ("SE3", "C16"):
        for what, tiles in (("forward", FORWARD), ("weight", WEIGHT), ("input", INPUT)):
            found += banded(LAYERS[name], what, tiles[name], SLABS.get((name, what), []))
    for name in ("D64", "D16"):
        found += separable(name, {"forward": WALKS, "weight": GATHERS, "input": WALKS})
    return found
