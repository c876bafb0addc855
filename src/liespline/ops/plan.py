"""What the samples of a layer allow, found once: which fields on H each output element reads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn import Parameter

from .._check import Size
from .._torch import beside, has_values
from .blur import Blur, blur_of
from .tables import Table, fields_of, span_of, table_of

Made = TypeVar("Made")
Keep = Callable[[Hashable, Callable[[], Tensor]], Tensor]
_MOST_KEPT = 32  # for images of many sizes


@dataclass(frozen=True, eq=False)
class Part:
    """The elements that share a window."""

    window: Size
    elements: int  # A_p
    members: Tensor  # (A_p,)
    tables: tuple[Table, ...]  # one element per output group, and two where their number is even
    widths: tuple[int, ...]  # of these tables
    basis: Tensor | None  # (A_p, w, rank): orthonormal columns that span the samples along the first axis, if few
    rank: int  # their number, 0 where the samples have full rank


@dataclass(frozen=True, eq=False)
class Plan:
    """The zeros and the repeated rows of h_samples (A, 1, N_in, N_k), as small tables.

    The sum over H is out_a = Σ_j S[a,j] ⋆ field[labels[a,j]]. A field is a distinct row of h_samples applied to the
    input; where every row has a single entry, no row is applied and the fields are the input's own elements.
    """

    labels: Tensor  # (A, N_k) the field of each row, −1 where the row is zero
    rows: Tensor | None  # (R,) where each field's row stands among the A·N_k, None where fields are the input's own
    fields: int  # R
    parts: tuple[Part, ...]
    order: Tensor | None  # (A,) where each element stands among the parts one after the other, None if in order
    fixed: bool  # whether samples stay what they are, so that what is made of them may be kept
    home: Plan | None = None  # whose tables these are, if the samples in space were moved since
    blur: Blur | None = None  # what the input may meet once for all elements,
    centres: Plan | None = None  # and then the same plan in the window of the centres
    waves: Tensor | None = None  # (N, N) orthonormal columns in which samples on H have blocks alone,
    blocks: Size = ()  # of these sizes

    def on(self, device: torch.device) -> Plan:
        """Return the same plan with its tables on a device."""
        if device == self.labels.device:
            return self
        return kept(self, device, lambda: _moved(self, device))

    def beside(self, x: Tensor) -> Plan:
        """Return the same plan for layers with the tensor x: a plan of fake tables where x is fake."""
        return self if has_values(x) else _mapped(self, lambda table: beside(table, x).to(x.device))

    def moved(self) -> Plan:
        """Return the plan of the same layer with other samples in space: of full rank, as they are almost anywhere."""
        return replace(self, parts=_full_rank(self.parts), home=self, blur=None, centres=None)

    def __deepcopy__(self, memo: dict[int, Any]) -> Plan:
        return self


def plan_of(
    h_samples: Tensor, sizes: Sequence[Size], x_samples: Tensor | None = None, blocks: tuple[Tensor, Size] | None = None
) -> Plan:
    """Return the plan of fixed samples on H; `sizes` are the windows of the A elements.

    With x_samples (A, 1, *W, N_x), which then are fixed too, it also finds their rank along the first axis, and what
    they have in common. `blocks` are columns that may cut the samples on H into blocks, and the sizes of these.
    """
    samples = h_samples.detach()[:, 0].cpu()  # (A, N_in, N_k)
    rows, labels, fields = fields_of(samples)
    members = [torch.tensor([a for a, size in enumerate(sizes) if size == window]) for window in distinct(sizes)]
    groups = (1, 2) if all(len(member) % 2 == 0 for member in members) else (1,)
    parts = []
    for window, member in zip(distinct(sizes), members, strict=True):
        tables = tuple(table_of(labels[member].view(len(member) // group, -1), fields) for group in groups)
        widths = tuple(table.fields.shape[1] for table in tables)
        basis = None if x_samples is None else span_of(crop(x_samples.detach()[:, 0].cpu()[member], 1, window))
        rank = 0 if basis is None else basis.shape[-1]
        parts.append(Part(window, len(member), member, tables, widths, basis, rank))
    order = torch.argsort(torch.cat(members))
    in_order = bool((order == torch.arange(len(order))).all())
    plan = Plan(labels, rows, fields, tuple(parts), None if in_order else order, x_samples is not None)
    if x_samples is not None and len(parts) == x_samples.shape[1] == 1 and x_samples.ndim > 3:
        blur = blur_of(x_samples.detach()[:, 0].cpu().double())
        if blur is not None:
            plan = replace(plan, blur=blur, centres=replace(plan, parts=_full_rank(plan.parts, blur.window)))
    if blocks is not None and x_samples is not None and _cut(samples, x_samples.detach().cpu(), *blocks):
        plan = replace(plan, waves=blocks[0], blocks=blocks[1])
    return _moved(plan, labels.device)


def _cut(h_samples: Tensor, x_samples: Tensor, waves: Tensor, blocks: Size) -> bool:
    """Whether samples on H (A, N_in, N_k) have these blocks alone, and those in space are one number for all of H."""
    points = x_samples.flatten(1)
    if points.shape[1] != x_samples.shape[-1] or not bool((points == points[0]).all()):
        return False
    outside = 1 - torch.block_diag(*[waves.new_ones(size, size) for size in blocks])
    found = torch.einsum("ap,abj,bq->pqj", waves, h_samples.to(waves), waves) * outside[..., None]
    return bool((found.abs() < 1e-10 * h_samples.abs().max()).all())


def _full_rank(parts: Sequence[Part], window: Size | None = None) -> tuple[Part, ...]:
    """Return parts whose samples have full rank along the first axis, perhaps in another window."""
    return tuple(replace(part, basis=None, rank=0, window=window or part.window) for part in parts)


def distinct(sizes: Sequence[Size]) -> list[Size]:
    """Return the sizes that differ, in the order in which they come."""
    found: list[Size] = []
    for size in sizes:  # not a set, since a compiler's numbers have no hash
        if size not in found:
            found.append(size)
    return found


def crop(samples: Tensor, axis: int, window: Size) -> Tensor:
    """Return the middle of a tensor whose axes from `axis` on are a larger window."""
    for i, size in enumerate(window):
        if samples.shape[axis + i] != size:  # a view of everything would cost its gradient a copy
            samples = samples.narrow(axis + i, (samples.shape[axis + i] - size) // 2, size)
    return samples


# ---- what is made of a plan, and kept as long as the plan lives ----

_lock = threading.Lock()
_kept: WeakKeyDictionary[Plan, OrderedDict[Hashable, Any]] = WeakKeyDictionary()


def kept(plan: Plan, key: Hashable, make: Callable[[], Made]) -> Made:
    """Return what `make` made the first time; of many things the latest used are kept."""
    with _lock:
        mine = _kept.setdefault(plan, OrderedDict())
        if key in mine:
            mine.move_to_end(key)
            found: Made = mine[key]
            return found
    with torch.inference_mode(False), torch.no_grad():  # a later step may take gradients
        made = make()
    with _lock:  # two threads may have made the same: either is right
        mine[key] = made
        while len(mine) > _MOST_KEPT:
            mine.popitem(last=False)
    return made


def _moved(plan: Plan, device: torch.device) -> Plan:
    return _mapped(plan, lambda table: table.to(device))


def _mapped(plan: Plan, change: Callable[[Tensor], Tensor]) -> Plan:
    def move(value: Any) -> Any:
        # Parameters of no module: torch.compile takes their shapes for constants.
        return Parameter(change(value), requires_grad=False) if isinstance(value, Tensor) else value

    parts = [
        replace(p, members=move(p.members), tables=tuple(Table(*map(move, t)) for t in p.tables), basis=move(p.basis))
        for p in plan.parts
    ]
    blur = plan.blur and replace(plan.blur, spline=move(plan.blur.spline), centres=move(plan.blur.centres))
    return replace(
        plan, labels=move(plan.labels), rows=move(plan.rows), parts=tuple(parts), order=move(plan.order), blur=blur,
        centres=plan.centres and _mapped(plan.centres, change), waves=move(plan.waves),
    )  # fmt: skip
