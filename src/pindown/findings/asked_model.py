"""A model in the forms that questions need: its values, its graph of operations, its exact form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.errors import UnsupportedModelError
from pindown.findings.question_budget import NotApplicable
from pindown.findings.tuning import MAX_EXACT_PRODUCTS
from pindown.io.accepting import is_estimator, is_module
from pindown.io.any_model import AnyModel, as_model
from pindown.io.evaluated import Evaluated, evaluated, evaluated_session, is_session, load_evaluated
from pindown.model.from_network import model_of_network
from pindown.model.graph import Model
from pindown.model.operations.dense import Dense
from pindown.model.operations.moves import Reshape
from pindown.model.operations.piecewise_linear import Relu
from pindown.network import ReluNetwork

Function: TypeAlias = ReluNetwork | Model | Evaluated

_ONLY_VALUES = "only its values are known"


@dataclass(frozen=True, eq=False)
class AskedModel:
    """A model, as far as it is known.

    Attributes:
        given: What was given: a network, a graph of operations, or a function.
    """

    given: Function

    @cached_property
    def values(self) -> Function:
        """What to evaluate: scores, a last softmax or sigmoid left out."""
        if isinstance(self.given, Model):
            return self._network_of_chain or self.given.scores()
        return self.given

    @cached_property
    def _network_of_chain(self) -> ReluNetwork | None:
        """The exact form of a chain of dense layers, where it is the model itself."""
        assert isinstance(self.given, Model)
        nodes = self.given.scores().nodes
        chain = all(isinstance(node.operation, (Dense, Relu, Reshape)) for node in nodes)
        in_order = all(node.inputs == (i,) for i, node in enumerate(nodes))
        return self.given.relu_network() if nodes and chain and in_order else None

    @property
    def graph(self) -> Model:
        """The operations behind the values.

        Raises:
            NotApplicable: If only values are known.
        """
        if self._graph is None:
            raise NotApplicable(_ONLY_VALUES)
        return self._graph

    @cached_property
    def _graph(self) -> Model | None:
        if isinstance(self.given, Evaluated):
            return None
        return (
            model_of_network(self.given) if isinstance(self.given, ReluNetwork) else self.given.scores()
        )

    @property
    def exact(self) -> ReluNetwork:
        """The exact piecewise-linear form.

        Raises:
            NotApplicable: If there is none, or it would be too large.
        """
        if self.why_not_exact:
            raise NotApplicable(self.why_not_exact)
        made = self._exact
        assert isinstance(made, ReluNetwork)
        return made

    @property
    def why_not_exact(self) -> str:
        """What keeps it from an exact form, in words that follow "because"; empty if there is one."""
        return "" if isinstance(self._exact, ReluNetwork) else self._exact

    @cached_property
    def _exact(self) -> ReluNetwork | str:
        if isinstance(self.given, ReluNetwork):
            return self.given
        if isinstance(self.given, Evaluated):
            return f"it needs the piecewise-linear form and {_ONLY_VALUES}"
        if self._network_of_chain is not None:
            return self._network_of_chain
        if self.given.multiply_adds > MAX_EXACT_PRODUCTS:
            return (
                "it needs the piecewise-linear form, which would hold more than "
                f"{MAX_EXACT_PRODUCTS // 10**6} million weights"
            )
        try:
            return self.given.relu_network()
        except UnsupportedModelError as error:
            return f"it needs the piecewise-linear form and {_without_advice(str(error))}"


def last_activation(model: ReluNetwork | Model) -> str | None:
    """Return the softmax or sigmoid at the end, which scores leave out; None if there is none."""
    if isinstance(model, ReluNetwork):
        return model.output_activation
    scores = model.scores()
    return None if scores is model else model.nodes[len(scores.nodes)].operation.name


def asked_model(
    given: AnyModel | Callable[..., Any],
    argument: str,
    activation: str | None = None,
    X: ArrayLike | None = None,
    *,
    evaluate_only: bool = False,
) -> AskedModel:
    """Return what was given as a model: also any function of arrays, and a session of onnxruntime.

    Args:
        given: The model.
        argument: What it is called in errors.
        activation: What lies between the layers of a state dict.
        X: Inputs, which say what shape a function takes.
        evaluate_only: Whether to take nothing but values, also of a file or module.

    Raises:
        TypeError: If it is no model.
        ValueError: If a function is given without X, or fails on X.
    """
    if isinstance(given, (ReluNetwork, Model, Evaluated)) and not evaluate_only:
        return AskedModel(given)
    if is_session(given):
        return AskedModel(evaluated_session(given))
    if evaluate_only and isinstance(given, (str, PathLike)):
        return AskedModel(load_evaluated(given))
    named = isinstance(given, (str, PathLike, type))
    known = named or is_module(given) or is_estimator(given)
    if (evaluate_only and not known) or (callable(given) and not known):
        return AskedModel(_of_function(given, argument, X))
    if evaluate_only:
        raise ValueError(
            f"{argument} can evaluate only functions of arrays, sessions of onnxruntime "
            "and .onnx files; "
            f"got {type(given).__name__}: wrap it, as in lambda X: model(X)."
        )
    return AskedModel(as_model(given, argument, activation))


def _of_function(given: Any, argument: str, X: ArrayLike | None) -> Evaluated:
    shape = getattr(given, "input_shape", None)
    if shape is None:
        if X is None:
            raise ValueError(f"{argument} of a function needs X: a function does not say what it takes.")
        shape = np.shape(X)[1:]
        if not shape:
            raise ValueError(f"X must hold one input per row; got shape {np.shape(X)}.")
    return evaluated(given, shape)


def _without_advice(message: str) -> str:
    """Return the first clause of a message, that names what is not piecewise linear."""
    return message.partition(";")[0].rstrip(".")
