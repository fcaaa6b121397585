"""`make profile` assigns samples to the steps of a request."""

from pathlib import Path

from bench.node_profile import STEPS, shares

ROOT = Path(__file__).parents[3]
RUN = "run_forever (asyncio/base_events.py:603)"


def test_a_sample_belongs_to_its_innermost_known_frame() -> None:
    decide = "ControllerLoop._decide (controller/loop/loop.py:250)"
    append = "FileEventLog.append (event_log/writer.py:80)"
    counts = shares([f"{RUN};{decide} 3", f"{RUN};{decide};{append} 2", f"{RUN} 1"])
    assert counts == {"9 decide": 3, "evidence": 2, "event loop, sockets, other": 1}


def test_threads_that_wait_are_not_counted() -> None:
    kazoo = "selector_select (kazoo/handlers/utils.py:361)"
    assert not shares([f"{kazoo};EpollSelector.select (selectors.py:468) 9"])
    handler = "TlsHandler.select (zookeeper_client/tls_handler.py:58)"
    assert not shares([f"{handler};_wait (zookeeper_client/tls_handler.py:77) 9"])
    assert not shares(["Thread.run (threading.py:982);_worker (concurrent/futures/thread.py:81) 9"])
    assert not shares(
        ["Thread.run (threading.py:982);_Worker._work (node/assembly/policy_runner.py:99) 9"]
    )


def test_every_path_of_a_step_exists() -> None:
    paths = [path for _, group in STEPS for path in group.split()]
    ours = [path for path in paths if path not in ("grpc/", "kazoo/")]
    assert [p for p in ours if not list(ROOT.glob(p + ("" if p.endswith("/") else "*")))] == []
