"""Serves the page of a recorded run or of a running cluster on loopback.

A request must have the token in its path, a loopback `Host`, and no foreign `Origin`. An action
also needs a header that only this page can send, with a second token.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Mount, Route

from bridgehead.cluster.data_directory import DataDirectory
from bridgehead.cluster.errors import ClusterError
from bridgehead.ui import actions, model
from bridgehead.ui.export import STATIC
from bridgehead.ui.processes import Scenarios, scenario_names
from bridgehead.ui.reading import RunReader, no_collection_of_garbage
from bridgehead.ui.verdicts import judged

ROWS_MAX: Final = 200_000  # that a live page can get; older ones are in the files
ACTION_BYTES_MAX: Final = 4096
STREAMS_MAX: Final = 20
_DROPPED_AT_ONCE: Final = 50_000
_ROWS_OF_A_BATCH_MAX: Final = 20_000
_POLL_S: Final = 0.2
# A busy cluster is read less often: each reading also orders all rows that are held back.
_BUSY_POLL_S: Final = 1.0
_BUSY_ROWS: Final = 200  # since the last reading
_HOLD_MS: Final = 800.0  # an event may be written this much later than an event that it caused
_HEARTBEAT_S: Final = 15.0
_HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")
_POLICY: Final = (
    "default-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_TYPES: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


@dataclass(slots=True)
class Served:
    """What one server shows.

    `data_dir` is the folder of a running cluster. Without it, the run has ended, or with `follows`
    it grows until this process ends.
    """

    reader: RunReader
    shown_run: str  # the run's folder, for the commands that the page shows
    data_dir: Path | None = None
    read_only: bool = False
    follows: bool = False
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    action_token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    rows_max: int = ROWS_MAX
    scenarios: Scenarios | None = None
    share_read: float = 0.0  # of what was written before this process started
    ended: bool = False  # no row will be added
    streams: int = 0
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        if self.may_act and self.data_dir is not None and self.scenarios is None:
            folder = self.data_dir.with_name(f"{self.data_dir.resolve().name}-scenarios")
            self.scenarios = Scenarios(folder)

    @property
    def live(self) -> bool:
        """Whether the cluster runs."""
        return self.data_dir is not None or self.follows

    @property
    def may_act(self) -> bool:
        """Whether the page has buttons that break the cluster."""
        return self.data_dir is not None and not self.read_only


def build_app(served: Served) -> Starlette:
    """Return the application; the token is the first part of each path."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(_follow(served) if served.live else _read(served))
        try:
            yield
        finally:
            task.cancel()
            served.reader.close()
            if served.scenarios is not None:
                await asyncio.to_thread(served.scenarios.close)

    pages = _Pages(served)
    routes = [
        Route("/", pages.file),
        Route("/about.json", pages.about),
        Route("/rows.bin", pages.rows),
        Route("/details.json", pages.details),
        Route("/operations.json", pages.operations),
        Route("/verdicts.json", pages.verdicts),
        Route("/scenarios.json", pages.scenarios),
        Route("/stream", pages.stream),
        Route("/actions", pages.act, methods=["POST"]),
        Route("/{name}", pages.file),
    ]
    app = Starlette(routes=[Mount(f"/{served.token}", routes=routes)], lifespan=lifespan)
    app.add_middleware(_Gate)
    return app


