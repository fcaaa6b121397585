"""`python -m deploy.offline`: builds the base image and the wheels from Debian and Python packages.

The program uses no image registry: `debootstrap` builds the base image, and `pip download` fetches
the wheels. PySpark is published only as source, so the program builds its wheel. A copy of the lock
gets the digest of this wheel and keeps all other digests. The wheels are kept under build/ and
copied into an image of their own, so that later builds do not send half a gigabyte to the engine.
The program does not build again what has not changed.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from deploy.prerequisites import BASE, CANNOT_BUILD, CHECKOUT, missing, report

WHEELHOUSE = CHECKOUT / "build" / "wheelhouse"
RELEASE = "bookworm"
PYTHON = "3.11"  # the Python of that Debian release; pip downloads wheels for it
PACKAGES = "python3,python3-venv,ca-certificates"
WHEELS = f"bridgehead-wheels:{RELEASE}"
MADE_FROM = "bridgehead.made-from"  # the image label with the digest of the inputs
# These folders are not needed in a container. They make up a third of the base image's size.
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
    """The build is not possible here. The text is one sentence."""


def run(*command: str | Path) -> str:
    """Run a command and return its output.

    Raises:
        CannotBuildError: the command is not installed, or it failed. The text has the end of its
            output.
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
        output = (done.stderr or done.stdout).strip().splitlines()[-5:]
        raise CannotBuildError(
            f"`{' '.join(map(str, command[:4]))} …` failed: {' / '.join(output)}"
        )
    return done.stdout


def say(sentence: str) -> None:
    """Print one line of progress and flush it."""
    sys.stdout.write(sentence + "\n")
    sys.stdout.flush()


def make_root(archive: Path) -> None:
    """Build a root file system of Debian with debootstrap."""
    say("Building a root file system with debootstrap (about a minute) ...")
    root = archive.parent / "root"
    run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", RELEASE, root)
    for name in NOT_NEEDED:
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir()
    run("tar", "--create", "--file", archive, "--directory", root, ".")


