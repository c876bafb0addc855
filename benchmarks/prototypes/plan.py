"""The order of measurement, most decisive rows first."""

from variants import LAYERS, Variant, banded, baselines, line, packing, separable

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


def copying(columns: int, images: int, channels: int, blocks: int, splits: int, stages: int, planes: int = 1) -> Tile:
    """A tile of the weight gradient with a warp that copies."""
    return weight(columns, images, channels, blocks, splits, stages, planes) | {"registers": 168}


def box(columns: int, images: int, channels: int, lines: int, boxes: bool, programs: int, stages: int) -> dict:
    """A tile of the plain Triton kernel."""
    found = {"columns": columns, "images": images, "channels": channels, "lines": lines, "boxes": boxes}
    return found | {"programs": programs, "stages": stages}


FORWARD = {
    "C32": [stream(8, 32, 32, 1, 3, 8, 2), stream(8, 32, 32, 2, 4, 8, 1), stream(8, 32, 32, 2, 2, 8, 2),
            stream(8, 16, 32, 2, 2, 4, 3), stream(8, 32, 32, 1, 6, 8, 1), tile(8, 32, 32, 1, 3, 8), tile(8, 16, 32, 2, 2, 4), tile(8, 32, 32, 2, 2, 8), tile(8, 16, 32, 1, 3, 4),
            tile(4, 64, 32, 2, 2, 8)],
    "C64": [stream(4, 64, 32, 1, 2, 8, 2), stream(4, 64, 32, 1, 4, 8, 1), stream(8, 32, 32, 1, 2, 8, 2),
            stream(4, 64, 32, 2, 3, 8, 1), stream(4, 32, 32, 1, 3, 4, 2), tile(4, 64, 32, 1, 2, 8), tile(8, 32, 32, 1, 2, 8), tile(4, 64, 32, 1, 4, 8), tile(4, 64, 64, 1, 2, 8),
            tile(4, 32, 32, 1, 3, 4)],
    "C23": [stream(8, 32, 16, 2, 4, 8, 2), stream(8, 32, 16, 1, 6, 8, 2), stream(8, 16, 16, 2, 4, 4, 3),
            tile(8, 32, 16, 1, 4, 8), tile(8, 32, 16, 2, 4, 8), tile(8, 16, 16, 2, 4, 4), tile(8, 32, 32, 1, 3, 8),
            tile(8, 16, 16, 1, 4, 4)],
    "SE3": [stream(8, 2, 16, 2, 4, 4, 3, 8), stream(8, 2, 16, 4, 4, 4, 3, 8), stream(16, 2, 16, 2, 4, 8, 2, 8),
            tile(8, 2, 16, 2, 4, 4, 8), tile(8, 2, 16, 4, 4, 4, 8), tile(8, 2, 16, 1, 4, 4, 8),
            tile(16, 2, 16, 2, 4, 8, 8)],
    "N32": [stream(8, 32, 32, 1, 3, 8, 2), tile(8, 32, 32, 2, 2, 8)],
    "C16": [stream(8, 32, 16, 2, 4, 8, 2), tile(8, 32, 16, 4, 3, 8)],
}  # fmt: skip
INPUT = {
    "C32": [stream(4, 64, 32, 1, 2, 8, 2), stream(4, 64, 32, 2, 2, 8, 2), stream(4, 32, 32, 1, 3, 4, 2), tile(4, 32, 32, 1, 3, 4), tile(4, 64, 32, 1, 2, 8), tile(4, 64, 32, 2, 2, 8), tile(8, 32, 32, 1, 3, 8),
            tile(2, 64, 32, 2, 2, 4)],
    "C64": [stream(8, 32, 32, 1, 2, 8, 2), stream(8, 32, 32, 1, 4, 8, 1), stream(8, 32, 64, 1, 2, 8, 1), tile(8, 32, 32, 1, 2, 8), tile(4, 64, 32, 1, 2, 8)],
    "C23": [stream(4, 64, 16, 2, 3, 8, 2), stream(4, 32, 16, 1, 4, 4, 3), tile(4, 32, 16, 1, 4, 4), tile(4, 64, 16, 2, 3, 8), tile(4, 64, 16, 1, 4, 8)],
    "SE3": [tile(8, 2, 16, 2, 4, 4, 8), tile(8, 2, 16, 4, 4, 4, 8)],
    "N32": [tile(4, 64, 32, 1, 2, 8)],
    "C16": [tile(4, 64, 16, 2, 3, 8)],
}  # fmt: skip
WEIGHT = {
    "C32": [copying(2, 64, 32, 8, 4, 2), copying(2, 32, 32, 8, 4, 4), weight(2, 64, 32, 8, 4, 2), weight(1, 64, 32, 8, 4, 4), weight(2, 32, 32, 8, 4, 3),
            weight(4, 32, 32, 8, 4, 2)],
    "C64": [copying(2, 64, 64, 2, 1, 2), copying(2, 32, 64, 2, 1, 5), weight(2, 64, 64, 2, 1, 2), weight(2, 32, 64, 2, 1, 4), weight(4, 32, 64, 2, 1, 2),
            weight(2, 64, 32, 4, 1, 2)],
    "C23": [copying(2, 64, 32, 8, 4, 2), copying(2, 64, 16, 8, 2, 3), weight(2, 64, 32, 8, 4, 2), weight(2, 64, 16, 8, 3, 2), weight(2, 64, 16, 16, 6, 2)],
    "SE3": [copying(8, 2, 16, 16, 2, 3, 4), weight(8, 2, 16, 16, 2, 2, 4), weight(4, 2, 16, 16, 2, 2, 4), weight(8, 2, 16, 16, 2, 2, 8)],
    "N32": [weight(2, 64, 32, 8, 2, 2)],
    "C16": [weight(2, 64, 16, 16, 10, 2)],
}  # fmt: skip
BOXES = {
    "C32": [box(8, 16, 32, 4, True, 132, 4), box(8, 16, 32, 4, True, 264, 3), box(8, 16, 32, 4, False, 264, 3)],
    "C64": [box(4, 32, 64, 2, True, 132, 4), box(4, 32, 64, 2, False, 264, 3)],
}


