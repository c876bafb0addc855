"""Verdicts on the paper's claims, on made-up runs whose means and spreads are known beforehand."""

from dataclasses import dataclass, replace

import pytest
from scipy import stats

from liespline.lab.settings import Config
from made_up_lines import line, network, study
from studies.celeba import PAPER as CELEBA_STUDY
from studies.networks import LAST_TEN
from studies.paper import claims as rule
from studies.paper.tables import by_name, claims_table, name_of, scores_table
from studies.pcam import PAPER as PCAM_STUDY

# Scores by the studies' own names for their networks, made so that every claim of the paper holds.
PCAM = {"dense-1-1": 0.80, "dense-4-4": 0.82, "dense-8-8": 0.84, "dense-12-12": 0.86, "dense-16-16": 0.85}
COARSE = {"8-4": 0.83, "12-4": 0.845, "12-8": 0.855, "16-4": 0.85, "16-8": 0.86, "16-12": 0.87}
PCAM |= {f"dense-{name}": value for name, value in COARSE.items()}
PCAM |= {f"atrous-{name}": value + 0.01 for name, value in COARSE.items()}
PCAM |= {f"local-{n_h}-{n_k}": COARSE[f"{n_h}-4"] + 0.01 for n_h in (8, 12, 16) for n_k in (3, 5)}
PCAM |= {"unturned-1-1": 0.77, "unturned-12-12": 0.855}
CELEBA = {f"plain-{i}": value for i, value in enumerate((0.70, 0.72, 0.74, 0.73, 0.71), 1)}
CELEBA |= {f"{name}-zoom": value + 0.005 for name, value in CELEBA.items()}
for n, base in enumerate((0.75, 0.76, 0.77, 0.78), 2):
    CELEBA |= {f"dense-{n}-{n}": base, f"local-{n}-3": base + 0.01, f"local-{n}-1": base - 0.01}
SCORES = {"pcam": PCAM, "celeba": CELEBA}
CONFIGS = {"pcam": PCAM_STUDY.configs({}), "celeba": CELEBA_STUDY.configs({})}


@dataclass(frozen=True)
class Case:
    """A claim, by task and number, and what becomes of it."""

    task: str
    number: int
    words: str
    refuted: dict[str, float]
    tied: dict[str, float]
    """For averages: what all other pairs win is what one loses."""
    needed: tuple[str, ...]
    """How the names of networks begin that it cannot do without."""


SAME, ALONE = ("dense-4-4", "dense-8-8", "dense-12-12"), tuple(f"plain-{i}" for i in range(1, 6))
SINGLE = tuple(f"local-{n}-1" for n in range(2, 6))
CASES = [
    Case("pcam", 0, "up to 12", {"dense-8-8": 0.815}, {"dense-8-8": 0.82}, ("dense-8-8",)),
    Case("pcam", 1, "Beyond 12", {"dense-16-16": 0.87}, {"dense-16-16": 0.86}, ("dense-16-16",)),
    Case("pcam", 2, "fixed N_k", {"dense-4-4": 0.99}, {"dense-4-4": 0.82 + 0.11 / 3}, SAME),
    Case("pcam", 3, "Atrous", {"atrous-8-4": 0.70}, {"atrous-8-4": 0.78}, ("atrous-",)),
    Case("pcam", 4, "Local", {"local-8-3": 0.70}, {"local-8-3": 0.78}, ("local-",)),
    Case("pcam", 5, "crucial for 2-D", {"unturned-1-1": 0.81}, {"unturned-1-1": 0.80}, ("unturned-1-1",)),
    Case("pcam", 6, "hardly affect", {"unturned-12-12": 0.83}, {"unturned-12-12": 0.85}, ("dense-12-12",)),
    Case("pcam", 7, "beats 2-D with them", {"unturned-12-12": 0.79}, {"unturned-12-12": 0.80}, ("dense-1-1",)),
    Case("celeba", 0, "single scale", {"plain-4": 0.75}, {"plain-4": 0.74}, ("plain-5",)),
    Case("celeba", 1, "local N_k = 3, four", {"plain-3": 0.80}, {"plain-3": 0.78}, ("plain-1",)),
    Case("celeba", 2, "local N_k = 1, four", {"plain-3": 0.80}, {"plain-3": 0.76}, ("local-4-1",)),
    Case("celeba", 3, "dense, four", {"dense-5-5": 0.70}, {"dense-5-5": 0.74}, ("dense-5-5",)),
    Case("celeba", 4, "receptive field", {"plain-5": 0.80}, {"plain-5": 0.79}, ("local-5-3",)),
    Case("celeba", 5, "beats dense", {"local-2-3": 0.60}, {"local-2-3": 0.72}, ("dense-",)),
    Case("celeba", 6, "beats N_k = 1", {"local-2-3": 0.60}, {"local-2-3": 0.68}, SINGLE),
    Case("celeba", 7, "Zoom in training", {"plain-1-zoom": 0.60}, {"plain-1-zoom": 0.68}, ALONE),
    Case("celeba", 8, "does not reach", {"plain-3-zoom": 0.80}, {"plain-3-zoom": 0.79}, ("plain-1-zoom",)),
]
every_claim = pytest.mark.parametrize("case", CASES, ids=[f"{case.task}-{case.number}" for case in CASES])


