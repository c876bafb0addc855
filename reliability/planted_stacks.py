"""Faults to plant in what puts our networks into other people's tools, one at a time."""

from fault import Fault

_NNUNET = "core/test_nnunet::"
_CONVERT = "core/test_converting_stacks::"

FAULTS = [
    Fault("integrations/nnunet.py::has_mirrors", "return all(", "return any(",
          "nnU-Net: predictions of mirror images left out though some mirrors are not in the grid",
          _NNUNET + "test_grids_without_them_do"),
    Fault("integrations/nnunet.py::grid_of", "Axial(acting, 0)", "Axial(acting, 2)",
          "nnU-Net: volumes rotate about another axis than the coarsest",
          _NNUNET + "test_volumes_rotate_about_the_coarsest_axis_with_groups_of_the_plane"),
    Fault("integrations/nnunet.py::EquivariantUNet.__init__", '"factor": strides[1:]', '"factor": strides[:-1]',
          "nnU-Net: strides of the size before", _NNUNET + "test_plans_name_a_network_that_trains_as_nnunet_does"),
    Fault("integrations/nnunet.py::EquivariantUNet.__init__", "self.decoder.deep_supervision = deep_supervision",
          "pass", "nnU-Net: predictors get a list", _NNUNET + "test_plans_name_a_network_that_trains_as_nnunet_does"),
    Fault("integrations/nnunet.py::_save", "!= plans", "is None", "nnU-Net: plans written over others",
          _NNUNET + "test_what_is_missing_is_said"),
    Fault("_convert/__init__.py::_Converter._transposed", "!= {factor}", "== set()",
          "convert: transposed convolutions of any size", _CONVERT + "test_what_has_no_counterpart_is_said_together"),
    Fault("_convert/__init__.py::_Converter._transposed", "nn.Sequential(conv, Upsample(factor))", "conv",
          "convert: maps stay small", _CONVERT + "test_transposed_convolutions_keep_sizes_and_quarter_turns"),
    Fault("_convert/__init__.py::_Converter._layer_norm", "or not over_channels(layer, self.d)", "",
          "convert: norms over space become norms over channels",
          _CONVERT + "test_what_has_no_counterpart_is_said_together"),
    Fault("nn/group_norm.py::ChannelNorm.forward", "self.norm(x.movedim(1, -1)).movedim(-1, 1)",
          "self.norm(x.movedim(1, -1).flatten(1, -2)).view_as(x)", "channel norm: axes in another order",
          _CONVERT + "test_layer_norms_over_channels_are_torch_s_at_every_position"),
]  # fmt: skip
