"""Functions that BridgeheadContainer and BridgeheadCluster share for containers and images."""

from __future__ import annotations

import warnings
from typing import Any

from docker.errors import DockerException, ImageNotFound
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient

from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.ports import LOOPBACK

MEMORY_MAX = "1g"


def publish(container: DockerContainer, inside: int, outside: int) -> None:
    """Publish a port on the host's loopback only; testcontainers has no method for this."""
    ports: dict[Any, Any] = container.ports
    ports[inside] = (LOOPBACK, outside)


def harden(container: DockerContainer, **options: Any) -> DockerContainer:
    """Restrict a container as docker-compose.yml does. `options` go to the engine's `run`."""
    return container.with_tmpfs_mount("/tmp").with_kwargs(  # noqa: S108 - in the container
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true"],
        mem_limit=MEMORY_MAX,
        **options,
    )


def prepare(*images: str) -> None:
    """Check that the images exist; switch Ryuk off if its image cannot be pulled.

    Ryuk is testcontainers' own container: it removes the containers of a process that was killed.

    Raises:
        ClusterError: no engine answers, or it lacks an image.
    """
    try:
        engine = DockerClient().client
        for image in images:
            if image.startswith(
                ("bridgehead:", "bridgehead-")
            ):  # testcontainers pulls any other image
                engine.images.get(image)
    except ImageNotFound:
        raise ClusterError(
            f"The engine has no image {image}: run `make image`, or `make image-offline` without "
            "access to a registry."
        ) from None
    except DockerException as error:
        raise ClusterError(f"No container engine answers: start it. ({error})") from error
    _switch_ryuk_off_if_missing(engine)


def _switch_ryuk_off_if_missing(engine: Any) -> None:
    if testcontainers_config.ryuk_disabled:
        return
    ryuk = testcontainers_config.ryuk_image
    try:
        engine.images.get(ryuk)
    except ImageNotFound:
        try:
            engine.images.pull(ryuk)
        except DockerException:
            testcontainers_config.ryuk_disabled = True
            warnings.warn(
                f"Ryuk of testcontainers is switched off: image {ryuk} is not here and cannot be "
                "pulled. If this process is killed, its containers keep running; remove them with "
                "`docker rm --force --volumes $(docker ps --quiet --filter "
                "label=org.testcontainers)`.",
                stacklevel=4,
            )
