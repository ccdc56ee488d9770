"""Certificates: what is proved can be checked by a stranger, and nothing else is."""

from functools import partial

import numpy as np
import pytest

import pindown as pn
from pindown.errors import CertificateError
from pindown.verification import portfolio
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


@pytest.mark.parametrize("name", [name for name in problems() if not name.startswith("many")])
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


@pytest.mark.parametrize("name", ["boxes", "signs"])
def test_a_search_goes_on_from_what_is_open(name, tmp_path, monkeypatch):
    """Stopped after every few parts, it ends like one run, and the checker accepts what it ends with."""
    monkeypatch.setattr(portfolio, "SPLIT_FIRST_PARTS", 1)
    monkeypatch.setattr(portfolio, "BOX_FIRST_PARTS", 4)
    problem = problems()[f"many {name}"]
    whole = pn.verify(problem.models[0], problem.prop, n_jobs=1)
    assert whole.verdict == "holds"
    runs, known = 0, 0
    monkeypatch.setattr(portfolio, "Run", partial(portfolio.Run, turns=1))
    while True:
        answer, models, data = certified(problem, tmp_path)
        runs += 1
        if answer.verdict != "undecided":
            break
        assert (
            verdict_of(data, models)[0]
            == "rejected: the proof is not finished: the verdict is undecided."
        )
        n_nodes = sum(len(checker.Certificate(data).arrays[f"{way}_kinds"]) for way in ("box", "sign"))
        assert n_nodes > known and runs < 200
        known = n_nodes
    assert answer.verdict == "holds" and runs > 2 and "went on" in answer.certificate_note
    assert verdict_of(data, models)[0].startswith("accepted: holds")


def test_a_file_of_something_else_is_not_touched(tmp_path):
    first, second = problems()["boxes"], problems()["witness"]
    _, _, data = certified(first, tmp_path)
    with pytest.raises(CertificateError, match=r"^\S*proof: this certificate is of another claim"):
        certified(second, tmp_path)
    (tmp_path / "proof").write_bytes(b"notes")
    with pytest.raises(CertificateError, match="no certificate"):
        certified(first, tmp_path)
    assert (tmp_path / "proof").read_bytes() == b"notes" and data
