"""When the kernels for Hopper GPUs are chosen, and how their work is cut."""

import itertools
from typing import Any

import pytest
import torch

import liespline as ls
from liespline.models.kernels import h_basis
from liespline.ops import choose
from liespline.ops.correlate.hopper import tiles

SIXTEEN = ls.uniform(ls.SO2(), 16)


def test_one_window_is_chosen_where_it_pays() -> None:
    def chosen(channels: int, **changes: Any) -> choose.Choice:
        own = ls.GConv(channels, channels, 5, SIXTEEN, h_basis=h_basis(SIXTEEN, "local", 3, degree=1))
        question = choose.Question(
            "auto", True, torch.bfloat16, True, 64, (channels, 16), channels, (42, 42), own.window.sizes,
            (1, 1), (0, 0), False, False, True, True,
        )  # fmt: skip
        return choose._decide(question._replace(**changes), own.plan)

    ours, whole = choose.Choice(False, ("hopper",)), choose.Choice(True, ("cudnn",))
    for channels in (16, 23, 32, 64):
        assert chosen(channels) == ours
    assert chosen(32, innermost=False) == ours
    assert chosen(16, batch=48) == ours
    assert chosen(16, batch=48, innermost=False) == whole  # a copy first does not pay
    assert chosen(23, space=(5, 5)) == whole  # one sample: seven of eight columns would be wasted
    assert chosen(4) == whole
    assert chosen(23, hopper=False) != ours
    for change in ({"stride": (2, 1)}, {"batch": 3}, {"transformed": True}, {"padding": (5, 0)}):
        assert chosen(32, **change) != ours
        with pytest.raises(ValueError, match="path 'hopper' does not take"):
            chosen(32, forced="hopper", triton=False, **change)
    assert chosen(65) != ours
    assert chosen(32, space=(2048, 2048)) != ours  # places in an image are counted by 32 bits


def test_volumes_are_taken_as_far_as_they_were_shown_right() -> None:
    def cost(channels: int, outputs: int, window: int) -> float:
        shape = 2, (24, 24, 24), (window,) * 3, (1, 1, 1), (0, 0, 0)
        return tiles.terms(*shape, 24, 24, channels, outputs, 7, 7.0)

    assert max(cost(16, 16, 5), cost(24, 24, 3), cost(32, 24, 5)) < float("inf")
    assert min(cost(8, 16, 3), cost(16, 16, 3), cost(16, 8, 5), cost(16, 24, 5)) == float("inf")


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
