"""What section 4 of the paper says it found, each sentence as comparisons of networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..tasks import find_task
from .seed_averages import Study
from .variants import Variant, variant_of

SCALES = {"paper": tuple(2 ** (i / 2) for i in range(5)), "released": (1.0, 1.6, 2.0, 2.8, 4.0)}
"""The fixed scales of the five 2-D networks, by preset: studies.paper.celeba.SCALES."""
Pair = tuple[Variant, Variant]
"""The network that should be better, and the one it should beat."""
EVERY, MEAN, SAME = "every", "mean", "same"
"""Each pair must show it; their mean must; or the two of each pair must score alike."""


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and the comparisons that decide it."""

    words: str
    pairs: Sequence[Pair]
    kind: str


def claims_of(study: Study) -> Sequence[Claim]:
    """What the paper says of a study's task; nothing for other tasks."""
    if study.task == "pcam":
        return _pcam()
    return _celeba(study.preset) if study.task == "celeba" else ()


def _pcam() -> Sequence[Claim]:
    dense, atrous, local = (_network("pcam", kernel) for kernel in ("dense", "atrous", "local"))
    upright = _network("pcam", "dense", augment="no-rot90")
    coarse = ((8, 4), (12, 4), (12, 8), (16, 4), (16, 8), (16, 12))
    steps = [(dense(b, b), dense(a, a)) for a, b in pairwise((1, 4, 8, 12))]
    return (
        Claim("A finer N_h helps up to 12 (dense, N_k = N_h, every step 1 → 4 → 8 → 12)", steps, EVERY),
        Claim("Beyond 12 it degrades slightly (dense, 12 over 16)", [(dense(12, 12), dense(16, 16))], EVERY),
        Claim("N_h > N_k helps at fixed N_k (dense)", [(dense(h, k), dense(k, k)) for h, k in coarse], MEAN),
        Claim("Atrous kernels beat dense ones", [(atrous(h, k), dense(h, k)) for h, k in coarse], MEAN),
        Claim(
            "Local kernels beat dense ones at low N_k (3 and 5 local over 4 dense)",
            [(local(h, k), dense(h, 4)) for h in (8, 12, 16) for k in (3, 5)],
            MEAN,
        ),
        Claim("Quarter turns are crucial for 2-D (with over without)", [(dense(1, 1), upright(1, 1))], EVERY),
        Claim("Quarter turns hardly affect SE(2) (12, 12)", [(dense(12, 12), upright(12, 12))], SAME),
        Claim("SE(2) (12, 12) without quarter turns beats 2-D with them", [(upright(12, 12), dense(1, 1))], EVERY),
    )


def _celeba(preset: str) -> Sequence[Claim]:
    dense, local = _network("celeba", "dense"), _network("celeba", "local")
    # In the released scripts "dense" is local with N_k = N_h: at N_h = 3 both names are the same network.
    compared = [n for n in range(2, 6) if preset == "paper" or n != 3]
    plain, zoomed = ([_plain(scale, augment) for scale in SCALES[preset]] for augment in ("none", "zoom"))
    at_two = plain[2]
    wide = {"local N_k = 3": (local(4, 3), local(5, 3)), "local N_k = 1": (local(4, 1), local(5, 1))}
    wide["dense"] = (dense(4, 4), dense(5, 5))
    return (
        Claim("The best single scale of 2-D is 2", [(at_two, one) for one in plain if one != at_two], EVERY),
        *(
            Claim(
                f"Wide ranges beat every 2-D network: {kernel}, four and five scales",
                [(one, other) for one in networks for other in plain],
                EVERY,
            )
            for kernel, networks in wide.items()
        ),
        Claim("Not by its larger receptive field: local (5, 3) beats 2-D at scale 4", [(local(5, 3), plain[4])], EVERY),
        Claim("Local N_k = 3 beats dense", [(local(n, 3), dense(n, n)) for n in compared], MEAN),
        Claim("Local N_k = 3 beats N_k = 1", [(local(n, 3), local(n, 1)) for n in range(2, 6)], MEAN),
        Claim("Zoom in training helps 2-D", list(zip(zoomed, plain, strict=True)), MEAN),
        Claim("2-D with zoom does not reach local (5, 3)", [(local(5, 3), one) for one in zoomed], EVERY),
    )


def _network(task: str, kernel: str, **training: str) -> Callable[[int, int], Variant]:
    base = find_task(task).defaults
    return lambda n_h, n_k: variant_of(base.updated(kernel=kernel, n_h=n_h, n_k=n_k, **training))


def _plain(scale: float, augment: str) -> Variant:
    return variant_of(find_task("celeba").defaults.updated(group="none", scale=scale, augment=augment))
