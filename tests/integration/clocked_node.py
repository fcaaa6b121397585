"""A node whose wall clock libfaketime shifts by the offset in the file `CLOCKS/ID`.

The monotonic clock is not changed.
The variables CLOCKS and LIBFAKETIME name the folder and the library. The file holds an offset in
seconds, such as `+3600`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    if "LD_PRELOAD" not in os.environ:
        broker_id = Path(sys.argv[sys.argv.index("--data-dir") + 1]).name
        clock = {
            "LD_PRELOAD": os.environ["LIBFAKETIME"],
            "FAKETIME_TIMESTAMP_FILE": f"{os.environ['CLOCKS']}/{broker_id}",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_CACHE_DURATION": "1",
        }
        # `exec` keeps the pid, which the supervisor watches.
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **clock})
    from node.__main__ import main

    sys.exit(main(sys.argv[1:]))
