"""Writes docs/client-suites.md from the results of a run; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.fidelity.client_suites.suites import Suite
from tests.fidelity.client_suites.verdicts import Judged
from tools.markdown import one_line_per_paragraph

_HEAD: Final = """# The suites of released clients

The clients' own test suites run unmodified on a Bridgehead cluster of three brokers, and on a live
Kafka 3.9.1 cluster of three brokers. Both clusters have the same properties, except the properties
`bridgehead.*` and the properties of transactions. These commands run a suite:

```sh
git clone https://github.com/dpkp/kafka-python && git -C kafka-python checkout 3.0.11
make client-suites ARGS="--checkout kafka-python=$PWD/kafka-python --kafka"
```

`make client-suites` runs each suite for which `--checkout` names a folder. With `--kafka` it runs
the suites on Kafka, too; this needs `make kafka-jars`. Our pytest plugins
(`tests/fidelity/client_suites/plugins`) replace the fixtures that start brokers. The suites use the
released clients of `requirements/suites.lock`, not those of the checkouts.

`tests/fidelity/client_suites/reasons.py` lists tests that do not apply to a system, with reasons.
The exit code is 1 if a test fails that is not in this list, or if a test in the list does not fail.
In the tables, a test is *inapplicable* if it fails and is in this list, or if the suite itself
skips it.

The suites are written for a cluster of one broker, where a read sees every earlier write. On
Bridgehead, `bridgehead.metadata.blocking=cluster` ensures the same for three brokers. Kafka has no
such setting, so some tests depend on timing on Kafka. Other tests have short timeouts, such as one
second for DeleteRecords. Therefore a test that fails is run again, up to five times in total. The
second table names these tests.

Both clusters start with `min.insync.replicas=1` as a dynamic default, because a test of
confluent-kafka expects this config on every topic. A new Kafka 4.1 cluster has the same default.

`make client-suites ARGS="… --page docs/client-suites.md"` writes this page.
"""


@dataclass(frozen=True)
class Run:
    """The results of one suite on each system."""

    suite: Suite
    revision: str
    client_version: str
    judged: Mapping[str, Sequence[Judged]]


def page(runs: Sequence[Run]) -> str:
    """Return the page."""
    text = "\n".join((_HEAD, *_counts(runs), "", *_reasons(runs), ""))
    return one_line_per_paragraph(text)


def _counts(runs: Sequence[Run]) -> list[str]:
    lines = [
        "| suite | revision | client | system | passed | failed | inapplicable |",
        "|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        suite = f"[{run.suite.name}]({run.suite.repository}), {run.suite.tests}"
        for system, judged in run.judged.items():
            count = Counter(result.verdict for result in judged)
            lines.append(
                f"| {suite} | {run.revision} | {run.suite.client} {run.client_version} | {system} "
                f"| {count['passed']} | {count['failed']} | {count['inapplicable']} |"
            )
    return lines


def _reasons(runs: Sequence[Run]) -> list[str]:
    systems = list(runs[0].judged)
    lines = [
        "These tests did not pass at the first attempt on at least one system:",
        "",
        f"| suite | test | {' | '.join(systems)} | reason |",
        "|---|---|" + "---|" * (len(systems) + 1),
    ]
    for run in runs:
        by_system = {
            system: {result.test: result for result in judged}
            for system, judged in run.judged.items()
        }
        for test in next(iter(by_system.values())):
            results = [by_system[system][test] for system in systems]
            reasons = dict.fromkeys(result.reason or result.message for result in results)
            reasons.pop("", None)
            if reasons:
                verdicts = " | ".join(result.verdict for result in results)
                text = " ".join(" ".join(reasons).split())
                lines.append(f"| {run.suite.name} | `{test}` | {verdicts} | {text} |")
    return lines