def make_base_and_wheels() -> None:
    """Build the base image and the wheels if they are missing, both at the same time."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as both:
        archive = Path(folder) / "root.tar"
        exists = bool(run("docker", "images", "--quiet", BASE).strip())
        say(f"{BASE} exists.") if exists else None
        wheels = both.submit(make_wheelhouse)
        if not exists:
            make_root(archive)
            run("docker", "import", archive, BASE)
        wheels.result()


def try_engine() -> None:
    """Run a container with the settings of our containers: network, published port, limits.

    Raises:
        CannotBuildError: the container does not run, for example because the engine lacks
            iptables or cgroups.
    """
    name = f"bridgehead-trial-{secrets.token_hex(4)}"
    try:
        run("docker", "network", "create", name)
        options = (f"--name={name}", f"--network={name}", "--publish=127.0.0.1::80", "--memory=64m")
        run("docker", "run", "--rm", "--read-only", "--cap-drop=ALL", *options, BASE, "true")
    except CannotBuildError as error:
        raise CannotBuildError(f"the engine answers but runs no container: {error}") from None
    finally:
        for remove in (("rm", "--force", "--volumes"), ("network", "rm")):
            subprocess.run(["docker", *remove, name], capture_output=True, check=False)


def make_wheels_image() -> None:
    """Build the image of the wheels on top of the base, unless it is up to date."""
    digest = (WHEELHOUSE / "offline").read_text()
    base = run("docker", "images", "--quiet", "--no-trunc", BASE).strip()
    made_from = f"{base} {digest}"
    label = f'{{{{index .Config.Labels "{MADE_FROM}"}}}}'
    has_wheels = run("docker", "images", "--quiet", WHEELS).strip()
    if has_wheels and run("docker", "inspect", f"--format={label}", WHEELS).strip() == made_from:
        say(f"{WHEELS} exists.")
        return
    with tempfile.TemporaryDirectory() as folder:
        description = Path(folder) / "Dockerfile"
        description.write_text(f"FROM {BASE}\nCOPY . /wheels\n")
        run(*("docker", "build", "--quiet", f"--label={MADE_FROM}={made_from}"),
            *("--tag", WHEELS, "--file", description, WHEELHOUSE))  # fmt: skip


def with_built_digests(lock: str, digests: dict[str, str]) -> str:
    """Return the lock with new digests for the packages in `digests`, whose wheels were built here.

    Raises:
        CannotBuildError: the lock does not name such a package exactly once.
    """
    for name, digest in digests.items():
        entry = re.compile(rf"^({re.escape(name)}==\S+)((?: \\\n    --hash=\S+)+)$", re.MULTILINE)
        lock, count = entry.subn(rf"\1 \\\n    --hash=sha256:{digest}", lock)
        if count != 1:
            raise CannotBuildError(f"the lock does not name {name} exactly once.")
    return lock


def make_wheelhouse(locks: Sequence[str] = ("node", "tools")) -> None:
    """Download or build every wheel in the locks, unless all are up to date."""
    texts = {name: (CHECKOUT / f"requirements/{name}.lock").read_text() for name in locks}
    digest = hashlib.sha256("".join(texts.values()).encode()).hexdigest()
    marker = WHEELHOUSE / "offline"
    if marker.is_file() and marker.read_text() == digest:
        say("The wheels are up to date.")
        return
    shutil.rmtree(WHEELHOUSE, ignore_errors=True)
    WHEELHOUSE.mkdir(parents=True)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    say("Downloading the wheels (half a gigabyte, most of it Spark) ...")
    hashes: dict[str, str] = {}
    for name, text in texts.items():
        ready = WHEELHOUSE / f"{name}.download"
        ready.write_text(without(text, SOURCE_ONLY))
        run(*pip, "download", "--only-binary=:all:", f"--python-version={PYTHON}", "--no-deps",
            "--require-hashes", "--dest", WHEELHOUSE, "--requirement", ready)  # fmt: skip
        ready.write_text(only(text, SOURCE_ONLY))
        if ready.read_text():
            run(*pip, "wheel", "--require-hashes", "--no-deps", "--wheel-dir", WHEELHOUSE,
                "--requirement", ready)  # fmt: skip
        ready.unlink()
    for name in SOURCE_ONLY:
        (wheel,) = WHEELHOUSE.glob(f"{name}-*.whl")
        hashes[name] = hashlib.sha256(wheel.read_bytes()).hexdigest()
    for name, text in texts.items():
        here = {pin: hashes[pin] for pin in hashes if f"\n{pin}==" in f"\n{text}"}
        (WHEELHOUSE / f"{name}.lock").write_text(with_built_digests(text, here))
    marker.write_text(digest)


def _entries(lock: str) -> list[tuple[str, str]]:
    entries = re.findall(r"^(([A-Za-z0-9._-]+)==\S+(?: \\\n    --hash=\S+)+)$", lock, re.MULTILINE)
    return [(name, entry) for entry, name in entries]


def without(lock: str, names: Sequence[str]) -> str:
    """Return the lock without the entries of the packages in `names`."""
    return "".join(f"{entry}\n" for name, entry in _entries(lock) if name not in names)


def only(lock: str, names: Sequence[str]) -> str:
    """Return only the lock's entries of the packages in `names`."""
    return "".join(f"{entry}\n" for name, entry in _entries(lock) if name in names)


def main() -> int:
    """Build what is missing; return the exit status."""
    if lacks := missing():
        return report(lacks)
    try:
        make_base_and_wheels()
        try_engine()
        make_wheels_image()
    except CannotBuildError as error:
        sys.stderr.write(f"The images cannot be built here: {error}\n")
        return CANNOT_BUILD
    return 0


if __name__ == "__main__":
    sys.exit(main())
