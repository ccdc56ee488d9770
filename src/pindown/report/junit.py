"""Test reports in the form of JUnit, which pipelines show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree

from pindown.text import printable, visible


class Case(NamedTuple):
    """A test case: its name, and why it failed, in short and in full; empty if it did not."""

    name: str
    failure: str = ""
    details: str = ""


def junit_document(command: str, cases: Sequence[Case], seconds: float) -> str:
    """Return a test report.

    >>> '<testcase classname="pindown.audit" name="a" />' in junit_document("audit", [Case("a")], 1.0)
    True
    """
    suite = ElementTree.Element("testsuite", name=f"pindown {command}")
    for name, failure, details in cases:
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"pindown.{command}", name=printable(name)
        )
        if failure:
            wrong = ElementTree.SubElement(case, "failure", message=printable(failure))
            wrong.text = printable(details or failure)
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(bool(case.failure) for case in cases)))
    suite.set("time", f"{seconds:.3f}")
    ElementTree.indent(suite)
    text = ElementTree.tostring(suite, encoding="unicode")
    return visible(f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n')
