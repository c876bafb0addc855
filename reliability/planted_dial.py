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

_LESS = [
    Fault("nn/restrict.py::cosets", "group.product(elements, grid.elements[left[0]])",
          "group.product(grid.elements[left[0]], elements)", "restriction: left cosets for right ones",
          "core/test_frames::test_restriction_is_a_sum_of_cosets"),
    Fault("nn/restrict.py::Restrict.forward", "unflatten(2, (self.factor, -1))", "unflatten(2, (-1, self.factor))",
          "restriction: cosets and elements of K exchanged", "core/test_frames::test_restriction_is_a_sum_of_cosets"),
    Fault("nn/frame.py::seen_from", "acting.inverse(frame)", "frame", "frames: rotated the wrong way",
          "core/test_frames::test_image_and_frame_are_rotated_together"),
    Fault("nn/frame.py::FrameBias.bias", "seen_from(self.grid, frame)", "self.grid.elements",
          "frames: forgotten", "core/test_frames::test_image_and_frame_are_rotated_together"),
    Fault("models/kit.py::Kit.restrict", "self._on(layer.out_grid, None)", "pass",
          "restricted networks: layers behind stay on the whole group",
          "core/test_frames::test_ready_networks_are_restricted"),
    Fault("models/unet.py::unet", "len(own) // len(kit.grid) * fine + coarse", "fine + coarse",
          "restricted U-Nets: skips have as many channels as on the whole group",
          "core/test_frames::test_a_restricted_unet_keeps_its_subgroup_and_no_more"),
    Fault("lab/tasks/grids.py::within", "torch.linalg.det(matrices) > 0", "torch.linalg.det(matrices) < 2",
          "restrict=: reflections counted as rotations",
          "lab/test_groups_cli::test_a_grid_is_restricted_to_what_is_in_a_group"),
    Fault("lab/tasks/grids.py::within", "matrices[:, -1], eye[-1]", "matrices[:, 0], eye[0]",
          "restrict=: about the first axis", "lab/test_groups_cli::test_a_grid_is_restricted_to_what_is_in_a_group"),
    Fault("models/kit.py::Kit._framed", "parameters + outputs * len(grid)", "parameters",
          "breaking: biases not counted", "core/test_frames::test_what_is_counted_is_what_is_built"),
    Fault("testing/breaking.py::_of", "(moved - own)", "(moved - moved)", "breaking: everything is kept",
          "core/test_frames::test_what_is_left_is_said"),
]  # fmt: skip

_BISPECTRUM = [
    Fault("functional/bispectrum.py::_of", "-im[:, :, 2:]", "im[:, :, 2:]", "bispectrum: not conjugate, not invariant",
          "core/test_bispectrum::test_it_is_invariant_and_complete"),
    Fault("functional/bispectrum.py::_of", "own[1] * first[0] - own[0] * first[1]",
          "own[1] * first[0] + own[0] * first[1]", "joint bispectrum: not conjugate, not invariant",
          "core/test_bispectrum::test_joint_is_complete_for_all_channels_together"),
    Fault("functional/bispectrum.py::_of", "if n % 2:", "if False and n % 2:", "bispectrum: odd n not closed",
          "core/test_bispectrum::test_it_is_its_formula"),
    Fault("functional/bispectrum.py::_of", "*(c * f + d * e).unbind(2)", "", "bispectrum: reflections look alike",
          "core/test_bispectrum::test_near_misses_are_told_apart"),
]  # fmt: skip

_AXIAL = [
    Fault("lab/training/learner.py::a_shift", "torch.as_tensor(amplitude, dtype=torch.float64) * drawn",
          "max(amplitude if isinstance(amplitude, tuple) else (amplitude,)) * drawn", "grid jitter: one α for all axes",
          "lab/test_recipe::test_jitter_per_axis_moves_along_these_axes_alone"),
    Fault("groups/axial.py::Axial.act", "coordinates.insert(self.axis,", "coordinates.insert(2,",
          "axial groups: axis forgotten", "core/test_axial::test_it_is_a_group_that_keeps_its_axis"),
    Fault("nn/resample.py::Downsample.space", "zip(x.shape[2:], factors,",
          "zip(x.shape[2:], factors[:1] * len(factors),",
          "down-sampling: one factor for all axes", "core/test_resample::test_a_factor_per_axis_is_that_axis_alone"),
]  # fmt: skip

FAULTS = [*_SYMMETRY, *_LESS, *_BISPECTRUM, *_AXIAL]
