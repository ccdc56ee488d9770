"""Statements of the sources that are wrong as printed: the printed form fails, ours holds."""

from pindown import ReluNetwork


def test_offset_of_a_local_map():
    """Phuong 2021, (A.15): with W_k in front, the offset of 3 relu(2 x + 1) at x = 1 would be 2."""
    W1, b1, W2, b2 = 2.0, 1.0, 3.0, 0.0
    net = ReluNetwork.from_layers([([[W1]], [b1]), ([[W2]], [b2])])
    A, c = net.local_affine([1.0])
    printed = W1 * b1 + b2
    assert A.item() * 1.0 + printed != net([1.0]).item()
    assert A.item() * 1.0 + c.item() == net([1.0]).item()
    assert c.item() == W2 * b1 + b2