class _Gate:
    """Rejects requests that other pages can cause, and adds the headers of every response."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        problem = _foreign(headers)
        if problem:
            await _plain(403, problem)(scope, receive, send)
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                extra = [(n.lower().encode(), v.encode()) for n, v in _HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _foreign(headers: Mapping[str, str]) -> str:
    """Return why a request may come from another page; "" if it does not."""
    host = headers.get("host", "")
    if host.rpartition(":")[0] not in _HOSTS:
        return "This page answers only at its loopback address."
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != host:
        return "Requests of other pages are rejected."
    # A link may lead to the page: who follows it knows the token.
    follows_link = headers.get("sec-fetch-mode") == "navigate"
    follows_link &= headers.get("sec-fetch-dest") == "document"
    site = headers.get("sec-fetch-site", "none")
    if site not in ("none", "same-origin") and not follows_link:
        return "Requests of other pages are rejected."
    return ""


def _plain(status: int, text: str) -> Response:
    return Response(text + "\n", status, {**_HEADERS, "Content-Type": "text/plain; charset=utf-8"})


def _json(document: Any, status: int = 200) -> Response:
    data = orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS)
    return Response(data, status, media_type="application/json")


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "0")
    return int(text) if text.isdecimal() and len(text) < 16 else 0


Handler = Callable[[Request], Awaitable[Response]]


class _Pages:
    """The handlers. Reading takes long for large runs, so it happens in threads."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._scenario_names: tuple[str, ...] | None = None

    async def file(self, request: Request) -> Response:
        """Return a file of the page."""
        name = request.path_params.get("name", "index.html")
        path = STATIC / name
        if path.parent != STATIC or path.suffix not in _TYPES or not path.is_file():
            return _plain(404, "There is no such file.")
        return Response(path.read_bytes(), media_type=_TYPES[path.suffix])

    async def about(self, _: Request) -> Response:
        """Return what the page must know first."""
        served, scenarios = self._served, self._served.scenarios
        return _json(
            {
                **model.about(served.reader),
                "live": served.live,
                "rowsMax": served.rows_max if served.live else None,
                "folder": served.shown_run,
                "actionToken": served.action_token if served.may_act else None,
                "dataDir": str(served.data_dir) if served.data_dir else None,
                "actions": actions.described() if served.may_act else [],
                "scenariosDir": str(scenarios.folder) if scenarios is not None else None,
            }
        )

    async def scenarios(self, _: Request) -> Response:
        """Return the names of the scenarios that a button can run."""
        if self._served.scenarios is None:
            return _plain(403, "This page may not act.")
        if self._scenario_names is None:
            self._scenario_names = await asyncio.to_thread(scenario_names)
        return _json(self._scenario_names)

    async def rows(self, _: Request) -> Response:
        """Return the first rows; the stream has the others."""
        served, rows = self._served, self._served.reader.collector.rows
        async with served.news:  # no row is added meanwhile
            await served.news.wait_for(lambda: len(rows) or served.share_read >= 1.0)
            stop = min(len(rows), rows.base + _ROWS_OF_A_BATCH_MAX)
            batches = model.Batches(served.reader)
            data = await asyncio.to_thread(batches.pack, rows.base, stop, served.share_read)
        return Response(data, media_type="application/octet-stream")

    async def details(self, request: Request) -> Response:
        """Return events and captions."""
        start, count = _number(request, "start"), _number(request, "count")
        async with self._served.news:
            shown = await asyncio.to_thread(model.details, self._served.reader, start, count)
        return _json(shown)

    async def operations(self, request: Request) -> Response:
        """Return what transactions wrote since a position, or all if it is before the rows."""
        reader, since = self._served.reader, _number(request, "since")
        async with self._served.news:
            is_all = since <= reader.collector.rows.base
            first = model.first_znodes(reader) if is_all else None
            written = await asyncio.to_thread(lambda: list(model.operations(reader, since)))
        return _json({"first": first, "operations": written})

    async def verdicts(self, _: Request) -> Response:
        """Return the judge's verdicts; of a recorded run, when its rows have been read."""
        async with self._served.news:
            await self._served.news.wait_for(lambda: self._served.live or self._served.ended)
        return _json(await asyncio.to_thread(judged, self._served.reader, live=self._is_running()))

    def _is_running(self) -> bool:
        return self._served.live and not self._served.ended

    async def act(self, request: Request) -> Response:
        """Execute an action of a button."""
        served = self._served
        token = request.headers.get("x-bridgehead-action", "")
        if not served.may_act or not secrets.compare_digest(
            token.encode(), served.action_token.encode()
        ):
            return _plain(403, "This page may not act.")
        body = await request.body() if _is_short(request) else b""
        assert served.data_dir is not None
        assert served.scenarios is not None
        try:
            document = orjson.loads(body)
            result = await asyncio.to_thread(
                actions.execute, document, served.data_dir, served.scenarios
            )
        except ValueError:
            return _plain(400, "An action is a JSON object.")
        except ClusterError as error:
            return _json({"error": str(error)})
        return _json(result)

    async def stream(self, request: Request) -> Response:
        """Return new rows as server-sent events, after the position that the browser has."""
        served = self._served
        if served.streams >= STREAMS_MAX:
            return _plain(503, f"More than {STREAMS_MAX} pages follow this run: close some.")
        last = request.headers.get("last-event-id", "")
        after = int(last) if last.isdecimal() and len(last) < 16 else _number(request, "after")
        return StreamingResponse(_events(served, after), media_type="text/event-stream")


