"""What a layer's samples allow, found once: which fields on H each output element needs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from liespline.paths import dense, windows

Size = tuple[int, ...]
_MOST_SAMPLES = 4_000_000  # 16 MB
_MOST_KEPT = 32  # for images of ever other sizes
Made = TypeVar("Made")


class Table(NamedTuple):
    """Who reads whom: the fields of each output group, and for the gradient the groups that read each field.

    A line shorter than the widest is filled up with fields whose coefficients are zero, each at most once.
    """

    fields: Tensor  # (groups, width)
    counts: Tensor  # (groups,) entries of a line that are not filling
    readers: Tensor  # (R, reach) groups
    blocks: Tensor  # (R, reach) group·width + place, the block of the kernel between the two
    reads: Tensor  # (R,) entries of a line that are not filling
    start: int | None = None  # of a single group that reads neighbours, its first field

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """All but the start, as operators take them."""
        return self[:5]


_TENSORS = Table._fields[:5]


@dataclass(frozen=True)
class Route:
    """One factorisation of the sum over H: `group` neighbouring elements share the union of their fields.

    Unmixed fields are the input's own elements b, and a block of the kernel is Σ_j S[a,j] h_samples[a,b,j].
    Mixed fields are distinct rows of h_samples applied to the input, and a block is one S[a,j]: fewer blocks
    where a spline on H overlaps several elements.
    """

    mixed: bool
    group: int
    widths: tuple[int, ...]  # fields an output group reads, one entry a part


class Plan(nn.Module):
    """The zeros and the repeated rows of h_samples, as index tables for the banded paths.

    h_samples (A, 1, N_in, N_k); sizes are the A windows. A `part` is the elements that share a window. With
    x_samples (A, 1, *W, N_x) it also finds their rank along the first axis, for the separable path. Samples that still
    train may move anywhere: for them every row counts as distinct, none as zero, and no rank as low.
    """

    rows: Tensor  # (R,) the distinct rows among the A·N_k rows of h_samples
    chosen: Tensor  # (A, R, N_k) one where row r is element a's j-th
    order: Tensor  # (A,) where each element stands among the parts, one after the other

    def __init__(self, h_samples: Tensor, sizes: tuple[Size, ...], x_samples: Tensor | None = None) -> None:
        super().__init__()
        elements, _, n_in, n_k = h_samples.shape
        samples = h_samples.detach()[:, 0].cpu()
        if h_samples.requires_grad:
            rows = labels = torch.arange(elements * n_k)
            used = torch.ones(elements, n_in, dtype=torch.bool)
        else:
            rows, labels = _distinct(samples.transpose(1, 2).flatten(0, 1))
            used = (samples.abs() > _rounding(samples)).any(-1)
        chosen = labels.view(elements, 1, n_k) == torch.arange(len(rows))[:, None]
        self.windows = tuple(sorted(set(sizes)))
        members = [torch.tensor([a for a, s in enumerate(sizes) if s == w]) for w in self.windows]
        order = torch.argsort(torch.cat(members))
        self.in_order = bool((order == torch.arange(elements)).all())
        kept = {"rows": rows, "chosen": chosen, "order": order}
        kept |= {f"members_{p}": member for p, member in enumerate(members)}
        routes = []
        self._starts: dict[str, int | None] = {}
        for mixed, incidence in ((False, used), (True, chosen.any(-1))):
            for group in _common_divisors([len(member) for member in members]):
                route = Route(mixed, group, ())
                tables = [_table(incidence[member], group) for member in members]
                for p, table in enumerate(tables):
                    kept |= {f"{_name(route, p)}_{key}": getattr(table, key) for key in _TENSORS}
                    self._starts[_name(route, p)] = table.start
                routes.append(Route(mixed, group, tuple(table.fields.shape[1] for table in tables)))
        self.routes = tuple(routes)
        self.choices: dict[object, Any] = {}  # what was chosen before, by the shapes it was chosen for
        self._exact: dict[str, Tensor] = {}
        # Centres that train move between steps, also where nobody takes a gradient.
        self._fixed = x_samples is not None
        self._kept: dict[object, Any] = {}
        ranks = []
        for p, (member, window) in enumerate(zip(members, self.windows, strict=True)):
            q = None
            if x_samples is not None and not x_samples.requires_grad:
                q = windows.span(windows.crop(x_samples[:, 0].cpu()[member], 1, window))
            if q is not None:
                self._exact[f"basis_{p}"] = q
            ranks.append(0 if q is None else q.shape[-1])
        self.ranks = tuple(ranks)  # along the first axis, 0 where it is full
        kept |= self._exact
        for name, tensor in kept.items():
            self.register_buffer(name, tensor.to(h_samples.device), persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Plan":
        super()._apply(fn, recurse)
        for name, exact in self._exact.items():  # a network in half precision still needs orthonormal columns
            setattr(self, name, exact.to(self.rows.device))
        return self

    def fixed(self, x_samples: Tensor, h_samples: Tensor) -> bool:
        """Whether what is made of these samples may be kept for the next time."""
        train = not self._fixed or x_samples.requires_grad or h_samples.requires_grad
        return not train and not torch.compiler.is_compiling()

    def kept(self, key: object, make: Callable[[], Made]) -> Made:
        """What `make` made of fixed samples the first time; a layer that moves to another device has another plan."""
        if key not in self._kept:
            if len(self._kept) == _MOST_KEPT:
                self._kept.clear()
            with torch.inference_mode(False), torch.no_grad():  # a later step may take gradients
                self._kept[key] = make()
        made: Made = self._kept[key]
        return made

    def outer(self, key: object, samples: Callable[[], tuple[Tensor, Tensor]]) -> Tensor | None:
        """Fixed samples of x and h in one matrix, kept; None where it would be too large."""

        def make() -> Tensor | None:
            x_samples, h_samples = samples()
            large = x_samples.numel() * h_samples[0].numel() > _MOST_SAMPLES
            return None if large else dense.outer(x_samples, h_samples)

        return self.kept(key, make)

    def members(self, part: int) -> Tensor:
        """The elements of a part, as an index (A_p,)."""
        return self.get_buffer(f"members_{part}")

    def basis(self, part: int) -> Tensor:
        """The columns (A_p, w, rank) that span the samples of a part of low rank."""
        return self.get_buffer(f"basis_{part}")

    def table(self, route: Route, part: int) -> Table:
        """Who reads whom in a part, with A_p / group output groups."""
        name = _name(route, part)
        fields, counts, readers, blocks, reads = (self.get_buffer(f"{name}_{key}") for key in _TENSORS)
        return Table(fields, counts, readers, blocks, reads, self._starts[name])


def _name(route: Route, part: int) -> str:
    return f"{'mixed' if route.mixed else 'plain'}_{route.group}_{part}"


def _rounding(samples: Tensor) -> float:
    # An aligned grid puts elements on the very edge of a spline's support, where sampling leaves rounding.
    return 64 * torch.finfo(samples.dtype).eps * float(samples.abs().max())


def _distinct(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Indices of the rows that differ, and for each row which of those it equals (-1: it is zero)."""
    tolerance = _rounding(rows)
    direction = torch.linspace(1.0, 2.0, rows.shape[1], dtype=rows.dtype).sqrt()
    # Equal rows have equal projections, so they are neighbours once sorted; the comparison itself is exact.
    shadows, order = torch.sort(rows @ direction)
    starts = torch.cat([torch.tensor([True]), shadows.diff() > 2 * rows.shape[1] * tolerance])
    labels = torch.empty(len(rows), dtype=torch.long)
    labels[order] = starts.cumsum(0) - 1
    # In the order of their first elements, so that one that reads neighbours reads neighbouring rows.
    first = torch.full((int(starts.sum()),), len(rows)).scatter_reduce(0, labels, torch.arange(len(rows)), "amin")
    first, place = first.sort()
    labels = place.argsort()[labels]
    if ((rows - rows[first[labels]]).abs() > tolerance).any():
        first = labels = torch.arange(len(rows))
    empty = (rows[first].abs() <= tolerance).all(1)
    if empty.all():
        return first[:1], torch.full_like(labels, -1)
    renumbered = torch.where(empty, -1, (~empty).cumsum(0) - 1)
    return first[~empty], renumbered[labels]


def _common_divisors(counts: list[int]) -> list[int]:
    return [g for g in range(1, max(max(counts) // 2, 1) + 1) if all(count % g == 0 for count in counts)]


def _table(incidence: Tensor, group: int) -> Table:
    union = incidence.view(-1, group, incidence.shape[-1]).any(1).int()
    fields, counts = _lines(union)
    readers, reads = _lines(union.T)
    places = torch.zeros_like(union, dtype=torch.long)
    places.scatter_(1, fields, torch.arange(fields.numel()).view(fields.shape))
    line = sorted(fields[0].tolist())
    together = len(fields) == 1 and line[-1] - line[0] == len(line) - 1
    return Table(fields, counts, readers, places.T.gather(1, readers), reads, line[0] if together else None)


def _lines(incidence: Tensor) -> tuple[Tensor, Tensor]:
    counts = incidence.sum(1)
    width = max(int(counts.max()), 1)
    return torch.argsort(incidence, dim=1, descending=True, stable=True)[:, :width].contiguous(), counts
