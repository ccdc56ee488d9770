"""The tables of ONNX operations that are read, and what to say of those that are not."""

from __future__ import annotations

from pindown.errors import UnsupportedModelError
from pindown.io._onnx.arithmetic import ARITHMETIC
from pindown.io._onnx.attention import ATTENTION
from pindown.io._onnx.constants import CONSTANTS
from pindown.io._onnx.contrib import CONTRIB, MICROSOFT, UNOFFICIAL, Contract
from pindown.io._onnx.data_movement import MOVES
from pindown.io._onnx.expansion import EXPANDED
from pindown.io._onnx.images import IMAGES
from pindown.io._onnx.ml import MACHINE_LEARNING
from pindown.io._onnx.node import Rule
from pindown.io._onnx.normalisation import NORMALISATIONS
from pindown.io._onnx.picking import PICKS
from pindown.io._onnx.products import PRODUCTS
from pindown.io._onnx.quantised import CONTRIB_QUANTISED, QUANTISED
from pindown.io._onnx.recurrent import RECURRENT
from pindown.io._onnx.reductions import REDUCTIONS

ML = "ai.onnx.ml"
# The standard's own operations.
OPERATIONS: dict[str, Rule] = {
    **CONSTANTS,
    **MOVES,
    **PICKS,
    **ARITHMETIC,
    **REDUCTIONS,
    **IMAGES,
    **PRODUCTS,
    **NORMALISATIONS,
    **RECURRENT,
    **QUANTISED,
    **EXPANDED,
}
_MICROSOFT_OPERATIONS = CONTRIB | CONTRIB_QUANTISED | ATTENTION
# Those of all domains.
RULES: dict[str, dict[str, Rule]] = {
    "": OPERATIONS | {name: rule for name, (rule, _) in UNOFFICIAL.items()},
    ML: MACHINE_LEARNING,
    MICROSOFT: {name: rule for name, (rule, _) in _MICROSOFT_OPERATIONS.items()},
}
# What may stand in a node of which ``onnx.defs`` knows nothing.
CONTRACTS: dict[tuple[str, str], Contract] = {
    **{(MICROSOFT, name): contract for name, (_, contract) in _MICROSOFT_OPERATIONS.items()},
    **{("", name): contract for name, (_, contract) in UNOFFICIAL.items()},
}

_CONTROL_FLOW = ("If", "Loop", "Scan", "SequenceMap")
_RANDOM = (
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Bernoulli",
    "Multinomial",
)
_TREES = ("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor")
_TEXT = ("StringNormalizer", "TfIdfVectorizer", "StringConcat", "StringSplit", "RegexFullMatch")
_LABELS = (
    "ArgMax",
    "ArgMin",
    "LabelEncoder",
    "Binarizer",
    "OneHotEncoder",
    "CategoryMapper",
    "TopK",
    "ZipMap",
)


def rule_of(domain: str, op: str) -> Rule:
    """Return the rule of an operation.

    Raises:
        UnsupportedModelError: If there is none; the message says why and what to do.
    """
    found = RULES.get(domain, {}).get(op)
    if found is not None:
        return found
    raise UnsupportedModelError(_refusal(domain, op))


def _refusal(domain: str, op: str) -> str:
    if op in _CONTROL_FLOW:
        return f"{op} is control flow, which is not read; export a model without loops and branches."
    if op in _TREES:
        return f"{op} is a tree ensemble, which is not read; pindown reads linear models and MLPs."
    if op.startswith("SVM"):
        return f"{op} is a kernel machine, which is not read; pindown reads linear models and MLPs."
    if op in _TEXT:
        return f"{op} works on text, which is not read; export the part of the model behind it."
    if op in _RANDOM:
        return f"{op} draws random numbers; export the model in evaluation mode."
    if op in _LABELS:
        return (
            f"{op} returns positions or labels, which jump; choose an output with scores: output=NAME "
            "or --output NAME."
        )
    if domain.startswith("com.microsoft.") or domain.startswith("com.ms."):
        return (
            f"the operation {op} of the domain '{domain}' is laid out for one kind of machine; "
            "take the file before onnxruntime optimised it, or optimise at most to the level 'extended'."
        )
    if domain not in RULES:
        return (
            f"the operation {op} is of the custom domain '{domain}', which is not read; "
            "export standard ONNX."
        )
    return f"the operation {op} is not read; docs/models.md lists those that are."
