"""Models in onnxruntime."""

from __future__ import annotations

import numpy as np


def run_written(model, rows, dtype="float64", optimised=True):
    """Write a model as ONNX and run it in onnxruntime, row by row; return (n, k)."""
    import onnxruntime

    from pindown.io._onnx.writer import onnx_bytes

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    if not optimised:  # onnxruntime's own rewriting of integer weights costs three digits
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        onnx_bytes(model, dtype), options, providers=["CPUExecutionProvider"]
    )
    name = session.get_inputs()[0].name
    kind = {"float64": np.float64, "float32": np.float32, "float16": np.float16}[dtype]
    shape = (
        (1, *model.input_shape)
        if len(model.literal_shape) > len(model.input_shape)
        else model.literal_shape
    )
    made = [session.run(None, {name: row.reshape(shape).astype(kind)})[0] for row in rows]
    return np.stack([np.asarray(y, dtype=np.float64).ravel() for y in made])
