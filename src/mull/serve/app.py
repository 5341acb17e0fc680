"""The server: HTTP to `Service`, limits to status codes, and the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from fastapi import Body, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from starlette.requests import ClientDisconnect

from mull import __version__
from mull import exact as exact_solver
from mull.errors import InvalidInput, UserError
from mull.puzzle_files import parse_puzzles
from mull.serve import photos, puzzles, reading
from mull.serve.catalogue import Catalogue, UnknownModelError, find_models
from mull.serve.guard import Guard
from mull.serve.hosts import Hosts
from mull.serve.schemas import (
    AnswerOut,
    Attention,
    AttentionRequest,
    Check,
    Generated,
    Health,
    ModelOut,
    Name,
    PuzzleRequest,
    Reading,
    Refusal,
    SolveRequest,
    StreamRequest,
)
from mull.serve.service import Service
from mull.serve.settings import BusyError, Settings

PAGE = Path(__file__).parent / "page"
REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Refusal, "description": "The body is not what its type says."},
    404: {"model": Refusal, "description": "There is no such model; the text says which there are."},
    413: {"model": Refusal, "description": "The request is too large."},
    422: {"model": Refusal, "description": "The request, or the puzzle in it, cannot be used."},
    503: {"model": Refusal, "description": "Too much is waiting; Retry-After says when to come back."},
    504: {"model": Refusal, "description": "It took too long."},
}
Result = TypeVar("Result")


class LateError(Exception):
    """The time for a request is used up."""


def create_app(settings: Settings | None = None, models: list[str] | None = None) -> FastAPI:
    """The application, with the models that ship and those files that the operator names."""
    limits = settings or Settings()
    service = Service(Catalogue(find_models(models or []), limits), limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="mull",
        version=__version__,
        description="Solve constraint satisfaction problems with small recurrent Transformers; answers are checked.",
        lifespan=lifespan,
        docs_url=None,  # the usual pages come from another host; ours is at /docs
        redoc_url=None,
    )
    app.state.service = service
    _add_solving(app, service)
    _add_looking(app, service)
    _add_page(app)
    _add_errors(app, limits)
    app.add_middleware(Guard, limit=limits.body, seconds=limits.seconds, hosts=Hosts(limits.hosts))
    return app


async def within(request: Request, work: Awaitable[Result], seconds: float) -> Result:
    """The result of some work, which is cancelled when time is up or the client hangs up."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        done, _ = await asyncio.wait({task, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task in done:
            return task.result()
        raise ClientDisconnect if gone in done else LateError
    finally:
        task.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    """Returns when the client hangs up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _add_solving(app: FastAPI, service: Service) -> None:
    seconds = service.settings.seconds

    @app.post(
        "/api/solve",
        responses=REFUSALS,
        summary="Solve one puzzle, or a list of them",
        response_model_exclude_none=True,
    )
    async def solve(request: Request, body: SolveRequest) -> AnswerOut | list[AnswerOut]:
        """Answers come in the order of the puzzles, in the form of `mull solve --json`."""
        single = isinstance(body.puzzle, str)
        texts = [body.puzzle] if isinstance(body.puzzle, str) else body.puzzle
        places = [""] if single else [f"puzzle {number}" for number in range(1, len(texts) + 1)]

        async def work() -> list[AnswerOut]:
            return await service.solve(await service.read(body, texts, places))

        answers = await within(request, work(), seconds)
        return answers[0] if single else answers

    @app.post(
        "/api/solve/lines",
        responses={**REFUSALS, 200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}},
        response_class=Response,
        summary="Solve the puzzles of a text",
    )
    async def solve_lines(
        request: Request,
        body: Annotated[str, Body(media_type="text/plain")],
        model: Annotated[Name, Query()] = "sudoku",
        search: Annotated[int, Query(ge=0, le=1 << 16)] = 0,
        exact: Annotated[bool, Query()] = False,
    ) -> Response:
        """One puzzle a line, a CSV with a column `puzzle`, or JSON lines; answers are JSON lines, in the same order."""

        async def work() -> list[AnswerOut]:
            found = list(parse_puzzles(body, "line"))
            options = {"model": model, "search": search, "exact": exact}
            whole = SolveRequest.model_validate({**options, "puzzle": [one.text for one in found]})
            return await service.solve(
                await service.read(whole, [one.text for one in found], [one.place for one in found])
            )

        answers = await within(request, work(), seconds)
        lines = "".join(answer.model_dump_json(exclude_none=True) + "\n" for answer in answers)
        return Response(lines, media_type="application/x-ndjson")

    @app.post(
        "/api/solve/stream",
        responses={**REFUSALS, 200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
        response_class=StreamingResponse,
        summary="Watch a puzzle being solved",
    )
    async def stream(body: StreamRequest) -> StreamingResponse:
        """Server-sent events: `start`, `step` (values and certainties) for each recurrence, `answer`, or `error`.

        In a search, `search` tells now and then the recurrences spent and the values at hand.
        """
        order = await service.read(body, [body.puzzle], [""])
        events = await service.watch(order)
        return StreamingResponse(events, media_type="text/event-stream", headers={"cache-control": "no-store"})


def _add_looking(app: FastAPI, service: Service) -> None:
    seconds, side = service.settings.seconds, service.settings.image_side

    @app.post("/api/check", responses=REFUSALS, summary="What is wrong with a puzzle, before it is solved")
    async def check(request: Request, body: PuzzleRequest) -> Check:
        """Whether it can be read, what it gives, and which rules the givens already break."""
        problem = service.catalogue.card(body.model).problem
        return await within(request, service.help(reading.check, problem, body.puzzle, side), seconds)

    @app.post("/api/attention", responses=REFUSALS, summary="Where each head looks")
    async def attention(request: Request, body: AttentionRequest) -> Attention:
        """How much of a variable's attention goes to each variable in a recurrence, by head."""
        problem = service.catalogue.card(body.model).problem
        if body.cell >= problem.variables().count:
            raise InvalidInput(f"there is no variable {body.cell}: they are 0 to {problem.variables().count - 1}")
        if body.step > service.settings.steps:
            raise InvalidInput(f"{body.step} recurrences; the most is {service.settings.steps}")

        def work() -> Attention:
            instance = reading.read(problem, body.puzzle, side)
            maps = service.catalogue.attention(body.model, instance.inputs, body.step, body.cell)
            return Attention(heads=np.round(maps.astype(float), 5).tolist())

        return await within(request, service.help(work), seconds)

    @app.get("/api/generate", responses=REFUSALS, summary="A puzzle to try")
    async def generate(
        request: Request,
        model: Annotated[Name, Query()] = "sudoku",
        seed: Annotated[int | None, Query(ge=0, lt=1 << 63, description="The same seed gives the same puzzle.")] = None,
    ) -> Generated:
        """A puzzle with one solution, where the problem asks for that."""
        problem = service.catalogue.card(model).problem
        rng = np.random.default_rng(seed)
        return Generated(model=model, puzzle=await within(request, service.help(puzzles.make, problem, rng), seconds))

    @app.get("/api/models", summary="The models")
    async def models() -> list[ModelOut]:
        """Every model that this server offers, what it solves, and how puzzles are written."""
        return service.catalogue.describe()

    @app.get("/api/health", summary="How the server is")
    async def health() -> Health:
        """For monitors: answers at once, whatever is being solved."""
        waiting = {name: engine.waiting for name, engine in dict(service.catalogue.engines).items()}
        return Health(
            status="ok",
            version=__version__,
            waiting=waiting,
            searching=service.searching,
            search=service.settings.search,
            exact=exact_solver.available(),
            photos=photos.available(),
        )

    @app.post(
        "/api/read-photo",
        responses={**REFUSALS, 501: {"model": Refusal, "description": "This server cannot read photographs."}},
        openapi_extra={"requestBody": {"content": {"image/*": {"schema": {"type": "string", "format": "binary"}}}}},
        summary="Read a puzzle off a photograph",
    )
    async def read_photo(request: Request) -> Reading:
        """The body is the image file; what was read is to be looked over before it is solved."""
        if not photos.available():
            raise NotImplementedError("this server cannot read photographs: mull.photo is not installed")
        content = await request.body()
        return await within(request, service.help(photos.read, content), seconds)


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(PAGE / "api.html")

    app.mount("/page", StaticFiles(directory=PAGE), name="page")


def _add_errors(app: FastAPI, limits: Settings) -> None:
    def refuse(status: int, detail: str, headers: dict[str, str] | None = None) -> JSONResponse:
        return JSONResponse({"detail": " ".join(detail.split())}, status, headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query"))
        return refuse(422, f"{where}: {first['msg']}" if where else first["msg"])

    @app.exception_handler(UserError)
    async def unusable(_: Request, error: UserError) -> JSONResponse:
        if isinstance(error, BusyError):
            return refuse(503, str(error), {"retry-after": str(error.retry_after)})
        return refuse(404 if isinstance(error, UnknownModelError) else 422, str(error))

    @app.exception_handler(LateError)
    async def late(_: Request, error: LateError) -> JSONResponse:
        return refuse(504, f"not done after {limits.seconds:g} s")

    @app.exception_handler(NotImplementedError)
    async def missing(_: Request, error: NotImplementedError) -> JSONResponse:
        return refuse(501, str(error))

    @app.exception_handler(ClientDisconnect)
    async def hung_up(_: Request, error: ClientDisconnect) -> JSONResponse:
        return refuse(499, "the client hung up")  # nobody reads it
