"""The answers of an audit: questions with stable codes, in three folders by what they ask.

``which_function`` the network is, ``why_this_one`` was chosen by training, and ``how_far`` it can be
trusted. ``catalogue`` lists them in their order.
"""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
