"""Faults to plant in what says how much symmetry data have, and in what lets a network have less."""

from fault import Fault

_SYMMETRY = [
    Fault("lab/symmetry/statistics.py::elements", "(log_p[..., number] - log_p[..., 0]).sign()",
          "log_p[..., number] - log_p[..., 0]", "data symmetry: x compared with its own rotated copy",
          "lab/test_symmetry::test_data_with_a_symmetry_are_not_told_whatever_the_network_says"),
    Fault("lab/symmetry/statistics.py::share", "n = p * (1 - p) / variance if variance > 0 else count", "n = 8 * count",
          "data symmetry: poses of one image counted as images",
          "lab/test_symmetry::test_intervals_are_wilsons_of_as_many_trials_as_images_are_worth"),
    Fault("lab/symmetry/statistics.py::holm", "(len(p_values) - rank)", "1", "data symmetry: no correction for many",
          "lab/test_symmetry::test_holm"),
    Fault("lab/symmetry/transformations.py::transformed", "argmax(1)", "argmax(0)",
          "data symmetry: transformations of other names",
          "lab/test_symmetry::test_transformations_are_those_of_their_matrices"),
    Fault("lab/symmetry/findings.py::look", "second, transformations)", "first, transformations)",
          "data symmetry: looks at the images it was trained on",
          "lab/test_symmetry::test_no_image_is_looked_at_twice"),
]  # fmt: skip

FAULTS = [*_SYMMETRY]
