"""The paper's networks on CelebA as its released scripts had them."""

from dataclasses import replace

from studies.celeba_paper import RELEASED_SCALES, SCALED, plain
from studies.celeba_paper import STUDY as PAPER

STUDY = replace(
    PAPER,
    protocol="The networks and settings of the paper's released scripts.",
    recipe={"preset": "released"},
    networks={**SCALED, **plain(RELEASED_SCALES)},
)
