"""TLC explains correct runs by spec/Forwarding.tla, and neither corrupted nor faulty ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from chaos.__main__ import main as chaos_main
from chaos.judging import judge_run
from chaos.reproduction import scenario_with
from chaos.result import Result
from chaos.scenario import SIMULATED
from chaos.scenarios import SCENARIOS
from chaos.simulated.replay import replay
from chaos.simulated.run import Runner, run
from judge.__main__ import main
from judge.evidence.reading import Evidence
from judge.evidence.run_lookup import read_run
from judge.spec import projection as p
from judge.spec import report as reporting
from judge.spec.explain import explain, locate
from judge.spec.projection import Slice, slices_of
from judge.spec.report import lines_of, report_on
from judge.spec.tlc import TlcError, TlcTimeoutError, find_jar
from judge.spec.whole import REQUESTS_MAX, NotWholeError, whole_run
from judge.verdicts import Verdict
from spec.__main__ import check
from spec.models import CONTROLS, MODELS
from spec.paths import follow, model_of, read_paths
from tests.kill_matrix.counterexamples import COUNTEREXAMPLES, Counterexample
from tests.kill_matrix.not_explained import EXPLAINED, NOT_EXPLAINED, Explained


@pytest.fixture(scope="module", autouse=True)
def _tlc() -> None:
    try:
        find_jar()
    except TlcError:
        pytest.skip("NOT TESTED: TLC is missing (make tlc-jar)")


def simulated(folder: Path, name: str, *bugs: str, seed: int = 1) -> Evidence:
    if bugs:
        scenario = scenario_with(name, bugs)
    else:
        (scenario,) = (scenario for scenario in SCENARIOS if scenario.name == name)
    run(scenario, seed, folder, lambda _sentence: None)
    return read_run(folder)


def test_the_smallest_model_holds_and_its_control_is_refuted() -> None:
    """`make spec` checks all of them."""
    model = next(model for model in MODELS if model.name == "lost_reply")
    assert check(model).violated == ""
    control = next(control for control in CONTROLS if control.part == "COUNTER")
    refuted = check(model, control.part)
    assert refuted.violated == control.invariant
    actions = [action for action, _ in refuted.trace]
    assert actions.count("Applied") == 2
    assert actions[-1] == "Applied"


# --- Paths ---------------------------------------------------------------------------------------


def test_tlc_follows_a_committed_path_and_no_other_one() -> None:
    """`make spec` follows all of them; `tests/unit/chaos/test_paths.py` replays them."""
    path = read_paths()["topic_existed"]
    end, outcome = follow(path.goal, path.steps)
    assert (end, outcome.violated) == (path.end, "NeverExists")
    with pytest.raises(TlcError, match="does not have this path any more"):
        follow(path.goal, [step for step in path.steps if step[0] != "Applied"])


FAULTY = {
    part: replay for part, replay in COUNTEREXAMPLES.items() if isinstance(replay, Counterexample)
}


def replay_of(name: str, folder: Path, *bugs: str) -> Evidence:
    path = read_paths()[name]
    end = replay(path.steps, model_of(path.goal).requests, folder / "run", frozenset(bugs))
    return read_run(end.folder)


def test_replays_are_explained_and_counterexamples_on_faulty_nodes_are_not(tmp_path: Path) -> None:
    """Also the replays of counterexamples on correct nodes, which depart from them.

    The specification explains some faulty nodes, too: `EXPLAINED` in `tests/kill_matrix`.
    """
    correct = [
        replace(slice_, name=name)
        for name in read_paths()
        for slice_ in slices_of(replay_of(name, tmp_path / name))[0]
    ]
    assert {slice_.name for slice_ in correct} == set(read_paths())
    assert explain(correct) == []
    faulty = [
        replace(slice_, name=part)
        for part, of_part in FAULTY.items()
        for slice_ in slices_of(replay_of(part, tmp_path / f"{part}-faulty", of_part.bug))[0]
    ]
    assert {slice_.name for slice_ in faulty} == set(FAULTY)
    rejected = {part for part, of_part in FAULTY.items() if not of_part.is_explained}
    assert {misfit.name for misfit in explain(faulty)} == rejected


@pytest.mark.parametrize(("options", "status"), [((), 0), (("--spec",), 1)])
def test_the_specification_fails_a_run_that_the_other_judges_pass(
    options: tuple[str, ...], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request was executed twice in one multi, so its outcome shows one execution."""

    def run_faulty(_runner: Runner, seed: int, folder: Path) -> Result:
        path = read_paths()["JOINS"]
        bugs = frozenset({"executes_copies"})
        replay(path.steps, model_of(path.goal).requests, folder, bugs)
        result = Result(scenario="there_and_back", seed=seed, tier=SIMULATED, folder=str(folder))
        judge_run(scenario_with("there_and_back", ()), result, folder)
        assert result.violated == ()
        result.verdict = Verdict.PASS  # It has too few operations for the scenario.
        return result

    monkeypatch.setattr(Runner, "run", run_faulty)
    arguments = ["run", "there_and_back", "--tier", SIMULATED, "--out", str(tmp_path), *options]
    assert chaos_main(arguments) == status
    (run,) = json.loads((tmp_path / "results.json").read_text())["runs"]
    assert run["verdict"] == ("FAIL" if options else "PASS")
    if options:
        assert any("0 of 1 requests are explained" in line for line in run["wrong"])


