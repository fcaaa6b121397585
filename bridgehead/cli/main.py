"""The `bridgehead` command.

An error is one sentence on standard error and an exit code of `bridgehead.exit_codes`; `--debug`
shows the stack trace instead.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` imports more and takes longer
import sys


def main() -> None:
    """Run the command line and exit."""
    # The imports take a quarter of a second. Until they end, Python's handler is off, so that
    # Ctrl-C prints no stack trace.
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    if sys.argv[1:2] == ["up"] and "--detach" in sys.argv and "--help" not in sys.argv:
        # The supervisor imports its modules while this process imports its own.
        from bridgehead.cluster.launch import prepare

        prepare()
    from bridgehead.cli.closed_output import quiet_when_output_is_closed
    from bridgehead.cli.commands import build_app
    from bridgehead.cli.options import say_on_stderr
    from bridgehead.exit_codes import ExitCode

    try:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        with quiet_when_output_is_closed():
            build_app()(prog_name="bridgehead")
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except Exception as error:
        if "--debug" in sys.argv[1:]:
            raise
        # Imported here: the module imports asyncio, which takes a quarter of the time of `--help`.
        from bridgehead.cluster.errors import ClusterError

        sentence = str(error)
        if not isinstance(error, ClusterError):
            sentence = f"Unexpected {type(error).__name__}: {error} (--debug shows where)."
        say_on_stderr(f"bridgehead: {sentence}")
        sys.exit(ExitCode.CANNOT_RUN)


if __name__ == "__main__":
    main()
