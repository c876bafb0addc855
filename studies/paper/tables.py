"""The paper's networks and claims in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from studies.networks import LAST_TEN, NAMES, Line, Network, task_of
from studies.paper.claims import CHANCE, Effect, Pair, Verdict, claims_of, effect_of, judge, measures
from studies.tables import SPLITS, points, table

AUGMENT = {"pcam": "rot90", "celeba": "none"}
"""The paper's own augmentations."""


def name_of(line: Line) -> str:
    """A network in words: `dense (12, 4)` has N_h = 12 and N_k = 4; what is not the paper's own follows."""
    task, net = task_of(line), line["config"]["network"]
    n_h, n_k = net["elements"], net.get("basis")
    if net["group"] == "none" or (n_h == 1 and n_k in (None, 1)):
        name = "2-D" if task in AUGMENT else "no group"
        name += f" at scale {round(net['scale'], 2):g}" if task == "celeba" else ""
    else:
        n_k = n_k or (n_h if task in AUGMENT or net["kernel"] in ("dense", "atrous") else None)
        name = f"{net['kernel']} ({', '.join(str(n) for n in (n_h, n_k) if n)})"
    window, augment = net["kernel_size"], line["config"]["training"]["augment"]
    name += f", kernel_size {window}" if task in AUGMENT and window != 5 else ""
    return name + (f", {augment}" if augment != AUGMENT.get(task, augment) else "")


def by_name(networks: Mapping[str, Network]) -> dict[str, Network]:
    """The networks of a study under the paper's names, by N_h, kernel and N_k."""

    def place(network: Network) -> tuple[int, str, int, float]:
        net = network.runs[0]["config"]["network"]
        return int(net["elements"]), net["kernel"], int(net.get("basis") or 0), net.get("scale", 1)

    ordered = sorted(networks.values(), key=place)
    return {name: replace(one, name=name) for one in ordered for name in (name_of(one.runs[0]),)}


def scores_table(networks: Mapping[str, Network]) -> list[str]:
    """One line per network; ± is a 95 % interval."""
    there = [network.values for network in networks.values()]
    names = [*NAMES.values(), *(name + LAST_TEN for name in NAMES.values())]
    names = [name for name in names if any(name in values for values in there)]
    head = ["network (N_h, N_k)", "seeds", *(f"{name}, %" for name in names)]
    rows = []
    for network in networks.values():
        first, speeds = network.first, [run["training"]["images_per_second"] for run in network.runs]
        made = f"{'synthetic' if first['synthetic'] else 'not synthetic'}, {SPLITS[first['split']]} split"
        cells = [network.cell(name) if name in network.values else "" for name in names]
        cost = [f"{first['parameters']:,}", f"{statistics.fmean(speeds):,.0f}", network.minutes]
        rows.append([network.name + network.mark, str(len(network.runs)), *cells, *cost, made])
    return table([*head, "parameters", "training images/s", "minutes per run", "data"], rows)


def claims_table(networks: Mapping[str, Network]) -> list[str]:
    """One line per claim with its verdict, seeds and effects; then every pair behind them."""
    first = next(iter(networks.values())).runs[0]
    verdicts = [judge(claim, networks) for claim in claims_of(task_of(first), first["config"].get("preset", "paper"))]
    if not verdicts:
        return []
    names = measures(networks.values())
    rows = [
        [
            v.claim.words + _mark(v.there, networks),
            v.words,
            _visible(v),
            _seeds(v),
            *(_effect(v.effects.get(n)) for n in names),
        ]
        for v in verdicts
    ]
    lines = ["", "What the paper claims, and what these runs say:", ""]
    lines += table(["claim", "verdict", "smallest effect seen", "seeds", *names], rows)
    every = dict.fromkeys(pair for v in verdicts for pair in v.claim.pairs)
    if absent := dict.fromkeys(name for pair in every for name in pair if name not in networks):
        lines += ["", "No runs of " + ", ".join(f"`{name}`" for name in absent) + "."]
    there = [pair for pair in every if networks.keys() >= set(pair)]
    each = [
        [" − ".join(pair) + _mark([pair], networks), *(_pair(pair, networks, name) for name in names)] for pair in there
    ]
    return [*lines, "", "Each pair:", "", *table(["difference", *names], each)] if each else lines


def _mark(pairs: Sequence[Pair], networks: Mapping[str, Network]) -> str:
    return max((networks[name].mark for pair in pairs for name in pair), default="")


def _effect(effect: Effect | None) -> str:
    if effect is None:
        return ""
    text = points(effect.value, effect.interval)
    text = text if effect.outcome in (None, CHANCE) else f"**{text}**"  # zero, or the margin, lies outside
    return text + (f" ({' − '.join(effect.pair)})" if effect.pair else "")


def _pair(pair: Pair, networks: Mapping[str, Network], measure: str) -> str:
    if any(measure not in networks[name].values for name in pair):
        return ""
    return points(*effect_of([pair], networks, measure))


def _visible(verdict: Verdict) -> str:
    return "" if verdict.visible is None else f"{100 * verdict.visible:.2f}"


def _seeds(verdict: Verdict) -> str:
    low, high = verdict.seeds
    return str(low) if low == high else f"{low} to {high}"