def _is_short(request: Request) -> bool:
    length = request.headers.get("content-length", "")
    return length.isdecimal() and int(length) <= ACTION_BYTES_MAX


async def _events(served: Served, after: int) -> AsyncIterator[bytes]:
    """Yield batches of rows, each with the position after it as its id."""
    rows = served.reader.collector.rows
    batches = model.Batches(served.reader)
    is_first = True
    served.streams += 1
    try:
        yield b"retry: 500\n\n"
        while True:
            batch = None
            async with served.news:
                is_kept = rows.base <= after <= len(rows)
                if is_kept and (after < len(rows) or is_first):
                    stop = min(len(rows), after + _ROWS_OF_A_BATCH_MAX)
                    batch = await asyncio.to_thread(batches.pack, after, stop, served.share_read)
                    after, is_first = stop, False
                elif is_kept and not served.ended:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(served.news.wait(), _HEARTBEAT_S)
            if not is_kept:
                yield b"event: reset\ndata: {}\n\n"
                return
            if batch is not None:
                yield b"event: rows\nid: %d\ndata: %b\n\n" % (after, base64.b64encode(batch))
            elif served.ended and after == len(rows):
                yield b"event: ended\ndata: {}\n\n"
                return
            else:
                yield b": still here\n\n"
    finally:
        served.streams -= 1


async def _read(served: Served) -> None:
    """Read a run that has ended; meanwhile pages show what was read."""
    with no_collection_of_garbage():
        steps = served.reader.read_in_steps()
        while not served.ended:
            async with served.news:
                served.share_read = await asyncio.to_thread(next, steps, 1.0)
                served.ended = served.share_read == 1.0
                served.news.notify_all()


async def _follow(served: Served) -> None:
    """Read what the cluster writes, until it stops; then read the rest."""
    directory = DataDirectory(served.data_dir) if served.data_dir is not None else None
    collector = served.reader.collector
    await _catch_up(served)
    while not served.ended:
        ended = directory is not None and not directory.is_claimed()
        if ended:
            await asyncio.sleep(_HOLD_MS / 1000)  # the last transactions may still be decoded
        async with served.news:
            await asyncio.to_thread(served.reader.poll)
            until = float("inf") if ended else collector.now_ms() - _HOLD_MS
            released = collector.release(until)
            await _drop_excess(served)
            served.ended = ended
            served.news.notify_all()
        await asyncio.sleep(_POLL_S if released < _BUSY_ROWS else _BUSY_POLL_S)


async def _catch_up(served: Served) -> None:
    """Read what was written before this process started; meanwhile pages show what was read."""
    steps = served.reader.read_in_steps(ended=False)
    while served.share_read < 1.0:
        async with served.news:
            served.share_read = await asyncio.to_thread(next, steps, 1.0)
            await _drop_excess(served)
            served.news.notify_all()


async def _drop_excess(served: Served) -> None:
    rows = served.reader.collector.rows
    excess = len(rows) - rows.base - served.rows_max
    if excess > 0:
        count = max(excess, min(_DROPPED_AT_ONCE, served.rows_max // 4))
        await asyncio.to_thread(model.drop, served.reader, count)


def open_run(run: Path, log_folders: Sequence[str] = ()) -> RunReader:
    """Return a reader that follows a running cluster's run. Raises ClusterError."""
    reader = RunReader.of(run)
    reader.log_folders = log_folders
    reader.decode_transactions(once=False)
    return reader


def serve(
    served: Served, port: int, announce: Callable[[str], None], host: str = "127.0.0.1"
) -> None:
    """Serve until interrupted; `announce` gets the page's address once it can be opened.

    Only in a container, whose port is published on loopback, `host` is another address.

    Raises:
        ClusterError: the port cannot be bound.
    """
    config = uvicorn.Config(
        build_app(served), access_log=False, log_level="critical", timeout_graceful_shutdown=1
    )
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        raise ClusterError(
            f"Port {port} cannot be used ({error.strerror}): choose another with --port."
        ) from None
    with listener:
        listener.listen(64)
        announce(f"http://127.0.0.1:{listener.getsockname()[1]}/{served.token}/")
        uvicorn.Server(config).run(sockets=[listener])
