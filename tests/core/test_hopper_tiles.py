"""When the kernels for Hopper GPUs are chosen, and how their work is cut."""

import itertools
from typing import Any

import pytest
import torch

import liespline as ls
from liespline.models.kernels import h_basis
from liespline.ops import decide
from liespline.ops.correlate import cudnn, triton
from liespline.ops.correlate.hopper import operators, tiles
from liespline.ops.layout import Order, output_size
from liespline.ops.path import Path, Question

SIXTEEN = ls.uniform(ls.SO2(), 16)


def question(layer: ls.GConv, **changes: Any) -> Question:
    """What is asked of a layer in bfloat16 on a GPU, whose fields lie together."""
    d, (c, n) = len(layer.kernel_size), (layer.in_channels, len(layer.grid))
    asked = Question(
        "auto", torch.device("cuda"), True, torch.bfloat16, False, 64, (c, n), c, (42,) * d, (38,) * d,
        layer.window.sizes, (1,) * d, (0,) * d, Order.FIELDS, False, False,
    )._replace(**changes)  # fmt: skip
    window = layer.window.largest
    return asked._replace(size=tuple(output_size(asked.space, window, asked.stride, asked.padding)))


def test_one_window_is_chosen_where_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton, "available", lambda device, dtype: True)
    monkeypatch.setattr(operators, "available", lambda device, dtype: True)

    def chosen(channels: int, **changes: Any) -> Path:
        own = ls.GConv(channels, channels, 5, SIXTEEN, h_basis=h_basis(SIXTEEN, "local", 3, degree=1))
        (path,) = decide.decide(question(own, **changes), own.plan).paths
        return path

    ours, whole = operators.PATH, cudnn.PATH
    for channels in (16, 23, 32, 64):
        assert chosen(channels) == ours
    assert chosen(32, order=Order.PLANES) == ours
    assert chosen(16, batch=48) == ours
    assert chosen(16, batch=48, order=Order.PLANES) == whole  # a copy first does not pay
    assert chosen(23, space=(5, 5)) == whole  # one sample: seven of eight columns would be wasted
    assert chosen(4) == whole
    assert chosen(65) != ours
    assert chosen(32, space=(2048, 2048)) != ours  # places in an image are counted by 32 bits
    for change in ({"stride": (2, 1)}, {"batch": 3}, {"transformed": True}, {"padding": (5, 0)}):
        assert chosen(32, **change) != ours
        with pytest.raises(ValueError, match="path 'hopper' does not take"):
            chosen(32, forced="hopper", **change)
    monkeypatch.setattr(operators, "available", lambda device, dtype: False)
    assert chosen(23) != ours


def test_volumes_are_taken_as_far_as_they_were_shown_right() -> None:
    grid = ls.uniform(ls.SO3(), 24)

    def taken(channels: int, outputs: int, window: int) -> bool:
        layer = ls.GConv(channels, channels, window, grid, h_basis=h_basis(grid, "local", 7))
        asked = question(layer, batch=2, space=(24,) * 3, outputs=outputs)
        return tiles.terms(asked._replace(window=(window,) * 3, elements=24, fields=24, reads=7, runs=7.0)) is not None

    assert taken(16, 16, 5)
    assert taken(24, 24, 3)
    assert taken(32, 24, 5)
    assert not any((taken(8, 16, 3), taken(16, 16, 3), taken(16, 8, 5), taken(16, 24, 5)))


@pytest.mark.parametrize(("channels", "elements"), [(16, 16), (23, 16), (24, 8), (5, 8), (64, 16), (40, 12)])
def test_spans_cover_each_channel_once(channels: int, elements: int) -> None:
    lines = (*(((a - 1) % elements, a, (a + 1) % elements) for a in range(elements - 1)), (0, -1, 2))
    outputs = channels + channels % 2
    found = tiles.covers(tuple(itertools.chain(*lines)), elements, elements, channels, outputs)
    blocks = [(a, t, f) for a, line in enumerate(lines) for t, f in enumerate(line) if f >= 0]
    passes = (found.forward, channels, False), (found.weight, channels, False), (found.back, outputs, True)
    for cover, count, back in passes:
        for here, (starts, entries) in enumerate(zip(cover.starts, cover.entries, strict=True)):
            assert len(entries) == len(starts) * cover.width
            assert not any(start % 16 for start in starts)  # the copy engine starts at multiples of 8
            read = [
                (entry, starts[place // cover.width] + place % cover.width)
                for place, entry in enumerate(entries)
                if entry >= 0
            ]
            own = [((3 * a + t), a if back else f) for a, t, f in blocks if here == (f if back else a)]
            assert sorted(read) == sorted((b * count + c, s * count + c) for b, s in own for c in range(count))


def test_tiles_fit_the_device() -> None:
    sides, counts = ((1, 42, 42), (1, 5, 3), (1, 1, 1), (20, 20, 20), (7, 9, 8)), (1, 4, 9, 64, 256)
    for size, batch, taps, outputs, width in itertools.product(sides, counts, (2, 3, 5, 7), (5, 16, 23, 64), (16, 32)):
        n = tiles.padded(outputs)
        found = tiles.tile(batch, size, taps, 16, outputs, width)
        crowd, rows = found.planes * found.images, found.columns * found.planes * found.images
        stage = ((found.columns + taps - 1) * crowd + taps * found.lines * n) * width * 2
        assert crowd % 8 == 0
        assert size[0] > 1 or found.planes == 1
        assert rows * found.lines * n * found.each <= 512 * 64  # sums, in the registers of a multiprocessor
        assert found.stages >= 2
        assert found.each * (found.stages * stage + 1024) <= 227 * 1024
        n = tiles.aligned(outputs)
        if taps * 128 * n <= 40_960:
            weight = tiles.weight_tile(batch, size[0], size[2], (1, 5, taps), 16, 3, width, outputs)
            crowd = weight.planes * weight.images
            assert crowd % 8 == 0
            assert crowd * weight.columns == 64
            stage = (64 * weight.blocks * width + (weight.columns + taps - 1) * crowd * n) * 2
            assert weight.stages >= 2
            assert weight.stages * stage + 1024 <= 227 * 1024


def test_reading_a_sum_before_its_products_are_done_is_noticed() -> None:
    pytest.importorskip("triton.experimental.gluon")
    from benchmarks.kernels import early

    product = "/*0010*/ HGMMA.64x32x16.F32.BF16 R{0}, gdesc[UR8], R{0}, gsb0 ;"
    read, other = "/*0020*/ F2FP.BF16.F32.PACK_AB R119, R41, R40 ;", "/*0030*/ IABS R9, R3 ;"
    one, none = "/*0040*/ WARPGROUP.DEPBAR.LE gsb0, 0x1 ;", "/*0050*/ WARPGROUP.DEPBAR.LE gsb0, 0x0 ;"

    def count(*lines: str) -> int:
        return early("\n".join(f"        {line}" for line in lines))

    assert count(product.format(40), other, none, read) == 0
    assert count(product.format(40), other, read, none) == 1
    assert count(product.format(40), product.format(72), one, read, none) == 0  # the first one is done
    assert count(product.format(72), product.format(40), one, read, none) == 1
