"""`python -m containers.offline`: base image and wheels from Debian and Python packages alone.

Read first: no image registry is asked. `debootstrap` makes the base, `pip download` the wheels
(PySpark is published as source: its wheel is made here, and its line of the lock gets this wheel's
digest; every other line keeps the digest that was reviewed). Both are kept under build/ and made
again only when what they are made from has changed.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
WHEELHOUSE = CHECKOUT / "build" / "wheelhouse"
RELEASE = "bookworm"
PACKAGES = "python3,python3-venv,ca-certificates"
BASE = f"bridgehead-base:{RELEASE}"
# Of no use in a container, and a third of the base's size.
NOT_NEEDED = (
    "var/cache/apt",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
)
SOURCE_ONLY = ("pyspark",)


class CannotBuildError(Exception):
    """Something that the build needs is missing. One sentence that says what to do."""


def run(*command: str | Path) -> str:
    """Run a command to its end and return what it printed.

    Raises:
        CannotBuildError: it is not installed, or it failed; with the end of what it said.
    """
    try:
        done = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, check=False
        )
    except FileNotFoundError as missing:
        raise CannotBuildError(
            f"{command[0]} is missing: apt-get install debootstrap docker.io, and start dockerd."
        ) from missing
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-5:]
        raise CannotBuildError(f"`{' '.join(map(str, command[:4]))} …` failed: {' / '.join(said)}")
    return done.stdout


def say(sentence: str) -> None:
    """One line of progress, at once."""
    sys.stdout.write(sentence + "\n")
    sys.stdout.flush()


def make_base() -> None:
    """Make the base image, unless the engine has it."""
    if run("docker", "images", "--quiet", BASE).strip():
        say(f"{BASE} is there.")
        return
    say(f"Making {BASE} with debootstrap (about a minute) ...")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", RELEASE, root)
        for each in NOT_NEEDED:
            shutil.rmtree(root / each, ignore_errors=True)
            (root / each).mkdir()
        archive = Path(folder) / "root.tar"
        run("tar", "--create", "--file", archive, "--directory", root, ".")
        run("docker", "import", archive, BASE)


def locked_again(lock: str, digests: dict[str, str]) -> str:
    """The lock with the digests of wheels that were made here in place of their sources'.

    Raises:
        CannotBuildError: the lock names no such package.
    """
    for name, digest in digests.items():
        entry = re.compile(rf"^({re.escape(name)}==\S+)((?: \\\n    --hash=\S+)+)$", re.MULTILINE)
        lock, count = entry.subn(rf"\1 \\\n    --hash=sha256:{digest}", lock)
        if count != 1:
            raise CannotBuildError(f"the lock does not name {name} exactly once.")
    return lock


def make_wheelhouse(locks: Sequence[str] = ("node", "tools")) -> None:
    """Fetch or make every wheel of the locks, unless they are there for these very locks."""
    texts = {name: (CHECKOUT / f"requirements/{name}.lock").read_text() for name in locks}
    digest = hashlib.sha256("".join(texts.values()).encode()).hexdigest()
    marker = WHEELHOUSE / "offline"
    if marker.is_file() and marker.read_text() == digest:
        say("The wheels are there.")
        return
    shutil.rmtree(WHEELHOUSE, ignore_errors=True)
    WHEELHOUSE.mkdir(parents=True)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    say("Fetching the wheels (half a gigabyte, most of it Spark) ...")
    made: dict[str, str] = {}
    for name, text in texts.items():
        ready = WHEELHOUSE / f"{name}.download"
        ready.write_text(without(text, SOURCE_ONLY))
        run(*pip, "download", "--only-binary=:all:", "--require-hashes", "--no-deps",
            "--dest", WHEELHOUSE, "--requirement", ready)  # fmt: skip
        ready.write_text(only(text, SOURCE_ONLY))
        if ready.read_text():
            run(*pip, "wheel", "--require-hashes", "--no-deps", "--wheel-dir", WHEELHOUSE,
                "--requirement", ready)  # fmt: skip
        ready.unlink()
    for name in SOURCE_ONLY:
        (wheel,) = WHEELHOUSE.glob(f"{name}-*.whl")
        made[name] = hashlib.sha256(wheel.read_bytes()).hexdigest()
    for name, text in texts.items():
        here = {each: made[each] for each in made if f"\n{each}==" in f"\n{text}"}
        (WHEELHOUSE / f"{name}.lock").write_text(locked_again(text, here))
    marker.write_text(digest)


def _entries(lock: str) -> list[tuple[str, str]]:
    found = re.findall(r"^(([A-Za-z0-9._-]+)==\S+(?: \\\n    --hash=\S+)+)$", lock, re.MULTILINE)
    return [(name, entry) for entry, name in found]


def without(lock: str, names: Sequence[str]) -> str:
    """The lock's entries but for some packages."""
    return "".join(f"{entry}\n" for name, entry in _entries(lock) if name not in names)


def only(lock: str, names: Sequence[str]) -> str:
    """The lock's entries of some packages."""
    return "".join(f"{entry}\n" for name, entry in _entries(lock) if name in names)


def main() -> int:
    """Make what is missing; return the exit status."""
    try:
        make_base()
        make_wheelhouse()
    except CannotBuildError as wrong:
        sys.stderr.write(f"The images cannot be built here: {wrong}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
