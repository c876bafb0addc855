"""Faults to plant in norms and in half precision, one at a time."""

from fault import Fault

_TWO_GRIDS = "core/test_norms::test_the_same_function_on_two_grids_is_normalised_alike"
_LOOPS = "core/test_norms::test_statistics_are_those_of_plain_loops"

_HALF = "core/test_mixed_precision::"

FAULTS = [
    Fault("nn/statistics.py::HaarWeighted._weigh", "values * self.haar.to(values)", "values + 0 * self.haar.to(values)",
          "norms: all elements count alike", _TWO_GRIDS),
    Fault("nn/statistics.py::_unequal_weights", "grid.weights / grid.weights.mean()", "grid.weights",
          "norms: weights that do not have mean 1", _TWO_GRIDS),
    Fault("nn/norm.py::BatchNorm.weighted", "total(self._weigh(centred.square())", "total(centred.square()",
          "batch norm: the variance without Haar's weights", _LOOPS),
    Fault("nn/group_norm.py::GroupNorm.forward", "self._means(centred.square())", "self._means(x.square())",
          "group norm: squares about zero", _LOOPS),
    Fault("nn/group_norm.py::LayerNorm.__init__", "super().__init__(1, ", "super().__init__(num_channels, ",
          "layer norm of single channels", _LOOPS),
    Fault("nn/norm.py::BatchNorm.forward", "and input.numel() > 0", "", "an empty batch spoils what norms remember",
          "core/test_norms::test_recomputed_and_empty_batches_of_a_crowded_grid"),
    Fault("_convert.py::_Converter._group_norm", "layer.num_groups, layer.num_channels",
          "layer.num_channels, layer.num_channels", "convert: group norms become instance norms",
          "core/test_converting::test_norms_of_one_image_keep_their_options"),
    Fault("functional/correlation.py::project", "project(widened(x), reduce, weights)", "project(x, reduce, weights)",
          "means over H are rounded to half precision", _HALF + "test_the_projection_is_not_rounded"),
    Fault("models/precise.py::PreciseLinear.forward", "if not is_autocast(input.device):", "if True:",
          "logits are rounded to half precision", _HALF + "test_quarter_turns_of_networks_in_bfloat16"),
]  # fmt: skip
