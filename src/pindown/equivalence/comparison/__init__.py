r"""Are two networks one function? A proof, a witness, or a proved interval for the largest gap.

On a box the gap is :math:`\sup_x \max_k |a_k(x) - b_k(x)|`; without one it is taken relative to
:math:`1 + \|x\|_2`, over all inputs. ``methods`` is the table of all that is tried, in order.
"""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
