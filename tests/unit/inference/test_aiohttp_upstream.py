"""INF-4: which faults of the transport another attempt may mend."""

from __future__ import annotations

import ssl

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from services.inference.adapters.aiohttp_upstream import AiohttpUpstream, _fault
from services.inference.domain.chat import Role
from services.inference.domain.endpoint import Endpoint
from services.inference.domain.outcome import AttemptFault, Outcome

_KEY = ConnectionKey("host", 443, True, True, None, None, None)


@pytest.mark.parametrize(
    ("base_url", "outcome"),
    [
        ("http://127.0.0.1:1", Outcome.TRANSIENT),
        ("http://nowhere.invalid", Outcome.TRANSIENT),
        ("ftp://127.0.0.1", Outcome.PERMANENT),
        ("http:///v1", Outcome.PERMANENT),
        ("http://127.0.0.1:99999", Outcome.PERMANENT),
    ],
)
async def test_inf_4_what_can_not_be_reached_is_transient_and_what_is_no_address_permanent(
    base_url: str, outcome: Outcome
) -> None:
    upstream = AiohttpUpstream()
    endpoint = Endpoint("e", frozenset(Role), base_url, "m")
    try:
        with pytest.raises(AttemptFault) as caught:
            async with upstream.post(endpoint, "/chat/completions", b"{}"):
                pass
    finally:
        await upstream.close()
    assert caught.value.outcome is outcome


@pytest.mark.parametrize(
    "error",
    [
        aiohttp.ServerDisconnectedError(),
        aiohttp.ClientPayloadError("cut"),
        aiohttp.ClientOSError(104, "reset"),
        aiohttp.ConnectionTimeoutError(),
        aiohttp.ClientConnectorCertificateError(_KEY, ssl.SSLCertVerificationError("expired")),
        TimeoutError(),
        BrokenPipeError(),
    ],
)
def test_inf_4_faults_on_the_way_are_transient(error: Exception) -> None:
    assert _fault(error).outcome is Outcome.TRANSIENT
