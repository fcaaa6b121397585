"""The result of one run of one scenario, and the result files for programs."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from chaos.scenario import LOCAL, Expectation
from judge.verdicts import Verdict

SCHEMA_VERSION: Final = 1
_JSON: Final = "results.json"
_JUNIT: Final = "junit.xml"


@dataclass(slots=True, kw_only=True)
class Result:
    """One run. `wrong` has sentences that say why it did not pass."""

    scenario: str
    seed: int
    tier: str
    folder: str
    bugs: tuple[str, ...] = ()  # seeded into the nodes by `--bugs`
    properties: tuple[str, ...] = ()  # NAME=VALUE, set for all brokers by `--set`
    verdict: Verdict = Verdict.CRASHED
    wrong: list[str] = field(default_factory=list)
    page: str = ""  # a file that shows the run; only if the run did not pass
    violated: tuple[str, ...] = ()
    acknowledged: int = 0
    open: int = 0  # operations without a definite result
    elections: int = 0  # after the first fault, or, without faults, after the first success
    longest_gap_s: float = 0.0  # the longest time between two consecutive successes
    seconds: float = 0.0
    digest: str = ""  # of the history; "" in the tier `local`, where runs of one seed differ

    @property
    def replay(self) -> str:
        """The command that runs the scenario again with the same seed."""
        tier = "" if self.tier == LOCAL else f" --tier {self.tier}"
        properties = "".join(f" --set {property_}" for property_ in self.properties)
        bugs = f" --bugs {','.join(self.bugs)}" if self.bugs else ""
        return f"bridgehead chaos run {self.scenario} --seed {self.seed}{tier}{bugs}{properties}"


def decide(
    expects: Expectation, *, judged: Verdict, violated: Sequence[str], wrong: Sequence[str]
) -> Verdict:
    """Return the verdict on a run.

    `judged` is the judge's verdict on the properties that the scenario does not expect to be
    violated. `violated` are the properties that the judge found violated. `wrong` are the
    differences from the scenario's other expectations.
    """
    if set(expects.violates) - set(violated):
        return Verdict.FAIL
    if expects.violates and expects.may_violate_others:
        return Verdict.PASS
    return Verdict.FAIL if wrong else judged


def differences(
    expects: Expectation,
    *,
    elections: int,
    open_operations: int,
    acknowledged: int,
    longest_gap_s: float = 0.0,
) -> list[str]:
    """Return in sentences what differs from the expectation."""
    least, most = expects.elections
    seen = []
    if elections < least or (most is not None and elections > most):
        bound = f"at least {least}" if most is None else f"{least} to {most}"
        seen.append(f"{elections} elections; expected {bound}")
    if expects.open_max is not None and open_operations > expects.open_max:
        seen.append(
            f"{open_operations} operations without a definite result; expected at most "
            f"{expects.open_max}"
        )
    if expects.gap_max_s is not None and longest_gap_s > expects.gap_max_s:
        seen.append(
            f"no operation succeeded for {longest_gap_s:.1f} s; expected at most "
            f"{expects.gap_max_s:g} s"
        )
    if acknowledged < expects.acknowledged_min:
        seen.append(
            f"{acknowledged} operations succeeded; expected at least {expects.acknowledged_min}"
        )
    return seen


def remove_files(folder: Path) -> None:
    """Remove the result files of earlier runs: the new runs may end before they have results."""
    for name in (_JSON, _JUNIT):
        (folder / name).unlink(missing_ok=True)


def write_files(folder: Path, results: Sequence[Result]) -> None:
    """Write results.json and junit.xml."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "runs": [{**asdict(result), "replay": result.replay} for result in results],
    }
    (folder / _JSON).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    ElementTree.ElementTree(_junit(results)).write(
        folder / _JUNIT, encoding="utf-8", xml_declaration=True
    )


def _junit(results: Sequence[Result]) -> ElementTree.Element:
    failed = sum(result.verdict in (Verdict.FAIL, Verdict.HANG) for result in results)
    passed = sum(result.verdict is Verdict.PASS for result in results)
    suite = ElementTree.Element(
        "testsuite",
        name="bridgehead chaos",
        tests=str(len(results)),
        failures=str(failed),
        errors=str(len(results) - failed - passed),
        time=f"{sum(result.seconds for result in results):.3f}",
    )
    for result in results:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"chaos.{result.tier}",
            name=f"{result.scenario}[{result.seed}]",
            time=f"{result.seconds:.3f}",
        )
        if result.verdict is not Verdict.PASS:
            is_failure = result.verdict in (Verdict.FAIL, Verdict.HANG)
            problem = ElementTree.SubElement(case, "failure" if is_failure else "error")
            problem.set("message", f"{result.verdict}: {'; '.join(result.wrong[:1])}")
            shown = [f"page: {result.page}"] if result.page else []
            problem.text = "\n".join([*result.wrong, f"replay: {result.replay}", *shown])
    return suite
