"""Users other than root: one attacks a cluster's files, and one runs a cluster."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.hostile.family import Report, cluster
from tests.hostile.target import ROOT

NOBODY: Final = 65534
SECRET: Final = "planted-secret"
CONFIGURATION: Final = f"""
listeners: {{CLIENTS: SASL_PLAINTEXT}}
users: {{admin: {{password: {SECRET}, super: true}}}}
"""


def attack_as_another_user(folder: Path, report: Report) -> None:
    """Become `nobody`, and try every file, socket and process of a cluster; then run one."""
    if os.geteuid() != 0:
        report.figures.append("other users: not tried, because only root can become another user")
        return
    folder.chmod(0o755)
    file, data = folder / "cluster.yaml", folder / "data"
    file.write_text(CONFIGURATION)
    with cluster(data, "--config", str(file)) as document:
        data.chmod(0o755)  # The parent may be open: each entry must protect itself.
        for leak in _as_nobody(data, [node["pid"] for node in document["brokers"]]):
            report.expect(False, leak)
        report.tries += sum(1 for _ in data.rglob("*"))
    _run_as_nobody(folder, report)


def _as_nobody(data: Path, pids: list[int]) -> list[str]:
    """Return what user 65534 can reach, as a child process finds it out."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            leaks = [*_reachable(data), *_seen_of(pids)]
        except BaseException as error:
            leaks = [f"the attack raised {error!r}"]
        os.write(writer, json.dumps(leaks).encode()[:60_000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    reachable: list[str] = json.loads(text)
    return reachable


def _reachable(data: Path) -> list[str]:
    leaks = []
    entries = {str(path) for path in data.iterdir()}
    names = ("supervisor.pid", "cluster.json", "control.sock", "nodes/1/node.properties")
    for path in sorted(entries | {str(data / name) for name in names}):
        for mode, word in ((os.R_OK, "read"), (os.W_OK, "write")):
            if os.access(path, mode):
                leaks.append(f"nobody can {word} {path}")
    for name in ("control.sock", "nodes/1/control.sock"):
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(data / name))
                leaks.append(f"nobody can connect to {name}")
            except OSError:
                pass
    return leaks


def _seen_of(pids: list[int]) -> list[str]:
    """Return what nobody sees of the processes: the environment, or a secret in the arguments."""
    leaks = []
    for pid in pids:
        if SECRET.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
            leaks.append("a secret is in a process list")
        try:
            Path(f"/proc/{pid}/environ").read_bytes()
            leaks.append("nobody can read the environment of a node")
        except OSError:
            pass
    return leaks


def _run_as_nobody(folder: Path, report: Report) -> None:
    """Run a cluster as user 65534. The capability only makes the interpreter readable."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        report.figures.append("other users: no cluster of another user, because setpriv is missing")
        return
    home = folder / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    user = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs")
    capability = ("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search")
    code = "from bridgehead.cli.main import main; main()"

    def bridgehead(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [setpriv, *user, *capability, sys.executable, "-c", code, *arguments],
            cwd=home,
            env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(home)},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    here = ("--data-dir", str(home / "data"))
    try:
        up = bridgehead("up", "--detach", "--brokers=1", "--ports=auto", *here)
        report.expect(up.returncode == 0, f"a cluster of nobody: {up.stdout}{up.stderr}")
        owners = {path.lstat().st_uid for path in (home / "data").rglob("*")}
        report.expect(owners == {NOBODY}, f"files of nobody's cluster belong to {owners}")
        # root keeps out of a folder of another user, who could replace what is in it.
        status, output = _up_as_root(home / "data")
        report.expect(status == 4, f"root uses the folder of nobody: {output}")
    finally:
        down = bridgehead("down", *here)
        report.expect(down.returncode == 0, f"down as nobody: {down.stderr}")
    judged = bridgehead("judge", str(home / "data"))
    report.expect(judged.returncode == 0, f"judge as nobody: {judged.stdout[-500:]}{judged.stderr}")
    status, output = _up_as_root(home / "data")
    report.expect(status == 4, f"root uses the folder of nobody: {output}")


def _up_as_root(data: Path) -> tuple[int, str]:
    from tests.hostile.target import bridgehead

    up = ("up", "--detach", "--brokers=1", "--ports=auto", "--data-dir", str(data))
    done = bridgehead(*up, check=False)
    if done.returncode == 0:
        bridgehead("down", "--data-dir", str(data), check=False)
    return done.returncode, done.stdout + done.stderr
