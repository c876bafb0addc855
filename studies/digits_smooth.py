"""ReLU, SiLU and smooth networks on rotated digits, scored on 8,000 that no table scores."""

from liespline.lab.sweep.study import Row, Study
from studies.networks import RELATIVE
from studies.recipes import CHAIN, RECIPE, ROTATED

SO2 = {"elements": 16, "kernel": "local", "basis": 5, "separable": True}

STUDY = Study(
    task="studies.digits:SPARE",
    data=f"{ROTATED} Scored on the 8,000 that are left.",
    protocol="100,000 parameters on 16 orientations; activations alone differ, `smooth` also interpolates along H.",
    recipe={**RECIPE, **CHAIN, "architecture": 2, "epochs": 16, "train_on_val": True, "parameters": 100_000,
            "augment": "rotate"},
    networks={"relu": SO2, "silu": {**SO2, "activation": "silu"}, "smooth": {**SO2, "smooth": True}},
    rows=[
        Row(ours, "relu", measure=measure, error=measure == "accuracy")
        for ours in ("silu", "smooth") for measure in ("accuracy", RELATIVE)
    ],
)  # fmt: skip
