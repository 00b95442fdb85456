"""A pytest plugin that writes one JSON line when a test begins and one when it has ended.

It writes as it goes, so that the test in which a process dies can be named.
"""

import json
import os

_file = None
_outcomes = {}


def pytest_configure(config):
    global _file
    _file = open(os.environ["FOREIGN_OUTCOMES"], "w", encoding="utf-8", buffering=1)


def pytest_unconfigure(config):
    _file.close()


def _write(test, outcome):
    _file.write(json.dumps([test, outcome]) + "\n")


def pytest_collectreport(report):
    if report.failed:
        _write(report.nodeid, "not collected")


def pytest_runtest_logstart(nodeid, location):
    _outcomes[nodeid] = "passed"
    _write(nodeid, "began")


def pytest_runtest_logreport(report):
    if report.failed:
        _outcomes[report.nodeid] = "failed" if report.when == "call" else "error"
    elif hasattr(report, "wasxfail"):
        _outcomes[report.nodeid] = "xfailed" if report.skipped else "xpassed"
    elif report.skipped:
        _outcomes[report.nodeid] = "skipped"
    if report.when == "teardown":
        _write(report.nodeid, _outcomes.pop(report.nodeid))
