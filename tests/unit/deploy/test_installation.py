"""What `make setup` and `pip install git+URL` install."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hatchling.build import get_requires_for_build_wheel

from bridgehead import __version__
from bridgehead.cluster.java import class_path
from deploy.link_package import ROOT, link
from deploy.wheel_jars import wrong_digests


def run_in(site: Path, *arguments: str) -> str:
    """Run Python outside the checkout, with `site` on its path; return its output."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=site,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_setup_makes_the_package_importable_and_nothing_else(tmp_path: Path) -> None:
    link(tmp_path)
    link(tmp_path)  # `make setup` after a change
    code = "import importlib.util as u, bridgehead.application as a; " + (
        "print(a.application_root(), u.find_spec('judge'))"
    )
    assert run_in(tmp_path, "-c", code).split() == [str(ROOT), "None"]


def test_setup_registers_the_pytest_plugin_and_the_command(tmp_path: Path) -> None:
    link(tmp_path)
    for named in ((), ("-p", "bridgehead.pytest_plugin")):
        assert "--bridgehead-keep=DIR" in run_in(tmp_path, "-m", "pytest", *named, "--help")
    code = "import importlib.metadata as m; print([e.name for e in " + (
        "m.distribution('bridgehead').entry_points])"
    )
    assert run_in(tmp_path, "-c", code) == "['bridgehead', 'bridgehead.pytest_plugin']\n"


def test_an_isolated_build_gets_the_jars_of_the_pinned_pyspark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    lock = (ROOT / "requirements" / "dev.lock").read_text(encoding="utf-8")
    pinned = re.search(r"^pyspark==[\d.]+", lock, re.MULTILINE)
    assert pinned is not None
    assert pinned[0] in get_requires_for_build_wheel()


def test_the_build_finds_the_jars_without_other_packages() -> None:
    """An isolated build has only hatchling and PySpark. -S hides every installed package."""
    code = "from bridgehead.cluster.java import class_path; print(class_path())"
    jars = class_path()
    environment = {
        "PYTHONPATH": str(ROOT),
        "BRIDGEHEAD_ZOOKEEPER_JARS": str(Path(jars.split(":")[0]).parent),
    }
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == jars


def test_a_jar_that_we_do_not_ship_is_named(tmp_path: Path) -> None:
    jars = [Path(jar) for jar in class_path().split(":")]
    assert wrong_digests(jars) == []
    changed = tmp_path / jars[0].name
    changed.write_bytes(jars[0].read_bytes() + b"x")
    unknown = tmp_path / "other.jar"
    unknown.touch()
    assert wrong_digests([changed, *jars[1:], unknown]) == [changed.name, "other.jar"]


def test_clients_packages_have_the_version_of_bridgehead() -> None:
    """Maven and npm read the version only from their own files."""
    pattern = re.compile(
        r"<artifactId>bridgehead-testcontainers</artifactId>\s*<version>([^<]+)</version>"
    )
    versions = {
        path: pattern.findall((ROOT / path).read_text(encoding="utf-8"))
        for path in ("clients/java/pom.xml", "examples/java-failover/pom.xml")
    }
    for name in ("package.json", "package-lock.json"):
        package = json.loads((ROOT / "clients/node" / name).read_text(encoding="utf-8"))
        versions[name] = [package["version"]]
    assert versions == {path: [__version__] for path in versions}
