"""What a finite step adds to the loss: the modified loss of gradient descent and of minibatches."""

from pindown.bias.discretisation.batches import BatchPath, batch_descent
from pindown.bias.discretisation.modified import (
    array_gradient,
    implicit_penalty,
    modified_gradient,
    modified_loss,
    sgd_modified_loss,
)
from pindown.bias.discretisation.optimiser import ImplicitRegularisation, emulating_multiple
from pindown.bias.discretisation.orders import (
    DiscretisationOrders,
    discretisation_orders,
    order,
    sgd_orders,
)

__all__ = [
    "BatchPath",
    "DiscretisationOrders",
    "ImplicitRegularisation",
    "array_gradient",
    "batch_descent",
    "discretisation_orders",
    "emulating_multiple",
    "implicit_penalty",
    "modified_gradient",
    "modified_loss",
    "order",
    "sgd_modified_loss",
    "sgd_orders",
]
