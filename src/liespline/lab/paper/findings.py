"""The paper's findings (section 4) as comparisons of networks, and whether a set of runs shows them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..tasks import find_task
from .seed_averages import Average, Study, Variant, name_of, variant_of

HOLDS, FAILS, MISSING = "holds", "does not hold", "not enough runs"
Pair = tuple[Variant, Variant]
"""The network that should be better, and the one it should beat."""
_ROUNDING = 1e-9

RULE = """\
How a finding of the paper is decided. A difference counts only if it has the paper's sign and exceeds the spread: for
means m₁ and m₂ over seeds with standard deviations s₁ and s₂, m₁ − m₂ > √(s₁² + s₂²). A tie, or a difference within
the spread, does not hold. A finding about *every* step or pair of networks needs them all: one that fails refutes it,
one that is missing leaves it open. A finding *on average* is decided by the mean difference over its pairs, against
the spread of that mean, and says how many of the paper's pairs were there. A network with one run has no spread, so
only the sign can count: such verdicts say *one run*, and chance alone could have decided them."""


@dataclass(frozen=True)
class Finding:
    """A sentence of the paper and the comparisons that decide it."""

    claim: str
    pairs: Sequence[Pair]
    every: bool
    """Whether each pair must show it; else the mean over the pairs that there are."""


@dataclass(frozen=True)
class Difference:
    """A difference of mean scores, and its standard deviation over seeds."""

    value: float
    spread: float

    @property
    def counts(self) -> bool:
        """Whether it has the right sign and exceeds the spread."""
        return self.value > self.spread + _ROUNDING


@dataclass(frozen=True)
class Verdict:
    """What the runs say of a finding."""

    finding: Finding
    outcome: str
    remarks: Sequence[str]
    overall: Difference | None
    """For a finding on average, over the pairs that there are."""
    differences: Mapping[Pair, Difference]
    """Of each pair that there are runs of."""

    @property
    def words(self) -> str:
        """The outcome with what limits it."""
        return f"{self.outcome} ({'; '.join(self.remarks)})" if self.remarks else self.outcome


def findings_of(study: Study) -> Sequence[Finding]:
    """What the paper says of a study's task; nothing for other tasks."""
    if study.task == "pcam":
        return _pcam_findings()
    return _celeba_findings(study.preset) if study.task == "celeba" else ()


def judge(finding: Finding, averages: Mapping[Variant, Average]) -> Verdict:
    """Decide a finding by the rule above."""
    there = [pair for pair in finding.pairs if pair[0] in averages and pair[1] in averages]
    differences = {pair: difference([pair], averages) for pair in there}
    overall = difference(there, averages) if there and not finding.every else None
    shown = [overall] if overall else list(differences.values())
    complete = len(there) == len(finding.pairs)
    if any(not part.counts for part in shown):
        outcome = FAILS
    elif not there or (finding.every and not complete):
        outcome = MISSING
    else:
        outcome = HOLDS
    remarks = [] if outcome == MISSING else _one_run(there, averages)
    if outcome != MISSING and not finding.every and not complete:
        remarks.append(f"{len(there)} of {len(finding.pairs)} pairs")
    return Verdict(finding, outcome, remarks, overall, differences)


def difference(pairs: Sequence[Pair], averages: Mapping[Variant, Average]) -> Difference:
    """The mean of m₁ − m₂ over pairs, with spread √Σ(cᵢsᵢ)²: a network in several pairs has one coefficient cᵢ."""
    coefficients: dict[Variant, float] = defaultdict(float)
    for better, worse in pairs:
        coefficients[better] += 1 / len(pairs)
        coefficients[worse] -= 1 / len(pairs)
    value = sum(c * averages[variant].mean() for variant, c in coefficients.items())
    spread = math.hypot(*(c * (averages[variant].spread() or 0.0) for variant, c in coefficients.items()))
    return Difference(value, spread)


