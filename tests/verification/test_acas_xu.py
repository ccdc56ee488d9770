"""The ten properties of ACAS Xu are those of the competitions' files."""

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pindown.verification import Property, read_vnnlib

FILES = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[3] / "shared")) / "vnncomp/acasxu"
# What the networks advise: the smallest score. Which advice is wrong where, in words of the source.
WRONG_ADVICE = {3: {0}, 4: {0}, 5: {0, 1, 2, 3}, 6: {1, 2, 3, 4}, 7: {3, 4}, 8: {2, 3, 4},
                9: {0, 1, 2, 4}, 10: {1, 2, 3, 4}}  # fmt: skip


@pytest.mark.parametrize("number", range(1, 11))
def test_they_are_the_published_ones(number):
    """The same sets, with corners that the files round to nine digits."""
    path = FILES / f"prop_{number}.vnnlib.gz"
    if not path.exists():
        pytest.skip("the shared problems are not here")
    ours, theirs = Property.acas_xu(number), read_vnnlib(path)
    assert len(ours.unsafe) == len(theirs.unsafe)
    for one, other in zip(ours.unsafe, theirs.unsafe, strict=True):
        np.testing.assert_allclose(one.lower, other.lower, rtol=0, atol=1e-9)
        np.testing.assert_allclose(one.upper, other.upper, rtol=0, atol=1e-9)
        rows = [sorted(zip(map(tuple, s.rows), s.limits, strict=True)) for s in (one, other)]
        np.testing.assert_allclose([row for row, _ in rows[0]], [row for row, _ in rows[1]])
        np.testing.assert_allclose([t for _, t in rows[0]], [t for _, t in rows[1]], rtol=1e-15)
    rng = np.random.default_rng(number)
    for _ in range(200):
        part = ours.unsafe[rng.integers(len(ours.unsafe))]
        middle = (part.lower + part.upper) / 2
        x = middle + 0.9 * (rng.random(5) - 0.5) * (part.upper - part.lower)
        y = rng.integers(0, 4, 5) * (1.5 if number == 1 else 1.0)
        assert ours.violated_by(x, y) == theirs.violated_by(x, y)


@pytest.mark.parametrize("number", WRONG_ADVICE)
def test_they_forbid_advice(number):
    found = Property.acas_xu(number)
    rng = np.random.default_rng(0)
    for _ in range(100):
        scores = rng.permutation(5).astype(float)
        part = found.unsafe[rng.integers(len(found.unsafe))]
        x = part.inside.lower
        assert found.violated_by(x, scores) == (int(np.argmin(scores)) in WRONG_ADVICE[number])


def test_the_first_two():
    x = Property.acas_xu(1).unsafe[0].inside.lower
    assert Property.acas_xu(2).violated_by(x, [5, 1, 2, 3, 4])
    assert not Property.acas_xu(2).violated_by(x, [4, 1, 2, 3, 5])
    limit = (1500 - Fraction("7.5188840201005975")) / Fraction("373.94992")
    below, above = np.nextafter(float(limit), 0), np.nextafter(float(limit), 9)
    assert not Property.acas_xu(1).violated_by(x, [below, 0, 0, 0, 0])
    assert Property.acas_xu(1).violated_by(x, [above, 0, 0, 0, 0])


def test_corners_hold_what_is_said_in_feet():
    """The distance of property 4, 1500 to 1800 feet, normalised: between the outer and the inner box."""
    part = Property.acas_xu(4).unsafe[0]
    for feet, outer, inner in (
        (1500, part.lower, part.inner.lower),
        (1800, part.upper, part.inner.upper),
    ):
        exact = (feet - Fraction("19791.091")) / 60261
        ends = sorted([Fraction(outer[0]), Fraction(inner[0])])
        assert ends[0] <= exact <= ends[1] and float(ends[1] - ends[0]) < 1e-15
    assert part.lower[2] == part.upper[2] == 0.0


def test_corners_and_limits_are_those_of_the_benchmark():
    """The normalised numbers that competitions publish."""
    (first,), (third,) = (Property.acas_xu(number).unsafe for number in (1, 3))
    np.testing.assert_allclose(
        third.lower, [-0.30353115613746867, -0.009549296585513092, 0.4933803235848431, 0.3, 0.3]
    )
    np.testing.assert_allclose(first.limits, [-3.991125645861615])
    np.testing.assert_allclose(first.upper, [0.679857769, 0.5, 0.5, 0.5, -0.45], atol=1e-9)


@pytest.mark.parametrize("number", [0, 11, 2.5])
def test_there_are_ten(number):
    with pytest.raises((TypeError, ValueError), match="number must be"):
        Property.acas_xu(number)
