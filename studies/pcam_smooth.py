"""ReLU, SiLU and smooth networks on PCam patches that no table scores: how steady and how accurate they are."""

from liespline.lab.sweep.study import Row, Study
from studies.networks import RELATIVE
from studies.recipes import IN_DISC, SEALED, TISSUE, VALID_AUC

O2 = {**IN_DISC["o2-12"], "architecture": 2, "kernel": "local", "basis": 3, "parameters": 116_000}

STUDY = Study(
    task="studies.paper.pcam:PCAM",
    data=SEALED,
    protocol="The same network and recipe, activations alone differ; `smooth` also interpolates along H.",
    recipe={**TISSUE, "epochs": 8},
    networks={"relu": O2, "silu": {**O2, "activation": "silu"}, "smooth": {**O2, "smooth": True}},
    rows=[Row(ours, "relu", measure=measure) for ours in ("silu", "smooth") for measure in (VALID_AUC, RELATIVE)],
)
