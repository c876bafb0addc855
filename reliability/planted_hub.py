"""Faults to plant in what carries networks to other people's tools."""

from fault import Fault

FAULTS = [
    Fault("models/recipe.py::_float64", "dtype=torch.float64", "dtype=torch.float32",
          "a saved grid comes back rounded"),
    Fault("models/recipe.py::from_json", "_float64(elements), _float64(weights)",
          "_float64(elements), torch.ones_like(_float64(weights))", "a saved grid loses its Haar weights"),
    Fault("models/pretrained.py::ready", "given.apply_defaults()", "pass",
          "a saved network takes the defaults of whoever loads it"),
    Fault("models/pretrained.py::from_pretrained",
          "network.to(next(tensors[name].dtype for name, _ in network.named_parameters()))", "pass",
          "a network in float64 comes back in float32"),
    Fault("models/pretrained.py::from_pretrained", "network.load_state_dict(tensors)",
          "network.load_state_dict({k: v for k, v in tensors.items() if 'h_basis' not in k}, strict=False)",
          "parameters are loaded into other orientations"),
    Fault("models/pretrained.py::folder_of", "path.exists() or path.parent.exists()", "path.exists()",
          "a folder that is mistyped is asked for on the Hub"),
    Fault("lab/runs/sharing.py::portable", "Path(config[name]).name", "config[name]",
          "the folders of one's machine go to the Hub", test="truth/test_shared_runs"),
    Fault("lab/runs/sharing.py::command", "if value == usual[name] or", "if value == usual[name] or one.advanced or",
          "the command on a card trains another network", test="truth/test_shared_runs"),
    Fault("lab/runs/where.py::located", "if name not in known:", "if not (ZOO / name).exists():",
          "a name of the zoo reads any folder", test="truth/test_shared_runs"),
    Fault("integrations/wsinfer.py::write_wsinfer", "{\"name\": \"ToTensor\"}", "{\"name\": \"ToFloat\"}",
          "WSInfer is told a step that it does not know", test="core/test_wsinfer"),
    Fault("integrations/wsinfer.py::write_wsinfer", "plain = export(network).cpu().float()",
          "plain = export(network.train()).cpu().float().train()", "batch norms of WSInfer's file see the batch", test="core/test_wsinfer"),
    Fault("models/resnet.py::ResNet.forward", "self.checkpoint and torch.is_grad_enabled()", "False",
          "a checkpointed ResNet keeps everything", test="core/test_ready_networks"),
]  # fmt: skip