# --- Corrupted evidence --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which the controller was killed and a request was resent."""
    folder = tmp_path_factory.mktemp("run") / "run"
    simulated(folder, "controller_killed", seed=6)
    return folder


@pytest.fixture(scope="module")
def evidence(folder: Path) -> Evidence:
    return read_run(folder)


def test_the_command_counts_the_explained_requests(
    folder: Path, evidence: Evidence, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(folder), "--spec"]) == 0
    count = len({event["request_id"] for event in evidence.events if event["kind"] == p.SENT})
    assert count > REQUESTS_MAX
    assert capsys.readouterr().out.splitlines() == [
        f"PASS      {count} of {count} requests are explained by the specification",
        f"          not checked together: the run has {count} requests, "
        f"the limit is {REQUESTS_MAX}",
    ]


@dataclass
class Corruption:
    """Changes the evidence of one request."""

    evidence: Evidence
    request_id: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return cast(list[dict[str, Any]], self.evidence.events)

    def of_request(self, kind: str) -> list[dict[str, Any]]:
        return [
            event
            for event in self.events
            if event["kind"] == kind and event.get("request_id") == self.request_id
        ]

    @property
    def commit_at(self) -> int:
        """The index of the transaction with the request's outcome."""
        (at,) = (
            at
            for at, line in enumerate(self.evidence.commits)
            if any(outcome.request_id == self.request_id for outcome in line.outcomes)
        )
        return at

    def of_commit(self, kind: str) -> dict[str, Any]:
        """The event about the commit with the request's outcome."""
        (started,) = self.of_request(p.STARTED)
        acknowledged = next(
            event
            for event in self.events
            if event["kind"] == p.COMMIT_DONE
            and event["zxid"] == self.evidence.commits[self.commit_at].zxid
        )
        return next(
            event
            for event in self.events
            if event["kind"] == kind
            and event["number"] == acknowledged["number"]
            and (event["node"], event["boot"]) == (started["node"], started["boot"])
        )

    def drop(self, event: dict[str, Any]) -> None:
        self.events.remove(event)


def dropped(kind: str, at: int = 0) -> Callable[[Corruption], None]:
    return lambda c: c.drop(c.of_request(kind)[at])


def changed(kind: str, at: int = 0, **fields: Any) -> Callable[[Corruption], None]:
    return lambda c: c.of_request(kind)[at].update(fields)


