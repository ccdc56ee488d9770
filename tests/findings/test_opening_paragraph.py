"""The opening paragraph is short, in order, and says what could not be said."""

from pindown.findings import Finding, opening_paragraph
from pindown.findings.opening_paragraph import MAX_SENTENCES, grouped_reasons, passages


def paragraph(findings, **settings):
    return opening_paragraph.paragraph(passages(findings, **settings))


def answered(code, sentence):
    return Finding(code, "t", "v", sentence=sentence)


def silent(code, reason="because no data were given", status="not applicable"):
    return Finding(code, "t", f"{status}, {reason}", status=status)


def test_the_most_important_comes_first_whatever_the_order():
    text = paragraph(
        [answered("LIP-01", "Steep."), answered("ACC-01", "Right."), answered("ARC-01", "Net.")]
    )
    assert text == "Net. Right. Steep."
    assert paragraph([answered("ARC-01", "Net."), answered("ACC-01", "Right.")], first="New.") == (
        "Net. New. Right."
    )


def test_no_more_than_a_few_sentences():
    codes = ("ARC-01", "ACC-01", "GEO-01", "EQV-01", "ROB-01", "LIP-01", "UNIT-01", "GEO-03", "DEP-01")
    text = paragraph([answered(code, f"{code}.") for code in codes])
    assert text.count(".") == MAX_SENTENCES and text.startswith("ARC-01. ACC-01. GEO-01.")


def test_the_box_is_named_once():
    findings = [answered("ARC-01", "On the box B a."), answered("GEO-01", "On the box B b.")]
    assert paragraph(findings, box_name="the box B") == "On the box B a. On that box b."


def test_equal_reasons_are_told_once():
    findings = [silent("UNIT-01"), silent("ACC-01", "because no labels were given"), silent("GEO-02")]
    assert [(r.because, r.codes) for r in grouped_reasons(findings)] == [
        ("because no data were given", "UNIT-01, GEO-02"),
        ("because no labels were given", "ACC-01"),
    ]
    told = "2 because no data were given and 1 because no labels were given."
    assert paragraph(findings) == f"3 questions of 3 have no answer: {told}"


def test_reasons_that_the_reader_cannot_change_are_only_counted():
    findings = [
        silent("FRQ-01", "because it rains"),
        silent("SYM-02", "because it snows"),
        silent("ACC-01"),
    ]
    assert paragraph(findings).endswith("1 because no data were given and 2 for other reasons.")
    one = [silent("FRQ-01", "because it rains")]
    assert paragraph(one, interrupted=True) == (
        "The audit was interrupted, so some questions were not asked. "
        "1 question of 1 has no answer: because it rains."
    )
