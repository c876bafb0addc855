"""What samples on H leave to do: rows that differ, who reads which, and of what rank they are in space."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor

from .._check import Size


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
    lines: Size = ()  # the fields, line after line, −1 for filling
    runs: float = 0.0  # of neighbouring fields in a line, on average


def fields_of(samples: Tensor) -> tuple[Tensor | None, Tensor, int]:
    """Return where the fields' rows stand, the label of each row (A, N_k), and how many fields there are."""
    elements, n_in, n_k = samples.shape
    # An aligned grid puts elements on the very edge of a spline's support, where sampling leaves rounding.
    tolerance = 64 * torch.finfo(samples.dtype).eps * float(samples.abs().max())
    used = samples.abs() > tolerance
    if int(used.sum(1).max()) <= 1:
        return None, torch.where(used.any(1), used.int().argmax(1), -1), n_in
    first, labels = _distinct(samples.transpose(1, 2).flatten(0, 1), tolerance)
    return first, labels.view(elements, n_k), len(first)


def _distinct(rows: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:
    """Return the places of rows that differ, and for each row which of those it equals (−1: it is zero)."""
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
    renumbered = torch.where(empty, -1, (~empty).cumsum(0) - 1)
    return first[~empty], renumbered[labels]


def table_of(labels: Tensor, fields: int) -> Table:
    """Return who reads whom, for the labels of each output group (groups, any number)."""
    reads = [sorted({label for label in line if label >= 0}) for line in labels.tolist()]
    width = max(1, *map(len, reads))
    read_by: list[list[tuple[int, int]]] = [[] for _ in range(fields)]
    lines = []
    for group, line in enumerate(reads):
        for place, field in enumerate(line):
            read_by[field].append((group, group * width + place))
        filling = islice((f for f in range(fields) if f not in line), width - len(line))
        lines.append([*line, *filling])
    reach = max(1, *map(len, read_by))
    padded = torch.tensor([[*pairs, *[(0, 0)] * (reach - len(pairs))] for pairs in read_by])  # (R, reach, 2)
    together = len(lines) == 1 and max(lines[0]) - min(lines[0]) == width - 1
    return Table(
        fields=torch.tensor(lines),
        counts=torch.tensor([len(line) for line in reads]),
        readers=padded[..., 0].contiguous(),
        blocks=padded[..., 1].contiguous(),
        reads=torch.tensor([len(pairs) for pairs in read_by]),
        start=min(lines[0]) if together else None,
        runs=sum(field - 1 not in line for line in reads for field in line) / len(reads),
        lines=tuple(field for line in reads for field in (*line, *[-1] * (width - len(line)))),
    )


def span_of(samples: Tensor) -> Tensor | None:
    """Return orthonormal columns Q (A, w, rank) that span the first window axis of samples (A, w, *W', N_x).

    To rounding; None where that saves nothing: no window, or full rank.
    """
    if samples.ndim < 3:
        return None
    vectors, values, _ = torch.linalg.svd(samples.flatten(2).double(), full_matrices=False)
    rounding = 64 * torch.finfo(samples.dtype).eps * values[:, :1]
    rank = int((values > rounding).sum(1).max())
    return vectors[..., :rank].contiguous() if 0 < rank < samples.shape[1] else None
