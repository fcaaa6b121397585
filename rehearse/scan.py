"""`python -m rehearse.scan`: the command behind `bridgehead rehearse scan`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import orjson

from judge.exit_codes import CANNOT_RUN, FAILED
from judge.terminal import complain
from rehearse.cluster import Cluster
from rehearse.findings import KAFKA_VERSIONS
from rehearse.scan_report import Report
from rehearse.sources.arguments import add_source_arguments, read_source
from rehearse.znodes import SourceError


def main(arguments: Sequence[str] | None = None) -> int:
    """Scan a source; return the exit code."""
    parser = argparse.ArgumentParser(prog="scan", description=__doc__)
    add_source_arguments(parser)
    parser.add_argument("--kafka", choices=KAFKA_VERSIONS, default=KAFKA_VERSIONS[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--junit", metavar="FILE", type=Path)
    options = parser.parse_args(arguments)
    try:
        source, tree, properties = read_source(options)
        report = Report.of(source, Cluster(tree, properties), options.kafka)
        if options.junit is not None:
            _write_junit(options.junit, report)
    except SourceError as error:
        complain(error)
        return CANNOT_RUN
    if options.json:
        document = orjson.dumps(report.document(), option=orjson.OPT_INDENT_2)
        sys.stdout.write(document.decode() + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in report.lines())
    return FAILED if report.fails else 0


def _write_junit(file: Path, report: Report) -> None:
    try:
        tree = ElementTree.ElementTree(report.junit())
        tree.write(file, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise SourceError(f"{file} cannot be written: {error.strerror}.") from None


if __name__ == "__main__":
    sys.exit(main())
