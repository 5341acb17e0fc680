"""Whatever is sent, the server answers as its own description says, and never with an error of its own."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi")
schemathesis = pytest.importorskip("schemathesis")

from hypothesis import HealthCheck, Phase, settings
from schemathesis import checks
from schemathesis.specs.openapi import checks as conformance

from mull.serve.app import create_app
from mull.serve.settings import Settings

schema = schemathesis.openapi.from_asgi("/openapi.json", create_app(Settings(seconds=5)))
ALL = [
    checks.not_a_server_error,
    conformance.status_code_conformance,
    conformance.content_type_conformance,
    conformance.response_schema_conformance,
    conformance.negative_data_rejection,
]


@schema.exclude(path="/api/read-photo").parametrize()
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_as_described(case: schemathesis.Case) -> None:
    case.call_and_validate(checks=ALL)
