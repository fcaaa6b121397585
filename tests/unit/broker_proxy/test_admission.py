"""A broker that is stopping admits no more connections."""

from __future__ import annotations

import asyncio

from broker_proxy.admission import Admission
from broker_proxy.connection_quotas import ConnectionQuotas
from broker_proxy.connection_rates import ConnectionRates


class Socket(asyncio.Transport):
    """Records whether it was aborted."""

    is_aborted = False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True


def test_a_connection_that_arrives_after_the_close_is_aborted() -> None:
    """The event loop accepts a connection in one turn and announces it in a later one."""
    quotas = ConnectionQuotas(("PLAINTEXT",), None, samples=11, window_s=1, now_s=lambda: 0.0)
    admission = Admission(quotas, ConnectionRates(11, 1, lambda: 0.0), lambda: 0.0)
    entered: list[Socket] = []
    before, after = Socket(), Socket()
    admission.arrive("PLAINTEXT", before, "10.0.0.1", lambda: entered.append(before))
    admission.close()
    admission.arrive("PLAINTEXT", after, "10.0.0.1", lambda: entered.append(after))
    assert (entered, before.is_aborted, after.is_aborted) == ([before], False, True)
