"""What section 4 of the paper says it found, each sentence as comparisons of networks, and the verdict of our runs.

docs/reproduction.md has the rule in words: an effect is a difference of means over seeds and images; a claim is
reproduced by a measure if the interval lies above zero, and altogether if all measures with an interval agree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from studies.celeba import PAPER_SCALES, RELEASED_SCALES
from studies.intervals import Interval, combined
from studies.networks import LAST_TEN, NAMES, Network
from studies.paired import contrast
from studies.pcam import COARSE

Pair = tuple[str, str]
"""The network that should be better, and the one it should beat, as `names.name_of` has them."""
EVERY, MEAN, SAME = "every", "mean", "same"
"""Each pair must show it; their mean must; or the two of each pair must score alike."""
HOLDS, FAILS, CHANCE, MISSING = "reproduced", "not reproduced", "undecided", "not enough runs"
DECIDING = tuple(NAMES[key] for key in ("success", "accuracy", "auc"))
"""The measures by which claims are decided, and by the means of the same over the last ten epochs."""
MARGIN = 0.01
"""How far scores may differ that are said to be alike."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and the comparisons that decide it."""

    words: str
    pairs: Sequence[Pair]
    kind: str


@dataclass(frozen=True)
class Effect:
    """What one measure says of a claim: the mean over the pairs, or the weakest pair."""

    value: float
    interval: Interval | None
    outcome: str | None
    """None without an interval."""
    pair: Pair | None
    """The weakest of several pairs, of a claim about every pair."""


@dataclass(frozen=True)
class Verdict:
    """What the runs say of a claim."""

    claim: Claim
    there: Sequence[Pair]
    """The claim's pairs that there are runs of."""
    outcome: str
    effects: Mapping[str, Effect]
    """By measure."""
    seeds: tuple[int, int]
    """The fewest and the most seeds of a network that was compared."""

    @property
    def visible(self) -> float | None:
        """The smallest effect that these runs could have shown, by the first measure: half of its interval."""
        known = [effect.interval.half for effect in self.effects.values() if effect.interval]
        return known[0] if known else None

    @property
    def words(self) -> str:
        """The outcome with what limits it."""
        if self.outcome == MISSING:
            return MISSING
        remarks = {(1, 1): ["one seed"]}.get(self.seeds, ["one seed of some"] if self.seeds[0] == 1 else [])
        some = len(self.there) < len(self.claim.pairs)
        remarks = remarks + ([f"{len(self.there)} of {len(self.claim.pairs)} pairs"] if some else [])
        return self.outcome + (f" ({'; '.join(remarks)})" if remarks else "")


def claims_of(task: str, preset: str = "paper") -> Sequence[Claim]:
    """What the paper says of a task; nothing of other tasks than its own."""
    return _pcam() if task == "pcam" else _celeba(preset) if task == "celeba" else ()


def judge(claim: Claim, networks: Mapping[str, Network]) -> Verdict:
    """Decide a claim by the rule."""
    there = [pair for pair in claim.pairs if networks.keys() >= set(pair)]
    if not there:
        return Verdict(claim, there, MISSING, {}, (0, 0))
    compared = [networks[name] for pair in there for name in pair]
    shared = [name for name in measures(compared) if all(name in network.values for network in compared)]
    effects = {name: _effect(claim.kind, there, networks, name) for name in shared}
    outcomes = {effect.outcome for effect in effects.values() if effect.outcome is not None}
    outcome = outcomes.pop() if len(outcomes) == 1 else CHANCE
    if claim.kind == EVERY and len(there) < len(claim.pairs) and outcome != FAILS:
        outcome = MISSING  # pairs without runs could still refute it
    seeds = [len(network.runs) for network in compared]
    return Verdict(claim, there, outcome, effects, (min(seeds), max(seeds)))


def measures(networks: Iterable[Network]) -> list[str]:
    """The measures by which these networks can be compared."""
    there = {name for network in networks for name in network.values}
    return [name for name in (*DECIDING, *(one + LAST_TEN for one in DECIDING)) if name in there]


def effect_of(pairs: Sequence[Pair], networks: Mapping[str, Network], measure: str) -> tuple[float, Interval | None]:
    """The mean of m₁ − m₂ over pairs, and its interval; a network in several pairs has one coefficient."""
    coefficients: dict[str, float] = defaultdict(float)
    for better, worse in pairs:
        coefficients[better] += 1 / len(pairs)
        coefficients[worse] -= 1 / len(pairs)
    terms = [(c, networks[name].runs) for name, c in coefficients.items()]
    if (drawn := contrast(terms, measure)) is not None:
        return drawn.interval.value, drawn.interval
    value = sum(c * networks[name].mean(measure) for name, c in coefficients.items())
    estimates = [(c, networks[name].estimate(measure)) for name, c in coefficients.items()]
    known = [(c, estimate) for c, estimate in estimates if estimate is not None]
    return value, combined(known) if len(known) == len(estimates) else None