def increased(kind: str, field: str) -> Callable[[Corruption], None]:
    def corrupt(c: Corruption) -> None:
        c.of_request(kind)[-1][field] += 1

    return corrupt


def commit_increased(kind: str, field: str) -> Callable[[Corruption], None]:
    def corrupt(c: Corruption) -> None:
        c.of_commit(kind)[field] += 1

    return corrupt


def transaction_dropped(c: Corruption) -> None:
    del c.evidence.commits[c.commit_at]


def transaction_of_another_session(c: Corruption) -> None:
    commits, at = c.evidence.commits, c.commit_at
    commits[at] = replace(commits[at], session="0xbad")


def committed_twice(c: Corruption) -> None:
    commits, at = c.evidence.commits, c.commit_at
    later = next(i for i in range(at + 1, len(commits)) if commits[i].outcomes)
    commits[later] = replace(
        commits[later], outcomes=[*commits[later].outcomes, *commits[at].outcomes]
    )


def decided_before_the_commit(c: Corruption) -> None:
    (started,), (decided,) = c.of_request(p.STARTED), c.of_request(p.DECIDED)
    decided["mono_ns"] = started["mono_ns"] + 1


def executed_before_the_term(c: Corruption) -> None:
    (started,) = c.of_request(p.STARTED)
    active = next(
        event
        for event in c.events
        if event["kind"] == p.ACTIVE and event["epoch"] == started["epoch"]
    )
    active["mono_ns"] = started["mono_ns"] + 1


def term_never_began(c: Corruption) -> None:
    (started,) = c.of_request(p.STARTED)
    c.drop(
        next(
            event
            for event in c.events
            if event["kind"] == p.ACTIVE and event["epoch"] == started["epoch"]
        )
    )


CORRUPTIONS: dict[str, Callable[[Corruption], None]] = {
    "the first attempt is missing": dropped(p.SENT),
    "the last attempt is missing": dropped(p.SENT, -1),
    "no Envelope arrived": dropped(p.RECEIVED, -1),
    "nothing was executed": dropped(p.STARTED),
    "nothing was decided": dropped(p.DECIDED),
    "no reply came": dropped(p.REPLIED, -1),
    "the first attempt never ended": dropped(p.REPLIED),
    "no multi was sent": lambda c: c.drop(c.of_commit(p.COMMIT_SENT)),
    "the multi was not acknowledged": lambda c: c.drop(c.of_commit(p.COMMIT_DONE)),
    "ZooKeeper did not commit it": transaction_dropped,
    "another session committed it": transaction_of_another_session,
    "ZooKeeper committed it twice": committed_twice,
    "the multi has another number": commit_increased(p.COMMIT_SENT, "number"),
    "the multi has another epoch": commit_increased(p.COMMIT_SENT, "epoch"),
    "the multi has another zxid": commit_increased(p.COMMIT_DONE, "zxid"),
    "it was executed in another epoch": increased(p.STARTED, "epoch"),
    "it was decided in another epoch": increased(p.DECIDED, "epoch"),
    "it was decided before the commit": decided_before_the_commit,
    "it was executed before the term": executed_before_the_term,
    "the term never began": term_never_began,
    "the reply has another zxid": increased(p.REPLIED, "zxid"),
    "the reply has other bytes": changed(p.REPLIED, -1, **{p.DIGEST: "ab"}),
    "an attempt is counted twice": increased(p.SENT, "attempt"),
    "the client got NOT_CONTROLLER": changed(p.RESPONDED, error=41),
}


def resent_request(evidence: Evidence) -> str:
    """Return a request with two attempts that was executed once; its commit was acknowledged."""
    attempts = {
        e["request_id"] for e in evidence.events if e["kind"] == p.SENT and e["attempt"] == 2
    }
    acknowledged = {e["zxid"] for e in evidence.events if e["kind"] == p.COMMIT_DONE}
    committed = [
        outcome.request_id
        for line in evidence.commits
        if line.zxid in acknowledged
        for outcome in line.outcomes
    ]
    started = [e["request_id"] for e in evidence.events if e["kind"] == p.STARTED]
    return min(r for r in attempts if committed.count(r) == started.count(r) == 1)


