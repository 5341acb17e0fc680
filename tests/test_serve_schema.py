"""Whatever is sent, the server answers as its own description says, and never with an error of its own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

pytest.importorskip("fastapi")
schemathesis = pytest.importorskip("schemathesis")

conformance = pytest.importorskip("schemathesis.specs.openapi.checks")
limits = pytest.importorskip("mull.serve.settings").Settings(hosts=("testserver",))
server = pytest.importorskip("mull.serve.app").create_app(limits)


async def application(scope: Any, receive: Any, send: Any) -> None:
    """The server, which stays up: the tester would start and stop it for every request."""
    if scope["type"] != "lifespan":
        await server(scope, receive, send)
        return
    while (message := await receive())["type"] != "lifespan.shutdown":
        await send({"type": f"{message['type']}.complete"})
    await send({"type": "lifespan.shutdown.complete"})


schema = schemathesis.openapi.from_asgi("/openapi.json", application)
CHECKS = [
    schemathesis.checks.not_a_server_error,
    conformance.status_code_conformance,
    conformance.content_type_conformance,
    conformance.response_schema_conformance,
    conformance.negative_data_rejection,
]


@schema.parametrize()
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_as_described(case: Any) -> None:
    case.call_and_validate(checks=CHECKS)