def _effect(kind: str, pairs: Sequence[Pair], networks: Mapping[str, Network], measure: str) -> Effect:
    if kind == MEAN:
        value, interval = effect_of(pairs, networks, measure)
        return Effect(value, interval, _outcome(kind, interval), None)
    rank = {FAILS: 0, CHANCE: 1, None: 1, HOLDS: 2}
    singles = [(*effect_of([pair], networks, measure), pair) for pair in pairs]
    value, interval, pair = min(singles, key=lambda one: (rank[_outcome(kind, one[1])], one[0]))
    return Effect(value, interval, _outcome(kind, interval), pair if len(pairs) > 1 else None)


def _outcome(kind: str, interval: Interval | None) -> str | None:
    if interval is None:
        return None
    low, high = interval.low, interval.high
    if kind == SAME:
        return HOLDS if low > -MARGIN and high < MARGIN else FAILS if low > MARGIN or high < -MARGIN else CHANCE
    return HOLDS if low > _ROUNDING else FAILS if high < -_ROUNDING else CHANCE


def _pcam() -> Sequence[Claim]:
    def dense(h: int, k: int) -> str:
        return "2-D" if h == 1 else f"dense ({h}, {k})"

    ours, upright = dense(12, 12), f"{dense(12, 12)}, no-rot90"
    steps = [(dense(b, b), dense(a, a)) for a, b in pairwise((1, 4, 8, 12))]
    few = [(f"local ({h}, {k})", dense(h, 4)) for h in (8, 12, 16) for k in (3, 5)]
    return (
        Claim("A finer N_h helps up to 12 (dense, N_k = N_h, every step 1 → 4 → 8 → 12)", steps, EVERY),
        Claim("Beyond 12 it degrades slightly (dense, 12 over 16)", [(ours, dense(16, 16))], EVERY),
        Claim("N_h > N_k helps at fixed N_k (dense)", [(dense(h, k), dense(k, k)) for h, k in COARSE], MEAN),
        Claim("Atrous kernels beat dense ones", [(f"atrous ({h}, {k})", dense(h, k)) for h, k in COARSE], MEAN),
        Claim("Local kernels beat dense ones at low N_k (3 and 5 local over 4 dense)", few, MEAN),
        Claim("Quarter turns are crucial for 2-D (with over without)", [("2-D", "2-D, no-rot90")], EVERY),
        Claim("Quarter turns hardly affect SE(2) (12, 12)", [(ours, upright)], SAME),
        Claim("SE(2) (12, 12) without quarter turns beats 2-D with them", [(upright, "2-D")], EVERY),
    )


def _celeba(preset: str) -> Sequence[Claim]:
    def pairs(one: str, others: Sequence[str]) -> list[Pair]:
        return [(one, other) for other in others if other != one]

    plain = [f"2-D at scale {round(s, 2):g}" for s in (PAPER_SCALES if preset == "paper" else RELEASED_SCALES)]
    zoomed = [f"{name}, zoom" for name in plain]
    # In the released scripts "dense" is local with N_k = N_h: at N_h = 3 both names are the same network.
    compared = [n for n in range(2, 6) if preset == "paper" or n != 3]
    wide = {f"local N_k = {k}": [f"local ({n}, {k})" for n in (4, 5)] for k in (3, 1)}
    wide["dense"] = ["dense (4, 4)", "dense (5, 5)"]
    best, beats = "local (5, 3)", "Wide ranges beat every 2-D network"
    return (
        Claim("The best single scale of 2-D is 2", pairs(plain[2], plain), EVERY),
        *(
            Claim(
                f"{beats}: {kernel}, four and five scales", [pair for one in each for pair in pairs(one, plain)], EVERY
            )
            for kernel, each in wide.items()
        ),
        Claim("Not by its larger receptive field: local (5, 3) beats 2-D at scale 4", [(best, plain[4])], EVERY),
        Claim("Local N_k = 3 beats dense", [(f"local ({n}, 3)", f"dense ({n}, {n})") for n in compared], MEAN),
        Claim("Local N_k = 3 beats N_k = 1", [(f"local ({n}, 3)", f"local ({n}, 1)") for n in range(2, 6)], MEAN),
        Claim("Zoom in training helps 2-D", list(zip(zoomed, plain, strict=True)), MEAN),
        Claim("2-D with zoom does not reach local (5, 3)", pairs(best, zoomed), EVERY),
    )
