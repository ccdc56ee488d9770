"""Models in and out: ONNX, torch modules, safetensors and state dicts, scikit-learn MLPs."""
