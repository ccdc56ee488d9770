"""Certificates: what is proved can be checked by a stranger, and nothing else is."""

import numpy as np
import pytest

import pindown as pn
from tests.verification.checking import certified, load_checker, problems

checker = load_checker()


def verdict_of(data, models, text=None):
    """Return what the checker says, and the claim that it prints."""
    lines = []
    with np.errstate(all="ignore"):
        try:
            return f"accepted: {checker.check(data, models, text, write=lines.append)}", lines
        except checker.Rejected as reason:
            return f"rejected: {reason}", lines


@pytest.mark.parametrize("name", list(problems()))
def test_every_kind_of_proof_is_accepted(name, tmp_path):
    problem = problems()[name]
    answer, models, data = certified(problem, tmp_path)
    assert answer.verdict == problem.verdict and answer.certificate == str(tmp_path / "proof")
    said, lines = verdict_of(data, models)
    assert said.startswith(f"accepted: {problem.verdict}")
    assert len([line for line in lines if line.startswith("unsafe set")]) == len(problem.prop.unsafe)
    if problem.way:
        ways = checker.Certificate(data).arrays["proof"]
        assert set(ways.tolist()) == {problem.way}
    if name == "signs":
        kinds = checker.Certificate(data).arrays["sign_kinds"]
        assert (kinds == checker.CUT).any()


def test_models_without_a_file_have_no_certificate(tmp_path):
    problem = problems()["boxes"]
    with pytest.raises(ValueError, match="give paths"):
        pn.verify(problem.models[0], problem.prop, certificate=tmp_path / "proof")
