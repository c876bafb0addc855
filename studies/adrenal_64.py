"""AdrenalMNIST3D of 64³: SO(3) beside the plain network on medical shapes."""

from studies.recipes import organs

STUDY = organs("AdrenalMNIST3D", 64)
