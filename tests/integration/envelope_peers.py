"""One end of a channel in a process of its own, for tests that freeze or kill this process.

python envelope_peers.py controller         prints its port, answers every Envelope
python envelope_peers.py broker PORT        opens a channel to PORT and prints "open"; prints
                                            "closed" when the channel closes
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from envelope.channel import ControllerChannel
from envelope.messages import Envelope, EnvelopeReply, Hello
from envelope.server import BrokerPeer, serve_envelopes


class Responding:
    """Answers each Envelope with the body of its request."""

    async def handle(self, envelope: Envelope, sender: BrokerPeer) -> EnvelopeReply:
        return EnvelopeReply(0, envelope.request_data, envelope.identity.sequence)

    def connected(self, peer: BrokerPeer) -> None:
        pass

    def disconnected(self, peer: BrokerPeer) -> None:
        pass

    def rejected(self, hello: Hello, principal: object, reason: str) -> None:
        pass

    def batch_received(self, peer: BrokerPeer, lowest_unfinished: int, applied_zxid: int) -> None:
        pass


async def _controller() -> None:
    server = await serve_envelopes("127.0.0.1", 0, Responding())
    print(server.port, flush=True)
    await asyncio.Event().wait()


async def _broker(port: int) -> None:
    closed = asyncio.Event()
    ControllerChannel(
        f"127.0.0.1:{port}",
        Hello(9, "child"),
        on_update=lambda update: None,
        on_closed=closed.set,
        lowest_unfinished=lambda: 1,
        applied_zxid=lambda: 0,
    )
    print("open", flush=True)
    await closed.wait()
    print("closed", flush=True)


if __name__ == "__main__":
    asyncio.run(_controller() if sys.argv[1] == "controller" else _broker(int(sys.argv[2])))
