"""Whether a set of runs shows what the paper claims: a stated rule, and the numbers it was applied to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .claims import EVERY, MEAN, SAME, Claim, Pair
from .intervals import Interval, combined
from .seed_averages import DECIDING, LAST, Average, Variant, name_of

HOLDS, FAILS, CHANCE, MISSING = "holds", "does not hold", "within chance", "not enough runs"
MARGIN = 0.01
"""How far scores may differ that are said to be alike."""
_ROUNDING = 1e-9
Averages = Mapping[Variant, Average]

RULE = """\
An effect is a difference of mean scores, in percentage points, positive where the paper says better; in brackets its
95 % interval. With two seeds or more per network it is Welch's t interval over the seeds. A network with one seed has
no spread: its share p of n images counts with the variance p(1 − p)/n (the landmarks of an image count as one), an AUC
with that of Hanley and McNeil. Such an interval is about other images, not about another seed, and the verdict says
*one seed*. Intervals are not corrected for the number of claims: of twenty, chance alone decides one.

By one measure a claim *holds* if its interval lies above zero, *does not hold* if it lies below, and is *within
chance* if zero lies inside. A claim about every pair of networks has the verdict of its weakest pair; a claim about a
tendency that of the mean over its pairs; a claim that two networks score alike holds if the interval lies within ±1
point, and does not if it lies outside. There are up to four measures: each score at the epoch that was best on the
validation images, and the mean validation score of the last ten epochs, where no epoch was picked. The verdict is
*holds* or *does not hold* where all measures with an interval agree on it, and else *within chance*."""


@dataclass(frozen=True)
class Effect:
    """What one measure says of a claim."""

    interval: Interval | None
    """Of the mean over the pairs, or of the weakest pair; None where too little is known for one."""
    value: float
    outcome: str | None
    """None without an interval."""
    pair: Pair | None
    """The weakest pair, of a claim about every pair."""


@dataclass(frozen=True)
class Verdict:
    """What the runs say of a claim."""

    claim: Claim
    outcome: str
    effects: Mapping[str, Effect]
    """By measure."""
    pairs: int
    """How many of the claim's pairs there are runs of."""
    seeds: tuple[int, int]
    """The fewest and the most seeds of a network that was compared."""

    @property
    def remarks(self) -> list[str]:
        """What limits the verdict."""
        if self.outcome == MISSING:
            return []
        one = {(1, 1): ["one seed"]}.get(self.seeds, ["one seed of some"] if self.seeds[0] == 1 else [])
        total = len(self.claim.pairs)
        return one + ([f"{self.pairs} of {total} pairs"] if self.pairs < total else [])

    @property
    def words(self) -> str:
        """The outcome with what limits it."""
        return f"{self.outcome} ({'; '.join(self.remarks)})" if self.remarks else self.outcome


def judge(claim: Claim, averages: Averages) -> Verdict:
    """Decide a claim by the rule above."""
    there = [pair for pair in claim.pairs if pair[0] in averages and pair[1] in averages]
    if not there:
        return Verdict(claim, MISSING, {}, 0, (0, 0))
    compared = [averages[variant] for pair in there for variant in pair]
    shared = [name for name in measures(compared) if all(name in average.scores for average in compared)]
    effects = {name: _effect(claim.kind, there, averages, name) for name in shared}
    outcomes = {effect.outcome for effect in effects.values() if effect.outcome is not None}
    outcome = outcomes.pop() if len(outcomes) == 1 else CHANCE
    if claim.kind == EVERY and len(there) < len(claim.pairs) and outcome != FAILS:
        outcome = MISSING  # pairs without runs could still refute it
    seeds = [average.seeds for average in compared]
    return Verdict(claim, outcome, effects, len(there), (min(seeds), max(seeds)))


def measures(averages: Sequence[Average]) -> list[str]:
    """The scores by which these networks can be compared, those of the last ten epochs last."""
    names = (*DECIDING, *(LAST + name for name in DECIDING))
    return [name for name in names if any(name in average.scores for average in averages)]


def effect_of(pairs: Sequence[Pair], averages: Averages, measure: str) -> tuple[float, Interval | None]:
    """The mean of m₁ − m₂ over pairs, and its interval; a network in several pairs has one coefficient."""
    coefficients: dict[Variant, float] = defaultdict(float)
    for better, worse in pairs:
        coefficients[better] += 1 / len(pairs)
        coefficients[worse] -= 1 / len(pairs)
    value = sum(c * averages[variant].mean(measure) for variant, c in coefficients.items())
    estimates = [(c, averages[variant].estimate(measure)) for variant, c in coefficients.items()]
    known = [(c, estimate) for c, estimate in estimates if estimate is not None]
    return value, combined(known) if len(known) == len(estimates) else None


def missing(claim: Claim, task: str, averages: Averages) -> list[str]:
    """The names of networks that a claim would need runs of."""
    needed = [variant for pair in claim.pairs for variant in pair if variant not in averages]
    return [name_of(task, variant) for variant in dict.fromkeys(needed)]


def _effect(kind: str, pairs: Sequence[Pair], averages: Averages, measure: str) -> Effect:
    if kind == MEAN:
        value, interval = effect_of(pairs, averages, measure)
        return Effect(interval, value, _outcome(kind, interval), None)
    singles = [(*effect_of([pair], averages, measure), pair) for pair in pairs]
    weakest = min(singles, key=lambda one: (_RANK[_outcome(kind, one[1])], one[0]))
    value, interval, pair = weakest
    return Effect(interval, value, _outcome(kind, interval), pair if len(pairs) > 1 else None)


_RANK = {FAILS: 0, CHANCE: 1, None: 1, HOLDS: 2}


def _outcome(kind: str, interval: Interval | None) -> str | None:
    if interval is None:
        return None
    low, high = interval.low, interval.high
    if kind == SAME:
        return HOLDS if low > -MARGIN and high < MARGIN else FAILS if low > MARGIN or high < -MARGIN else CHANCE
    return HOLDS if low > _ROUNDING else FAILS if high < -_ROUNDING else CHANCE
