"""`python -m rehearse.dumping`: the command behind `bridgehead zookeeper dump`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from judge.exit_codes import CANNOT_RUN
from judge.terminal import complain, say
from rehearse.sources.arguments import add_source_arguments, read_source
from rehearse.sources.dump import read_key, write_dump
from rehearse.znodes import Hidden, SourceError


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a dump; return the exit code."""
    parser = argparse.ArgumentParser(prog="dump", description=__doc__)
    add_source_arguments(parser, dumps=False)
    parser.add_argument("--to", metavar="FILE", type=Path, required=True)
    parser.add_argument("--seal", metavar="KEYFILE", type=Path)
    options = parser.parse_args(arguments)
    try:
        key = None if options.seal is None else read_key(options.seal, create=True)
        _, tree, _ = read_source(options)
        left_out = write_dump(tree, options.to, key)
    except SourceError as error:
        complain(error)
        return CANNOT_RUN
    say(f"{options.to}: {len(tree.znodes):,} znodes.")
    if left_out:
        how = (
            "left out; --seal KEYFILE keeps them" if key is None else f"sealed with {options.seal}"
        )
        say(f"Secrets of {left_out:,} znodes are {how}.")
    denied = sum(znode.hidden is Hidden.NO_AUTH for znode in tree.znodes.values())
    if denied:
        say(f"{denied:,} znodes cannot be read with these credentials.")
    if not tree.is_one_state:
        say("ZooKeeper was written to meanwhile: the dump is not of one moment.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