def walk(columns: int, images: int, channels: int, parts: int, warps: int = 4) -> Tile:
    """A tile of the depthwise kernels."""
    return {"columns": columns, "images": images, "channels": channels, "parts": parts, "warps": warps}


WALKS = [walk(4, 4, 64, 1), walk(4, 4, 64, 2), walk(4, 8, 32, 1), walk(2, 4, 64, 1), walk(8, 4, 32, 1),
         walk(4, 2, 64, 1, 2), walk(8, 4, 64, 2)]  # fmt: skip
FEW = WALKS[:3] + WALKS[4:5]


def variants() -> list[Variant]:
    """All rows."""
    found = baselines()
    for name in ("C32", "C64", "C23"):
        layer = LAYERS[name]
        found += banded(layer, "forward", FORWARD[name], BOXES.get(name, []))
        found += banded(layer, "weight", WEIGHT[name]) + banded(layer, "input", INPUT[name])
        found.append(Variant(name, "packing", "torch", 1e-6, packing(layer, FORWARD[name][0]["channels"], 1)))
    found += separable("D32", {"forward": WALKS, "weight": WALKS, "input": FEW})
    for name in ("SE3",):
        for what, tiles in (("forward", FORWARD), ("weight", WEIGHT), ("input", INPUT)):
            found += banded(LAYERS[name], what, tiles[name])
    for name in ("D64", "D16"):
        found += separable(name, {"forward": FEW, "weight": FEW, "input": FEW[:2]})
    for name in ("N32", "C16"):
        for what, tiles in (("forward", FORWARD), ("weight", WEIGHT), ("input", INPUT)):
            found += banded(LAYERS[name], what, tiles[name])
    return found


__all__ = ["line", "variants"]
