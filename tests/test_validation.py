"""What users hand in is checked in one wording."""

import math

import pytest

from pindown.errors import ParameterError
from pindown.validation import integer, positive, probability, share


@pytest.mark.parametrize("check", [positive, probability, share])
@pytest.mark.parametrize("value", [-1, math.nan, math.inf, "a", None, True])
def test_number_checks(check, value):
    with pytest.raises(ParameterError, match="n must"):
        check("n", value)


@pytest.mark.parametrize("value", [0, 1.5, True, "3"])
def test_integers(value):
    with pytest.raises(ParameterError, match="integer"):
        integer("n", value)
