# mypy: ignore-errors
"""What the Hopper kernels share: where a tile begins, what a stage holds, and the barriers by which warps pass it on.

A stage holds COLUMNS units of rows, and each tap reads many of them from its own first one on, so that reads overlap.
Since 3.9 Triton takes such slices. Before, an index moves a pointer and names one unit; 3.8 wants to be told how many
follow from there. Gluon also renames what it has: `_barrier` with Triton 3.7, `copy` and `view` between 3.7 and 3.9.
"""

import math

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language._core import _unwrap_if_constexpr, builtin, shared_memory_descriptor
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma

_SLICES = gl.constexpr(hasattr(shared_memory_descriptor, "reinterpret"))
MOST_KEPT = 16 if _SLICES.value else 64  # rows in registers: the assembler of Triton 3.9 serialises products over more
_barrier = gl.barrier if hasattr(gl, "barrier") else gl.thread_barrier
copy = tma.async_load if hasattr(tma, "async_load") else tma.async_copy_global_to_shared
view = shared_memory_descriptor.reinterpret if _SLICES.value else shared_memory_descriptor._reinterpret


@gluon.jit
def stage_of(memory, stage, COLUMNS: gl.constexpr, STAGES: gl.constexpr):
    """The units of a stage, for `shifted`."""
    if _SLICES:  # they begin at constants: one is chosen among all
        found = memory.slice(0, COLUMNS)
        for i in gl.static_range(1, STAGES):
            if stage == i:
                found = memory.slice(i * COLUMNS, COLUMNS)
        return found
    else:
        return memory, stage * COLUMNS


@builtin
def shifted(units, first, shape, layout, _semantic=None):
    """The units of a stage from `first` on, as many as `shape` takes."""
    shape = [_unwrap_if_constexpr(n) for n in shape]
    if _SLICES.value:
        count = math.prod(shape) // math.prod(units.shape[1:])
        found = _semantic.memdesc_slice(units, _unwrap_if_constexpr(first), count, 0)
    else:
        memory, place = units
        unit = _semantic.memdesc_index(memory, place.__add__(first, _semantic=_semantic))
        following = [math.prod(shape) // math.prod(unit.shape), *unit.shape]
        unit = shared_memory_descriptor(unit.handle, unit.dtype, unit.shape, unit.layout, following)
        found = _semantic.memdesc_slice(unit, 0, unit.shape[0], 0)
    return _semantic.memdesc_reinterpret(found, found.dtype, shape, _unwrap_if_constexpr(layout))


@gluon.jit
def _divided(n, d):
    # Quotient and remainder, by one division: a compiler moves a second one to where products are under way.
    q = n // d
    return q, n - q * d


@gluon.jit
def corner(tile, sizes, LINES: gl.constexpr, WT: gl.constexpr, PT: gl.constexpr, BB: gl.constexpr):
    """Element, column, line, plane and image at which a tile begins; elements run fastest and share samples."""
    elements, tiles_w, tiles_h, tiles_d = sizes
    rest, element = _divided(tile, elements)
    rest, column = _divided(rest, tiles_w)
    rest, line = _divided(rest, tiles_h)
    image, plane = _divided(rest, tiles_d)
    return element, column * WT, line * LINES, plane * PT, image * BB


@gluon.jit
def barriers(STAGES: gl.constexpr):
    """Two per stage: ready (the copy engine filled it) and empty (all its products are done)."""
    ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(ready.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    fence_async_shared()
    _barrier()
    return ready, empty
