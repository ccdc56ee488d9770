"""A dense layer most of whose weights are zero, stored as a sparse matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Array, Matrix
from pindown.model._expression import Expression
from pindown.model._lowering import Lowering
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.narrowing import LinearRows
from pindown.model.operations.operation import Numbers, Shape, Writer, frozen, matched


@dataclass(frozen=True, eq=False)
class SparseDense(AffineOperation):
    """``y = W x + b`` along the last axis; W has rows ``starts`` of entries ``data`` in ``columns``.

    >>> SparseDense.of(sp.csr_array([[0.0, 2.0]]), np.array([1.0]))(np.array([[[5.0, 3.0]]]))
    array([[[7.]]])
    """

    data: Array
    columns: NDArray[np.int64]
    starts: NDArray[np.int64]
    width: int
    bias: Array | None = None

    @classmethod
    def of(cls, weight: Matrix, bias: Array | None = None) -> SparseDense:
        """Take a matrix (out, in) and a bias (out,)."""
        W = sp.csr_array(weight)
        columns, starts = (np.asarray(part, dtype=np.int64) for part in (W.indices, W.indptr))
        own = None if bias is None else frozen(bias)
        return cls(frozen(W.data), columns, starts, int(W.shape[1]), own)

    @cached_property
    def weight(self) -> Matrix:
        """The matrix W."""
        shape = (len(self.starts) - 1, self.width)
        return sp.csr_array((self.data, self.columns, self.starts), shape=shape)

    @property
    def name(self) -> str:
        """What users call it."""
        return "Dense"

    @property
    def offset(self) -> Array | None:
        """The bias."""
        return self.bias

    def shape(self, *shapes: Shape) -> Shape:
        """Replace the last length."""
        if shapes[0][-1:] != (self.width,):
            raise ValueError(f"a weight {self.weight.shape} does not fit a tensor of shape {shapes[0]}.")
        return (*shapes[0][:-1], len(self.starts) - 1)

    def linear(self, x: Numbers) -> Numbers:
        """Return ``W x``."""
        rows = x.reshape(-1, self.width)
        if x.dtype == object:
            made = np.matmul(rows, matched(self.weight.toarray().T, x))
        else:
            made = np.ascontiguousarray((self.weight @ rows.T).T)
        return made.reshape(*x.shape[:-1], -1)

    def transposed(self, form: Array, shape: Shape) -> Array:
        """Return ``form W``."""
        rows = form.reshape(-1, len(self.starts) - 1)
        return np.ascontiguousarray((self.weight.T @ rows.T).T).reshape(len(form), *shape)

    def signed(self) -> tuple[SparseDense, SparseDense]:
        """Split the weight."""
        positive, negative = (
            replace(self, data=frozen(np.maximum(part, 0.0)), bias=None)
            for part in (self.data, -self.data)
        )
        return positive, negative

    @cached_property
    def linear_rows(self) -> LinearRows | None:
        """The weight by columns."""
        return LinearRows.of(self.weight)

    def n_terms(self, shape: Shape) -> int:
        """One product for each entry of the fullest row."""
        return int(np.diff(self.starts).max(initial=0))

    @property
    def n_parameters(self) -> int:
        """Weights that are stored, and biases."""
        return self.data.size + (0 if self.bias is None else self.bias.size)

    def multiply_adds(self, *shapes: Shape) -> int:
        """One for each stored weight and each vector it acts on."""
        return self.data.size * (math.prod(shapes[0]) // self.width)

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Multiply the expression by the weight."""
        x = inputs[0]
        lead = math.prod(x.shape[:-1])
        matrix = self.weight if lead == 1 else sp.kron(sp.eye_array(lead), self.weight, format="csr")
        product = x.map(matrix, (*x.shape[:-1], len(self.starts) - 1))
        return product if self.bias is None else product.shift(self.bias)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write MatMul and Add, with all the zeros: ONNX runtimes take no sparse weights."""
        product = writer.node("MatMul", [*inputs, writer.weight(self.weight.toarray().T)])
        if self.bias is None:
            return product
        return writer.node("Add", [product, writer.weight(self.bias, "bias")])
