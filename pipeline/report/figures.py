"""The figures of one run that `pipeline trends` compares with the figures of other runs."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from judge.report.failovers import failovers
from judge.report.names import api_name
from judge.verdicts import worst
from pipeline.report.collect import Content

FIGURES: Final = "figures.json"
SCHEMA_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One run. `failover_ms` has the median of each part, by its name, over all failovers."""

    run: str
    verdict: str
    scenario: str | None
    seed: int | None
    version: str
    started_ms: int
    properties: Mapping[str, str]  # the verdict by id, except NODATA
    names: Mapping[str, str]  # the name by id
    failovers: int
    failover_ms: Mapping[str, float]
    hops: Mapping[str, Mapping[str, float]]  # p50_us and p99_us, by hop and API


def figures(content: Content) -> Figures:
    """Return the figures of a run."""
    recorded = content.run.manifest.run
    failover_parts = [dict(parts) for _, parts in failovers(content.rows["terms"])]
    names = list(dict.fromkeys(name for parts in failover_parts for name in parts))
    shown = [row for row in content.verdicts if row.verdict != "NODATA"]
    return Figures(
        run=content.run.id,
        verdict=worst(content.verdicts),
        scenario=recorded.scenario,
        seed=recorded.seed,
        version=recorded.versions.get("bridgehead", "unknown"),
        started_ms=recorded.started_ms,
        properties={row.property: str(row.verdict) for row in shown},
        names={row.property: row.name for row in shown},
        failovers=len(failover_parts),
        failover_ms={
            name: statistics.median(parts.get(name, 0.0) for parts in failover_parts)
            for name in names
        },
        hops=_hops(content.rows["latency"]),
    )


def _hops(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the latency of each hop, for the API with the most forwarded requests on this hop."""
    most: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        if row["route"] in ("FORWARD", "COMMIT"):
            highest = most.get(row["hop"])
            if highest is None or row["requests"] > highest["requests"]:
                most[row["hop"]] = row
    return {
        hop if hop == "ZooKeeper" else f"{hop} ({api_name(row['api_key'])})": {
            name: float(row[name]) for name in ("p50_us", "p99_us")
        }
        for hop, row in sorted(most.items())
    }


def figures_to_json(contents: Sequence[Content]) -> str:
    """Return the text of figures.json."""
    runs = [asdict(figures(content)) for content in contents]
    return json.dumps({"schema_version": SCHEMA_VERSION, "runs": runs}, indent=1) + "\n"


def figures_from_json(text: str) -> list[Figures]:
    """Read figures.json.

    Raises:
        ValueError: `figures_to_json` did not write this text.
    """
    try:
        document = json.loads(text)
        if document["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"its schema_version is not {SCHEMA_VERSION}")
        return [Figures(**run) for run in document["runs"]]
    except (KeyError, TypeError) as error:
        raise ValueError(f"it has another form ({error!r})") from error