def missing(verdict: Verdict, task: str, averages: Mapping[Variant, Average]) -> list[str]:
    """The names of networks that a finding would need runs of."""
    needed = [variant for pair in verdict.finding.pairs for variant in pair if variant not in averages]
    return [name_of(task, variant) for variant in dict.fromkeys(needed)]


def _one_run(pairs: Sequence[Pair], averages: Mapping[Variant, Average]) -> list[str]:
    single = {averages[variant].seeds == 1 for pair in pairs for variant in pair}
    return ["one run each" if single == {True} else "one run of some"] if True in single else []


def _pcam_findings() -> Sequence[Finding]:
    dense, atrous, local = (_network("pcam", kernel) for kernel in ("dense", "atrous", "local"))
    upright = _network("pcam", "dense", augment="no-rot90")
    coarse = ((8, 4), (12, 4), (12, 8), (16, 4), (16, 8), (16, 12))
    return (
        Finding(
            "Finer N_h helps up to 12 (dense, N_k = N_h: every step 1 → 4 → 8 → 12)",
            [(dense(b, b), dense(a, a)) for a, b in pairwise((1, 4, 8, 12))],
            every=True,
        ),
        Finding("Beyond 12 it degrades (dense: 12 over 16)", [(dense(12, 12), dense(16, 16))], every=True),
        Finding(
            "N_h > N_k helps at fixed N_k (dense, on average)", [(dense(h, k), dense(k, k)) for h, k in coarse], False
        ),
        Finding(
            "Atrous kernels beat dense ones (same N_h and N_k, on average)",
            [(atrous(h, k), dense(h, k)) for h, k in coarse],
            every=False,
        ),
        Finding(
            "Local kernels beat dense ones at low N_k (3 and 5 local over 4 dense, same N_h, on average)",
            [(local(h, k), dense(h, 4)) for h in (8, 12, 16) for k in (3, 5)],
            every=False,
        ),
        Finding("Quarter turns help the 2-D network (with over without)", [(dense(1, 1), upright(1, 1))], every=True),
        Finding(
            "SE(2) without quarter turns beats 2-D with them (N_h = N_k = 12)",
            [(upright(12, 12), dense(1, 1))],
            every=True,
        ),
    )


def _celeba_findings(preset: str) -> Sequence[Finding]:
    dense, local = _network("celeba", "dense"), _network("celeba", "local")
    # In the released scripts "dense" is local with N_k = N_h: at N_h = 3 both names are the same network.
    compared = [n for n in range(2, 6) if preset == "paper" or n != 3]
    plain = [[_plain(2 ** (i / 2), augment) for i in range(5)] for augment in ("none", "zoom")]
    at_two = plain[0][2]
    return (
        Finding(
            "Local N_k = 3 beats dense (same N_h, on average)", [(local(n, 3), dense(n, n)) for n in compared], False
        ),
        Finding(
            "Local N_k = 3 beats N_k = 1 (same N_h, on average)",
            [(local(n, 3), local(n, 1)) for n in range(2, 6)],
            every=False,
        ),
        Finding(
            "Wide scale ranges (local N_k = 3, N_h = 5) beat every 2-D network, with zoom or without",
            [(local(5, 3), one) for one in (*plain[0], *plain[1])],
            every=True,
        ),
        Finding(
            "The best single scale of the 2-D network is 2 (without zoom, over every other)",
            [(at_two, one) for one in plain[0] if one != at_two],
            every=True,
        ),
    )


def _network(task: str, kernel: str, **training: str) -> Callable[[int, int], Variant]:
    base = find_task(task).defaults
    return lambda n_h, n_k: variant_of(base.updated(kernel=kernel, n_h=n_h, n_k=n_k, **training))


def _plain(scale: float, augment: str) -> Variant:
    return variant_of(find_task("celeba").defaults.updated(group="none", scale=scale, augment=augment))
