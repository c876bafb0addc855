"""What a layer's samples allow, found once: which fields on H each output element needs."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

Size = tuple[int, ...]


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

    h_samples (A, 1, N_in, N_k); sizes are the A windows. A `part` is the elements that share a window.
    Samples that still train may move anywhere, so for them every row counts as distinct and none as zero.
    """

    rows: Tensor  # (R,) the distinct rows among the A·N_k rows of h_samples
    chosen: Tensor  # (A, R, N_k) one where row r is element a's j-th
    order: Tensor  # (A,) where each element stands among the parts, one after the other

    def __init__(self, h_samples: Tensor, sizes: tuple[Size, ...]) -> None:
        super().__init__()
        elements, _, n_in, n_k = h_samples.shape
        samples = h_samples.detach()[:, 0]
        self.windows = tuple(sorted(set(sizes)))
        members = [torch.tensor([a for a, s in enumerate(sizes) if s == w]) for w in self.windows]
        if h_samples.requires_grad:
            rows, labels = torch.arange(elements * n_k), torch.arange(elements * n_k)
            used = torch.ones(elements, n_in, dtype=torch.bool)
        else:
            rows, labels = _distinct(samples.transpose(1, 2).flatten(0, 1))
            used = (samples.abs() > _rounding(samples)).any(-1).cpu()
        chosen = labels.view(elements, 1, n_k) == torch.arange(len(rows))[:, None]
        self.mixing = float(
            (samples.abs() > _rounding(samples)).sum(1).float().mean()
        )  # terms a mixed field has
        self.register_buffer("rows", rows.to(samples.device), persistent=False)
        self.register_buffer("chosen", chosen.to(samples.device), persistent=False)
        for p, member in enumerate(members):
            self.register_buffer(f"members_{p}", member.to(samples.device), persistent=False)
        order = torch.argsort(torch.cat(members))
        self.in_order = bool((order == torch.arange(elements)).all())
        self.register_buffer("order", order.to(samples.device), persistent=False)
        routes = []
        for mixed, incidence in ((False, used), (True, chosen.any(-1))):
            for group in _common_divisors([len(member) for member in members]):
                tables = [_table(incidence[member], group) for member in members]
                for p, table in enumerate(tables):
                    name = f"table_{int(mixed)}_{group}_{p}"
                    self.register_buffer(name, table.to(samples.device), persistent=False)
                routes.append(Route(mixed, group, tuple(table.shape[1] for table in tables)))
        self.routes = tuple(routes)

    def members(self, part: int) -> Tensor:
        """The elements of a part, as an index (A_p,)."""
        return self.get_buffer(f"members_{part}")

    def table(self, route: Route, part: int) -> Tensor:
        """The fields each group of a part reads: (A_p / group, width), distinct in every line."""
        return self.get_buffer(f"table_{int(route.mixed)}_{route.group}_{part}")


def _rounding(samples: Tensor) -> float:
    # An aligned grid puts elements on the very edge of a spline's support, where sampling leaves rounding.
    return 64 * torch.finfo(samples.dtype).eps * float(samples.abs().max())


def _distinct(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Indices of the rows that differ, and for each row which of those it equals (-1: it is zero)."""
    tolerance = _rounding(rows)
    kept: list[int] = []
    labels = []
    rows = rows.cpu()
    for index, row in enumerate(rows):
        gaps = (rows[kept] - row).abs().amax(-1)
        if row.abs().amax() <= tolerance:
            labels.append(-1)
        elif kept and gaps.min() <= tolerance:
            labels.append(int(gaps.argmin()))
        else:
            labels.append(len(kept))
            kept.append(index)
    return torch.tensor(kept or [0]), torch.tensor(labels)


def _common_divisors(counts: list[int]) -> list[int]:
    return [g for g in range(1, max(max(counts) // 2, 1) + 1) if all(count % g == 0 for count in counts)]


def _table(incidence: Tensor, group: int) -> Tensor:
    # Lines shorter than the widest are filled with fields whose coefficient is zero, each at most once.
    union = incidence.view(-1, group, incidence.shape[-1]).any(1).int()
    width = max(int(union.sum(1).max()), 1)
    return torch.argsort(union, dim=1, descending=True, stable=True)[:, :width]
