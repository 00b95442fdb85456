"""Compares a plain run with a recorded one, and runs again what differs, both ways."""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase

from foreign.running import PROCESS, Recordings, Run
from foreign.suites import Part

AGAIN = 2
"""How often what differs is run again, plain and recorded in turn."""
MISSING = "not run"

Runner = Callable[[Part, bool], Run]


@dataclass
class Difference:
    """One test whose outcomes were not all the same."""

    test: str
    plain: list[str]
    recorded: list[str]

    @property
    def flaky(self) -> bool:
        """Plain and recorded runs have an outcome in common: the recorder does not decide."""
        return bool(set(self.plain) & set(self.recorded))


@dataclass
class Result:
    """What comparing one part came to; what is kept of it."""

    suite: str
    part: str
    tests: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    plain_seconds: float = 0.0
    recorded_seconds: float = 0.0
    different: list[Difference] = field(default_factory=list)
    flaky: list[Difference] = field(default_factory=list)
    recordings: Recordings = field(default_factory=Recordings)
    ending: str = ""

    def as_dict(self) -> dict:
        """For a file of JSON."""
        return asdict(self)


def result_of(kept: dict) -> Result:
    """The result that ``as_dict`` was made from."""
    read = dict(kept)
    for name in ("different", "flaky"):
        read[name] = [Difference(**each) for each in read[name]]
    return Result(**{**read, "recordings": Recordings(**read["recordings"])})


def compare(part: Part, run: Runner) -> Result:
    """Runs a part plain and recorded, and again where tests differ.

    Args:
        part: what to run.
        run: runs a part, recorded or not.
    """
    plain, recorded = run(part, False), run(part, True)
    differing = _differing(plain, recorded)
    runs = {False: [plain], True: [recorded]}
    if differing:
        again = _narrowed(part, differing)
        for _ in range(AGAIN):
            for way in (False, True):
                runs[way].append(run(again, way))
    found = [
        Difference(
            test,
            [each.outcomes.get(test, MISSING) for each in runs[False]],
            [each.outcomes.get(test, MISSING) for each in runs[True]],
        )
        for test in differing
    ]
    tests = {test: outcome for test, outcome in plain.outcomes.items() if test != PROCESS}
    assert recorded.recordings is not None
    return Result(
        part.suite,
        part.name,
        len(tests),
        dict(sorted(Counter(tests.values()).items())),
        round(plain.seconds, 1),
        round(recorded.seconds, 1),
        [each for each in found if not each.flaky],
        [each for each in found if each.flaky],
        recorded.recordings,
        plain.outcomes[PROCESS],
    )


def _differing(plain: Run, recorded: Run) -> list[str]:
    both = dict.fromkeys([*plain.outcomes, *recorded.outcomes])
    return [name for name in both if plain.outcomes.get(name) != recorded.outcomes.get(name)]


def _narrowed(part: Part, tests: list[str]) -> Part:
    """The part, or of a folder of a package only the files with these tests.

    Where nothing but the end of the process differs, the whole part is run again.
    """
    files = {test.split("::")[0] for test in tests if test != PROCESS}
    if part.suite == "cpython" or not files or not all(name.endswith(".py") for name in files):
        return part
    return Part(part.suite, part.name, tuple(sorted(files)))


EXPLAINED: dict[str, str] = {}
"""``suite test`` with wildcards -> why the recorder cannot give the same outcome."""


def reason(suite: str, test: str) -> str | None:
    """Why a test differs, where that is known and cannot be otherwise."""
    found = (why for name, why in EXPLAINED.items() if fnmatchcase(f"{suite} {test}", name))
    return next(found, None)