def slices_named(evidence: Evidence, name: str) -> Iterator[Slice]:
    slices, too_large = slices_of(evidence)
    assert too_large == []
    return (slice_ for slice_ in slices if slice_.name == name)


def test_correct_evidence_is_explained_and_no_corrupted_evidence_is(evidence: Evidence) -> None:
    assert explained_after_corruption(evidence) == {"nothing is changed"}


def test_a_resend_needs_the_end_of_the_attempt_before(tmp_path: Path) -> None:
    """Also if the attempt's controller has resigned, as it does in this run."""
    evidence = simulated(tmp_path / "run", "controller_pause_past_session")
    resent = {e["request_id"] for e in evidence.events if e["kind"] == p.SENT and e["attempt"] == 2}
    slices: list[Slice] = []
    for request_id in resent:
        corruption = Corruption(deepcopy(evidence), request_id)
        corruption.drop(corruption.of_request(p.REPLIED)[0])
        slices += slices_named(corruption.evidence, request_id)
    assert {misfit.name for misfit in explain(slices)} == resent != set()


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_local_run_is_explained_and_no_corruption_of_it_is(tmp_path: Path) -> None:
    arguments = ["run", "controller_killed", "--seed", "42", "--spec", "--out", str(tmp_path)]
    assert chaos_main(arguments) == 0
    evidence = read_run(tmp_path / "controller_killed-42")
    assert explained_after_corruption(evidence) == {"nothing is changed"}


def explained_after_corruption(evidence: Evidence) -> set[str]:
    """Return after which corruptions of one request TLC still explains it."""
    request_id = resent_request(evidence)
    (correct,) = slices_named(evidence, request_id)
    slices = {"nothing is changed": correct}
    for name, corrupt in CORRUPTIONS.items():
        corruption = Corruption(deepcopy(evidence), request_id)
        corrupt(corruption)
        (slices[name],) = slices_named(corruption.evidence, request_id)
    misfits = explain([replace(slice_, name=name) for name, slice_ in slices.items()])
    return set(slices) - {misfit.name for misfit in misfits}


def test_the_first_entry_that_does_not_fit_is_named(evidence: Evidence) -> None:
    corruption = Corruption(deepcopy(evidence), resent_request(evidence))
    corruption.of_request(p.REPLIED)[-1]["zxid"] += 1
    (slice_,) = slices_named(corruption.evidence, corruption.request_id)
    misfit = locate(slice_)
    assert misfit.candidates == [text for text in slice_.texts[0] if p.REPLIED in text][-1:]
    assert any(p.DECIDED in text for text in misfit.explained)


def test_a_run_without_forwarded_requests_is_nodata(evidence: Evidence) -> None:
    without = deepcopy(evidence)
    without.events = [e for e in without.events if e["kind"] not in (p.SENT, p.RECEIVED, p.STARTED)]
    assert report_on(without).verdict is Verdict.NODATA


# --- All requests together -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A run with two failovers, in which a floor is stored while a request is resent."""
    return simulated(tmp_path_factory.mktemp("small") / "run", "random_faults", seed=53)