def named(task: str, name: str, config: Config | None = None) -> str:
    """The paper's name of a network of its study."""
    config = config or CONFIGS[task][name]
    net = {
        key: getattr(config.network, key) for key in ("group", "elements", "basis", "kernel", "kernel_size", "scale")
    }
    config_of = {"task": f"somewhere:{task.upper()}", "network": net, "training": {"augment": config.training.augment}}
    return name_of({"config": config_of})


def networks(task, scores, step=0.001, seeds=3, images=10_000_000):
    """Networks of these mean scores and, over three seeds, of standard deviation `step`, on images without end."""
    key, found = "success" if task == "celeba" else "accuracy", {}
    for name, mean in scores.items():
        values = [mean + step * (seed - (seeds - 1) / 2) for seed in range(seeds)]
        runs = [line(name, seed, {key: value}, results={"images": images}) for seed, value in enumerate(values)]
        found[named(task, name)] = replace(network(name, [0.0]), runs=runs)
    return found


def verdict(case, scores, **how):
    return rule.judge(rule.claims_of(case.task)[case.number], networks(case.task, scores, **how))


@every_claim
def test_each_verdict(case):
    scores = SCORES[case.task]
    lacking = {name: value for name, value in scores.items() if not name.startswith(case.needed)}
    assert case.words in rule.claims_of(case.task)[case.number].words
    assert verdict(case, scores).words == "reproduced"
    assert verdict(case, scores | case.refuted).words == "not reproduced"
    assert verdict(case, scores | case.tied).words == "undecided"
    assert verdict(case, scores, step=0.1).words == "undecided"
    assert verdict(case, lacking).words == "not enough runs"


@every_claim
def test_one_seed_is_said_and_counts_with_its_images(case):
    """Ten million images leave no doubt about other images, thirty do."""
    for scores, outcome in (({}, "reproduced"), (case.refuted, "not reproduced"), (case.tied, "undecided")):
        found = verdict(case, SCORES[case.task] | scores, seeds=1, images=10_000_000)
        assert found.words == f"{outcome} (one seed)"
    assert verdict(case, SCORES[case.task], seeds=1, images=30).words == "undecided (one seed)"


def test_no_claim_is_without_a_case_and_every_network_has_a_name_of_its_own():
    for task, configs in CONFIGS.items():
        assert [case.number for case in CASES if case.task == task] == list(range(len(rule.claims_of(task))))
        names = [named(task, name) for name in configs]
        assert len(set(names)) == len(names)
        asked = {name for claim in rule.claims_of(task) for pair in claim.pairs for name in pair}
        assert asked <= set(names)
    assert rule.claims_of("images") == ()


def test_an_interval_is_welchs_and_the_last_ten_epochs_must_agree():
    first, second = [0.86, 0.871, 0.866], [0.80, 0.83]
    endless = {"images": 10**15}
    there = {
        "dense (12, 12), no-rot90": network("a", first, results=endless),
        "2-D": network("b", second, results=endless),
    }
    found = rule.judge(rule.claims_of("pcam")[7], there)
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    interval = found.effects["accuracy"].interval
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert (found.seeds, found.words) == (
        (2, 3),
        "undecided",
    )  # with one degree of freedom, five points are not sure
    for last, words in ((0.85, "reproduced"), (0.8, "undecided"), (0.7, "undecided")):
        runs = {"dense (12, 12), no-rot90": (0.9, last), "2-D": (0.8, 0.8)}
        there = {name: network(name, [0.0]) for name in runs}
        for name, (score, mean) in runs.items():
            valid = [{"valid": {"accuracy": {"last_10": mean + 0.001 * seed}}} for seed in range(3)]
            each = [line(name, s, {"accuracy": score + 0.001 * s}, training=one) for s, one in enumerate(valid)]
            there[name] = replace(there[name], runs=each)
        found = rule.judge(rule.claims_of("pcam")[7], there)
        assert found.words == words
        assert found.effects["accuracy" + LAST_TEN].value == pytest.approx(last - 0.8)


