"""What goes over the wire, as types: the API's description and the validation of requests come from these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(max_length=1 << 20)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class Request(BaseModel):
    """What every request about a puzzle has."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: Name = Field("sudoku", description="The name of a model: see GET /api/models.")


class PuzzleRequest(Request):
    """One puzzle."""

    puzzle: Text = Field(description="One line, as `mull solve` takes it; an image as data:image/png;base64,...")


class StreamRequest(PuzzleRequest):
    """One puzzle to watch being solved."""

    steps: int | None = Field(None, ge=1, le=1 << 16, description="Recurrences at most; the model's own if not given.")
    search: int = Field(
        0,
        ge=0,
        le=1 << 16,
        description="How often the model may try again, with values assumed, if it has no answer.",
    )
    exact: bool = Field(False, description="Let an exact solver settle what the model does not.")
    explain: bool = Field(
        False, description="Say why an answer is not verified, and whether a verified one is the only one."
    )


class SolveRequest(StreamRequest):
    """One puzzle, or a list of them."""

    puzzle: Text | list[Text] = Field(description="One line, as `mull solve` takes it, or a list of lines.")  # type: ignore[assignment]


class AttentionRequest(PuzzleRequest):
    """Where a variable looks in one recurrence."""

    step: int = Field(ge=1, le=1 << 16, description="The recurrence, from 1 on.")
    cell: int = Field(ge=0, le=1 << 16, description="The variable, from 0 on.")


class AnswerOut(BaseModel):
    """What became of a puzzle, as `mull solve --json` says it."""

    puzzle: str
    solution: str | None = Field(description="The answer, or the best guess where it is not verified.")
    verified: bool = Field(description="Whether the checker, never the model, found every constraint satisfied.")
    steps: int = Field(description="Recurrences spent.")
    method: Literal["recurrence", "search", "exact", "none"]
    ms: float = Field(description="Time of one core spent on it.")
    givens: str | None = Field(None, description="What the model read off images.")
    note: str | None = Field(None, description="What else there is to say.")


class Conflict(BaseModel):
    """A rule that is broken for good, and the variables it speaks of."""

    rule: str
    cells: list[int]


class Check(BaseModel):
    """What can be said of a puzzle before it is solved."""

    readable: bool
    error: str | None = Field(None, description="Why it cannot be read, or is no puzzle.")
    givens: list[int | None] = Field(description="The given value of each variable, from 0 on.")
    conflicts: list[Conflict]
    wrong: list[int] = Field(description="The variables at fault.")


class Attention(BaseModel):
    """How much of a variable's attention goes to each variable, by head; each row sums to 1."""

    heads: list[list[float]]


class Generated(BaseModel):
    """A puzzle to try."""

    model: str
    puzzle: str


class ModelOut(BaseModel):
    """A model, what it solves, and how a page lays it out."""

    name: str
    problem: str
    description: str
    text_format: str
    parameters: int
    steps: int
    checked: bool = Field(description="Whether its answers can be verified: the problem states rules.")
    exact: bool = Field(description="Whether an exact solver can settle its puzzles, where one is installed.")
    layout: dict[str, Any]


class Health(BaseModel):
    """How the server is."""

    status: Literal["ok"]
    version: str
    waiting: dict[str, int] = Field(description="Puzzles that wait for a place, by model that is loaded.")
    searching: int = Field(description="Puzzles in search or with the exact solver, or waiting for that.")
    search: int = Field(description="The most that a request may ask a search for.")
    exact: bool = Field(description="Whether the exact solver is installed.")
    photos: bool = Field(description="Whether photographs can be read.")


class Reading(BaseModel):
    """What was read off a photograph, to be looked over before solving."""

    model: str
    puzzle: str
    certainty: list[float] = Field(description="How sure the reader is of each cell.")
    changes: list[str] = Field(description="Cells that were not taken as first read, because of the rules.")
    board: str = Field(description="The board in the photograph, seen from above: data:image/jpeg;base64,...")


class Refusal(BaseModel):
    """Why a request was not served."""

    detail: str
