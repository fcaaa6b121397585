"""Ends a command quietly when its output is closed, as in `bridgehead logs | head`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bridgehead.exit_codes import ExitCode


@contextmanager
def quiet_when_output_is_closed() -> Iterator[None]:
    """Exit with OUTPUT_CLOSED and without a message if standard output is closed.

    The default action of SIGPIPE would also end a command quietly, but it would kill a supervisor
    that writes to a closed socket.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _exit()
    except SystemExit as ended:  # typer has caught the error and chosen another exit code
        if isinstance(ended.__context__, BrokenPipeError):
            _exit()
        raise


def _exit() -> None:
    # The interpreter flushes standard output once more when it exits. This must not fail.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(ExitCode.OUTPUT_CLOSED)
