"""The paper's twelve networks of several scales on CelebA, and its 2-D network at the scales 1 and 2."""

from dataclasses import replace

from studies.celeba_paper import PAPER_SCALES, SCALED, plain
from studies.celeba_paper import STUDY as PAPER

STUDY = replace(
    PAPER,
    protocol="The paper's twelve networks of several scales, and 2-D at the scales 1 and 2.",
    networks={**SCALED, **plain(PAPER_SCALES, (3, 1))},
)