@pytest.mark.timeout(600)
def test_one_behaviour_explains_all_requests_of_a_small_run(small_run: Evidence) -> None:
    report = report_on(small_run)
    count = len(dict(p.Run(small_run).identities()))
    assert lines_of(report) == [
        f"PASS      {count} of {count} requests are explained by the specification",
        "          one behaviour explains all of them together",
    ]
    assert len(whole_run(small_run).requests) == count


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [18, 24, 41])
def test_rare_courses_of_events_are_explained_as_a_whole(seed: int, tmp_path: Path) -> None:
    """A round begins after withheld responses (18), a killed process had not written a multi (24),
    and a floor rises while a lower one is stored (41).
    """
    report = report_on(simulated(tmp_path / "run", "random_faults", seed=seed))
    assert lines_of(report)[1:] == ["          one behaviour explains all of them together"]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_only_the_whole_run_shows_a_floor_that_is_not_stored(tmp_path: Path) -> None:
    """Without the bug, the run is explained: see the test above."""
    bug = "takes_raised_floors_for_stored"
    report = report_on(simulated(tmp_path / "run", "random_faults", bug, seed=41))
    assert (report.verdict, report.unexplained) == (Verdict.FAIL, 0)
    assert "          no behaviour explains all of them together" in lines_of(report)


def move(evidence: Evidence, moved: int, zxids: dict[int, int]) -> None:
    """Change zxids in ZooKeeper's log and in all events. `moved` is not in the images any more."""
    images = zxids | {moved: moved - 1, zxids[moved]: zxids[moved]}
    evidence.commits = sorted(
        (replace(line, zxid=zxids.get(line.zxid, line.zxid)) for line in evidence.commits),
        key=lambda line: line.zxid,
    )
    for event in cast(list[dict[str, Any]], evidence.events):
        for name, changed_to in (("zxid", zxids), ("image_zxid", images)):
            if name in event:
                event[name] = changed_to.get(event[name], event[name])


def two_commits_are_swapped(evidence: Evidence) -> str:
    """Of two requests in one term; the second one is executed after the first commit."""
    run = p.Run(evidence)
    done = {e["zxid"]: e["mono_ns"] for e in evidence.events if e["kind"] == p.COMMIT_DONE}
    begun = {tuple(e["identity"]): e["mono_ns"] for e in run.events if e["kind"] == p.STARTED}
    first, second = next(
        (first, second)
        for first, second in pairwise(run.commits)
        if first.elements and second.elements and first.session == second.session
        if done[first.zxid] < min(begun[identity] for identity in second.elements)
    )
    move(evidence, first.zxid, {first.zxid: second.zxid, second.zxid: first.zxid})
    return f"commit {second.number}, zxid {first.zxid}"


def an_old_terms_commit_is_late(evidence: Evidence) -> str:
    """It comes between the first two commits of the next term; its request had ended before."""
    run = p.Run(evidence)
    old, new = run.terms[:2]
    ended = {identity: run.of_request[name][-1]["mono_ns"] for name, identity in run.identities()}
    moved = [
        commit
        for commit in run.commits
        if commit.session == old.session and commit.elements
        if all(ended[identity] < new.claimed_ns for identity in commit.elements)
    ][-1]
    before, after = [c.zxid for c in run.commits if c.session == new.session][:2]
    between = [line.zxid for line in run.lines if moved.zxid < line.zxid <= before]
    assert before < after
    move(evidence, moved.zxid, {zxid: zxid - 1 for zxid in between} | {moved.zxid: before})
    return f", commit {moved.number}"  # It was acknowledged before the next term.


