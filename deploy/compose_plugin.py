"""`python3 -m deploy.compose_plugin`: installs Compose v2 for this user, if it does not work yet.

The program puts the plug-in into the folder `cli-plugins` of the user's Docker configuration and
changes nothing else there. The plug-in comes from a package of the next Debian release. This
machine's apt configuration names the mirror. The program needs only the standard library. No
installed tool does the same: Debian bookworm's own docker-compose is version 1, and apt cannot
install the newer package without changing the machine's sources.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bridgehead.exit_codes import ExitCode
from deploy.offline import RELEASE, CannotBuildError, run

NEXT_RELEASE = "trixie"
PACKAGE = "docker-compose"
PLUGIN = "usr/libexec/docker/cli-plugins/docker-compose"
CACHE = Path.home() / ".cache" / "bridgehead" / "docker"  # the DOCKER_CONFIG of our own tests


def has_compose(environment: dict[str, str] | None = None) -> bool:
    """Return whether `docker compose` works."""
    command = ("docker", "compose", "version")
    try:
        done = subprocess.run(command, capture_output=True, check=False, env=environment)
    except FileNotFoundError:
        return False
    return done.returncode == 0


def main_mirrors(sources: str) -> list[str]:
    """Return the mirrors that apt's sources name for the component main of RELEASE.

    A source is either one line, or a paragraph of fields.
    """
    mirrors = re.findall(
        rf"^deb (?:\[[^]]*\] )?(\S+) {RELEASE}\S* .*\bmain\b", sources, re.MULTILINE
    )
    for paragraph in re.split(r"\n\s*\n", sources):
        fields = dict(re.findall(r"^(\w[\w-]*):\s*(.*)$", paragraph, re.MULTILINE))
        if RELEASE in fields.get("Suites", "").split() and "main" in fields.get("Components", ""):
            mirrors += fields.get("URIs", "").split()
    return list(dict.fromkeys(mirrors))


def read_sources(folder: Path = Path("/etc/apt")) -> str:
    """Return every apt source list of this machine."""
    paths = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    return "\n\n".join(path.read_text() for path in paths if path.is_file())


def fetch_plugin(configuration: Path) -> None:
    """Unpack the plug-in into a folder of Docker's configuration.

    Raises:
        CannotBuildError: apt has no mirror, or the download fails.
    """
    mirrors = main_mirrors(read_sources())
    if not mirrors:
        raise CannotBuildError(f"apt has no source for {RELEASE}: install Docker Compose v2.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lists = folder / "lists"
        (lists / "partial").mkdir(parents=True)
        os.chmod(folder, 0o755)  # noqa: S103 - apt downloads as another user
        keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
        source = folder / "next.list"
        source.write_text(f"deb [signed-by={keys}] {mirrors[0]} {NEXT_RELEASE} main\n")
        options = (
            *("-o", f"Dir::Etc::sourcelist={source}", "-o", "Dir::Etc::sourceparts=-"),
            *("-o", f"Dir::State::lists={lists}", "-o", "APT::Get::List-Cleanup=0"),
        )
        run("apt-get", *options, "update")
        addresses = run("apt-get", *options, "download", "--print-uris", PACKAGE)
        file = addresses.split()[1]
        command = ("apt-get", *options, "download", PACKAGE)
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        run("dpkg-deb", "-x", folder / file, folder / "unpacked")
        plugins = configuration / "cli-plugins"
        plugins.mkdir(parents=True, exist_ok=True)
        shutil.copy2(folder / "unpacked" / PLUGIN, plugins / "docker-compose")


def docker_config() -> str | None:
    """Return a DOCKER_CONFIG with which `docker compose` works; None if the current one works.

    Raises:
        CannotBuildError: Compose cannot be installed.
    """
    if has_compose():
        return None
    install(CACHE)
    return str(CACHE)


def install(configuration: Path) -> None:
    """Fetch the plug-in if `docker compose` does not work with this configuration yet.

    Raises:
        CannotBuildError: the plug-in cannot be fetched, or it does not run.
    """
    environment = {**os.environ, "DOCKER_CONFIG": str(configuration)}
    if not has_compose(environment):
        fetch_plugin(configuration)
    if not has_compose(environment):
        raise CannotBuildError("the downloaded plug-in does not run: install Docker Compose v2.")


def main() -> int:
    """Install the plug-in for this user; return the exit status."""
    try:
        if not has_compose():
            install(Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker"))
        sys.stdout.write("docker compose works.\n")
    except CannotBuildError as error:
        sys.stderr.write(f"Docker Compose v2 is missing: {error}\n")
        return ExitCode.CANNOT_RUN
    return 0


if __name__ == "__main__":
    sys.exit(main())
