"""VesselMNIST3D of 28³: SO(3) beside the plain network on medical shapes."""

from studies.recipes import organs

STUDY = organs("VesselMNIST3D", 28)