def a_floor_is_above_a_resend(evidence: Evidence) -> str:
    """The outcome of a request is pruned, and then its broker resends it."""
    run = p.Run(evidence)
    for commit in run.commits:
        term = next(term for term in run.terms if term.session == commit.session)
        sent = next(
            event
            for event in run.of_boot[term.node, term.boot]
            if event["kind"] == p.COMMIT_SENT and event["number"] == commit.number
        )
        for name, (broker, incarnation, sequence) in run.identities():
            attempts = [e["mono_ns"] for e in run.of_request[name] if e["kind"] == p.SENT]
            if (str(broker), incarnation) in commit.floors and (
                attempts[0] < sent["mono_ns"] < attempts[-1]
            ):
                path = f"/bridgehead/floors/{broker}-{incarnation}"
                at = next(i for i, line in enumerate(evidence.commits) if line.zxid == commit.zxid)
                line = evidence.commits[at]
                operations = [
                    replace(o, data=str(sequence + 1)) if o.path == path else o
                    for o in line.operations
                ]
                evidence.commits[at] = replace(line, operations=operations)
                return f"the floors in {p.COMMIT_SENT} of node {term.node}, seq {sent['seq']}"
    raise AssertionError("no floor was stored while a request was resent")


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "corrupt", [two_commits_are_swapped, an_old_terms_commit_is_late, a_floor_is_above_a_resend]
)
def test_only_the_whole_run_shows_that_requests_do_not_fit_together(
    corrupt: Callable[[Evidence], str], small_run: Evidence
) -> None:
    corrupted = deepcopy(small_run)
    unfit = corrupt(corrupted)
    report = report_on(corrupted)
    assert report.unexplained == 0  # Each request alone is explained.
    assert report.verdict is Verdict.FAIL
    (misfit,) = report.misfits
    assert any(c.startswith(unfit) or c.endswith(unfit) for c in misfit.candidates)
    assert misfit.explained
    assert "          no behaviour explains all of them together" in lines_of(report)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", ["WAITS", "LEASE"])
def test_the_whole_run_shows_bugs_that_one_request_does_not(part: str, tmp_path: Path) -> None:
    """Without the bug, nodes that follow the counterexample are explained."""
    assert explain([whole_run(replay_of(part, tmp_path / "correct"))]) == []
    faulty = replay_of(part, tmp_path / "faulty", FAULTY[part].bug)
    assert explain(slices_of(faulty)[0]) == []
    report = report_on(faulty)
    assert (report.verdict, report.unexplained, len(report.misfits)) == (Verdict.FAIL, 0, 1)


def test_a_run_that_is_not_small_is_not_explained_as_a_whole(evidence: Evidence) -> None:
    with pytest.raises(NotWholeError, match=r"the run has \d+ requests, the limit is \d+"):
        whole_run(evidence)


def test_a_whole_run_that_takes_too_long_is_unknown(
    small_run: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explain_slices(slices: list[Slice]) -> list[Slice]:
        if slices[0].is_whole:
            raise TlcTimeoutError("TLC was still running after 7 s.")
        return []

    monkeypatch.setattr(reporting, "explain", explain_slices)
    report = report_on(small_run)
    assert report.verdict is Verdict.UNKNOWN
    assert lines_of(report)[1:] == [
        "          not checked together: TLC was still running after 7 s."
    ]


def test_topics_of_another_program_are_not_explained_as_a_whole(small_run: Evidence) -> None:
    other = deepcopy(small_run)
    at, line = next(
        (at, line)
        for at, line in enumerate(other.commits)
        if any(o.kind == "delete" and o.path.startswith(p.TOPICS) for o in line.operations)
    )
    operations = [o for o in line.operations if o.path != p.COUNTER]
    other.commits[at] = replace(line, operations=operations)
    with pytest.raises(NotWholeError, match="another program has changed topics of the run"):
        whole_run(other)


# --- Faulty nodes --------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.soak  # TLC searches every behaviour of a request before it gives up
@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", NOT_EXPLAINED, ids="-".join)
def test_the_run_of_a_faulty_node_is_not_explained(case: tuple[str, ...], tmp_path: Path) -> None:
    scenario, *bugs = case
    slices, _ = slices_of(simulated(tmp_path / "run", scenario, *bugs))
    assert explain(slices)


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", [case for case in EXPLAINED if case.scenario], ids=lambda c: c.bug)
def test_the_run_of_a_bug_about_times_is_explained(case: Explained, tmp_path: Path) -> None:
    slices, _ = slices_of(simulated(tmp_path / "run", case.scenario, case.bug))
    assert slices
    assert explain(slices) == []
