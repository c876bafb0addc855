# mypy: ignore-errors
"""What the Hopper kernels share: where a tile begins, and the barriers by which a stage passes between warps.

Gluon still renames what it has: `_barrier` with Triton 3.7, `copy` and `reinterpret` between 3.7 and 3.9.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language._core import shared_memory_descriptor
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma

_barrier = gl.barrier if hasattr(gl, "barrier") else gl.thread_barrier
copy = tma.async_load if hasattr(tma, "async_load") else tma.async_copy_global_to_shared
reinterpret = getattr(shared_memory_descriptor, "reinterpret", None) or shared_memory_descriptor._reinterpret


@gluon.jit
def corner(tile, sizes, LINES: gl.constexpr, WT: gl.constexpr, PT: gl.constexpr, BB: gl.constexpr):
    """Element, column, line, plane and image at which a tile begins; elements run fastest and share samples."""
    elements, tiles_w, tiles_h, tiles_d = sizes
    element = tile % elements
    rest = tile // elements
    w0 = (rest % tiles_w) * WT
    rest = rest // tiles_w
    h0 = (rest % tiles_h) * LINES
    rest = rest // tiles_h
    d0 = (rest % tiles_d) * PT
    b0 = (rest // tiles_d) * BB
    return element, w0, h0, d0, b0


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
