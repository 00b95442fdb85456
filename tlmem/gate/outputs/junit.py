"""A decision as JUnit XML: a suite for each program, a case for each budget.

Over budget is a failure, not to be judged is an error. Covers: the elements that Jenkins, GitLab
and GitHub's actions read. Source: the JUnit schema of Jenkins' xunit plugin.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as xml

from tlmem.gate.decision import OVER, UNKNOWN, UNSURE, BudgetResult, Checked, Result
from tlmem.gate.outputs.locations import blamed, name_of, path_of, relative
from tlmem.gate.outputs.text import blame, program

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(checked: Checked) -> str:
    """One XML document, with a line feed at its end."""
    suites = xml.Element("testsuites", name="tlmem check")
    for result in checked.results:
        _suite(suites, result)
    for file in checked.unreadable:
        suite = xml.SubElement(
            suites, "testsuite", name=_clean(str(file.path)), tests="1", failures="0", errors="1"
        )
        case = xml.SubElement(suite, "testcase", classname="tlmem check", name="recording")
        xml.SubElement(case, "error", message=_clean(file.sentence)).text = _clean(file.sentence)
    cases = list(suites.iter("testcase"))
    suites.set("tests", str(len(cases)))
    suites.set("failures", str(len(list(suites.iter("failure")))))
    suites.set("errors", str(len(list(suites.iter("error")))))
    xml.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(suites, "unicode") + "\n"


def _suite(suites: xml.Element, result: Result) -> None:
    name = _clean(name_of(result) + (f", {result.process}" if result.process else ""))
    seconds = f"{result.subject.summary.processes[0].recording.seconds:.3f}"
    suite = xml.SubElement(suites, "testsuite", name=f"tlmem check {name}", time=seconds)
    for row in result.rows:
        case = xml.SubElement(suite, "testcase", classname=f"tlmem.{name}", name=_clean(row.name))
        finding = blamed(row)
        if finding is not None and finding.site is not None:
            case.set("file", _clean(relative(finding.site.file)))
            case.set("line", str(finding.site.line))
        if row.state == OVER:
            _told(xml.SubElement(case, "failure", type="over-budget"), row)
        elif row.state == UNKNOWN or row.state == UNSURE and result.strict:
            _told(xml.SubElement(case, "error", type="cannot-judge"), row)
    if result.refused:
        case = xml.SubElement(suite, "testcase", classname=f"tlmem.{name}", name="recording")
        sentence = _clean(" ".join(doubt.sentence for doubt in result.refused))
        xml.SubElement(case, "error", type="cannot-judge", message=sentence).text = sentence
    properties = xml.Element("properties")
    xml.SubElement(properties, "property", name="recording", value=_clean(path_of(result)))
    xml.SubElement(properties, "property", name="verdict", value=result.verdict.outcome)
    suite.insert(0, properties)
    xml.SubElement(suite, "system-out").text = _clean(program(result))
    for count, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        suite.set(count, str(len(list(suite.iter(tag)))))


def _told(element: xml.Element, row: BudgetResult) -> None:
    element.set("message", _clean(row.sentence))
    element.text = _clean("\n".join([row.sentence, *blame(row)]))


def _clean(text: str) -> str:
    """A text without what XML cannot hold, such as control characters in a file's name."""
    return NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