def test_an_average_counts_a_shared_network_once():
    """Six pairs share (4, 4) three times and (8, 8) twice: coefficients 3/6, 2/6, 1/6 and six of 1/6."""
    effect = verdict(CASES[2], PCAM, step=0.003, images=10**12).effects["accuracy"]
    parts = [0.003**2 / 3 * (c / 6) ** 2 for c in (3, 2, 1, 1, 1, 1, 1, 1, 1)]
    freedom = sum(parts) ** 2 / sum(part**2 / 2 for part in parts)
    half = stats.t.ppf(0.975, freedom) * sum(parts) ** 0.5
    assert effect.value == pytest.approx(0.11 / 6)
    assert effect.interval.high - effect.value == pytest.approx(half)
    assert effect.value - effect.interval.low == pytest.approx(half)


def test_what_is_there_decides_or_leaves_open():
    """A mean over some of its pairs says how many; a claim about all is refuted by one and shown only by all."""
    some = {name: PCAM[name] for name in ("atrous-8-4", "dense-8-4", "atrous-16-8", "dense-16-8", "dense-1-1")}
    some |= {"dense-4-4": 0.79, "dense-12-12": 0.86}
    found = [verdict(case, some).words for case in CASES[:5]]
    assert found[3] == "reproduced (2 of 6 pairs)"
    assert found[0] == "not reproduced (1 of 3 pairs)"  # 4 is worse than 1, whatever 8 may be
    assert found[1] == found[4] == "not enough runs"
    mixed = networks("pcam", {"dense-1-1": 0.80}, images=30_000)
    mixed |= networks("pcam", {"unturned-12-12": 0.855}, seeds=1, images=30_000)
    assert rule.judge(rule.claims_of("pcam")[7], mixed).words == "reproduced (one seed of some)"


def test_released_dense_is_local_and_no_evidence_against_itself():
    claim = rule.claims_of("celeba", "released")[5]
    found = rule.judge(claim, networks("celeba", CELEBA | {"local-3-3": 0.1}))
    assert (found.words, len(claim.pairs)) == ("reproduced", 3)
    assert ("2-D at scale 2", "2-D at scale 1.6") in rule.claims_of("celeba", "released")[0].pairs


def test_the_tables_of_a_study_of_the_papers_networks():
    plain = {
        "config": {
            "network": {"group": "none", "elements": 1, "basis": 1, "kernel": "dense", "kernel_size": 5, "scale": 1}
        }
    }
    upright = {"config": {"training": {"augment": "no-rot90"}}, "environment": {"uncommitted": True}}
    endless = {"images": 10**12}
    runs = [line("dense-1-1", s, {"accuracy": 0.8 + 0.001 * (s - 1)}, results=endless, **plain) for s in range(3)]
    runs += [
        line("unturned-12-12", s, {"accuracy": 0.9 + 0.001 * (s - 1)}, results=endless, **upright) for s in range(3)
    ]
    found = by_name(study(runs).networks)
    rows = scores_table(found)[2:]
    assert rows[0] == "| 2-D | 3 | 80.00 ± 0.25 | 12,345 | 4,321 | 1.0 | not synthetic, test split |"
    assert rows[1].startswith("| dense (12, 12), no-rot90 † | 3 | 90.00 ± 0.25 |")
    half = 100 * stats.t.ppf(0.975, 4) * 0.001 * (2 / 3) ** 0.5
    effect = f"+10.00 [+{10 - half:.2f}, +{10 + half:.2f}]"
    text = "\n".join(claims_table(found))
    assert (
        f"| SE(2) (12, 12) without quarter turns beats 2-D with them † | reproduced | {half:.2f} | 3 | **{effect}** |"
        in text
    )
    assert f"| dense (12, 12), no-rot90 − 2-D † | {effect} |" in text
    assert "No runs of `dense (4, 4)`" in text
