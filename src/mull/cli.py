"""The command line: command -> function, nothing else. Every command imports what it needs when it runs.

Exit codes: 0 everything solved and verified; 1 something was not; 2 bad input or usage, with one line that says what.
"""

from __future__ import annotations

import os
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
import typer.core

from mull.errors import UserError
from mull.exits import complain, guarded

if TYPE_CHECKING:
    from mull.problem import Problem

PUZZLE = "One line of text; how problems write theirs is below."

app = typer.Typer(
    help="Solve constraint satisfaction problems with small recurrent Transformers, and train your own.",
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    rich_markup_mode=None,
)


def main(args: list[str] | None = None) -> int:
    """Run the command line and return its exit code; whatever goes wrong is told in one line."""
    return guarded(lambda: _parse(args))


def _parse(args: list[str] | None) -> int:
    try:
        return int(app(args, prog_name="mull", standalone_mode=False) or 0)
    except typer.TyperException as error:
        return complain(f"{error.format_message()} (see mull --help)")
    except typer.Abort:
        return 130


def _print_version(wanted: bool) -> None:
    if wanted:
        from mull import __version__

        print(f"mull {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options before the command."""
    if context.invoked_subcommand is None:
        print(context.get_help())


class PuzzleCommand(typer.core.TyperCommand):
    """A command that takes puzzles: its help ends with how each problem writes them."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Ask the problems, which only help needs to import here."""
        from mull.problems import PROBLEMS
        from mull.problems.stated import Stated

        formats: dict[str, str] = {}
        for name, make in PROBLEMS.items():  # one line for a problem of several sizes
            formats.setdefault(make().text_format, name)
        formats[Stated.text_format] = "your own"
        with formatter.section("Puzzles"):
            formatter.write_dl([(name, text) for text, name in formats.items()])


Model = Annotated[str, typer.Option("--model", "-m", metavar="NAME", help="A model that ships, or a model file.")]
Own = Annotated[
    str | None,
    typer.Option("--problem", metavar="FILE:NAME", help="The Python file and class of a problem of your own."),
]
Steps = Annotated[int | None, typer.Option(min=1, metavar="N", help="Recurrences at most.")]


@app.command(cls=PuzzleCommand)
def solve(
    puzzles: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PUZZLE",
            help=PUZZLE,
        ),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "-f",
            "--file",
            metavar="FILE",
            help="One puzzle a line, a CSV, JSON lines or Parquet; - for standard input.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FILE", help="Write answers there: .txt, .csv, .jsonl or .parquet."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with --out where a run ended, or begin.")] = False,
    photo: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Read a printed 9x9 Sudoku off a photograph (needs mull[photo])."),
    ] = None,
    model: Model = "sudoku",
    steps: Steps = None,
    search: Annotated[
        int, typer.Option(min=0, metavar="N", help="Where it fails, let the model try N times with values assumed.")
    ] = 0,
    exact: Annotated[
        bool | None, typer.Option("--exact/--no-exact", help="Let an exact solver settle what the model does not.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    precision: Annotated[
        str, typer.Option(metavar="P", help="fp32, int8, or auto: int8 where it is faster and loses nothing.")
    ] = "auto",
    engine: Annotated[
        str, typer.Option(metavar="E", help="local: this process; ray: a cluster (RAY_ADDRESS, or this machine).")
    ] = "local",
    problem: Own = None,
) -> int:
    """Solve puzzles and verify the answers."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # unused here, and starting its threads takes 50 ms
    from mull.puzzle_files import Reading, all_puzzles
    from mull.solve import load
    from mull.terminal import print_answers, print_photo, solve_into

    if photo is not None and (puzzles or file is not None):
        raise UserError("give either a photograph or puzzles, not both")
    if not puzzles and file is None and photo is None:
        raise UserError("give a puzzle, a file with -f FILE, or a photograph with --photo FILE")
    if photo is not None and out is not None:
        raise UserError("--out is for puzzles, not for a photograph")
    if resume and out is None:
        raise UserError("--resume goes on with a file: name it with --out FILE")
    if engine not in ("local", "ray"):
        raise UserError(f"there is no engine {engine!r}: use local or ray")
    _own(problem)
    solver = load(
        model, steps=steps, exact=exact, search=search, precision=cast(Any, precision)
    )  # load knows which there are
    if photo is not None:
        return 0 if print_photo(solver, photo, as_json) else 1
    solve_many = solver.solve_many
    if engine == "ray":
        from mull import cluster

        settings = cluster.Settings(model, steps, exact, search, cast(Any, precision), problem)
        solve_many = partial(cluster.solve_many, settings)
    reading = Reading()
    with closing(all_puzzles(puzzles or [], file, reading)) as wanted:
        if out is not None:
            return 0 if solve_into(out, solve_many, wanted, as_json, resume, reading) else 1
        return 0 if print_answers(solver, wanted, as_json, solve_many) else 1


@app.command()
def train(
    recipe: Annotated[
        str,
        typer.Argument(metavar="RECIPE", help="See: mull list recipes; FILE:NAME for a problem of your own."),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the run; runs/RECIPE if not given.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="D", help="cpu, cuda, cuda:1; a GPU where there is one.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="Seed of everything random.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
) -> None:
    """Train a model by a recipe, or on a problem of your own."""
    from mull.progress import reporting
    from mull.recipes import get_recipe, override, own_recipe
    from mull.train import train as run

    own = _own(recipe if ".py:" in recipe else None)
    whole = get_recipe(recipe) if own is None else own_recipe(own)
    changed = override(whole, (settings or []) + ([] if seed is None else [f"seed={seed}"]))
    with reporting() as report:
        run(changed, out or Path("runs") / whole.name, device, resume, report)


def _own(source: str | None) -> Problem | None:
    """The problem in a user's Python file, whose class files may name from now on; None if there is no such file."""
    from mull.own import load_problem

    return None if source is None else load_problem(source)


@app.command()
def fit(
    examples: Annotated[str, typer.Argument(metavar="EXAMPLES.csv", help="Columns: problem, solution.")],
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the run; runs/NAME if not given.")] = None,
    device: Annotated[
        str | None, typer.Option(metavar="D", help="cpu, cuda, cuda:1; a GPU where there is one.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="Seed of everything random.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting.")] = None,
    problem: Own = None,
) -> None:
    """Train a model on examples, and report on rows that were held out; rules are optional."""
    from mull.fit import fit as run
    from mull.progress import reporting

    changes, own = (settings or []) + ([] if seed is None else [f"seed={seed}"]), _own(problem)
    with reporting() as report:
        run(examples, out, device, changes, report, own)


@app.command("eval")
def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that ships, or a model file.")],
    data: Annotated[str | None, typer.Option(metavar="NAME|FILE", help="See: mull list data.")] = None,
    steps: Annotated[str, typer.Option(metavar="N,N,...", help="Numbers of recurrences.")] = "16,32,64",
    sides: Annotated[
        int, typer.Option(min=1, metavar="N", help="See each puzzle as N symmetries show it; the surest answer counts.")
    ] = 1,
    distort: Annotated[
        float, typer.Option(min=0, metavar="S", help="Turn and shift images on all sides but one; 0.5 is a little.")
    ] = 0.0,
    starts: Annotated[
        int, typer.Option(min=1, metavar="N", help="Start N times, with noise but once; the surest answer counts.")
    ] = 1,
    rounds: Annotated[
        int, typer.Option(min=1, metavar="N", help="N times over: what the model is surest of is given the next time.")
    ] = 1,
    tries: Annotated[
        int, typer.Option(min=1, metavar="N", help="All of it N times, not alike; what supports itself best counts.")
    ] = 1,
    device: Annotated[str | None, typer.Option(metavar="D", help="Use torch, on this device.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the result here too.")] = None,
    problem: Own = None,
) -> None:
    """Measure a model's accuracy on a data set, by number of recurrences."""
    from mull.looks import Looks
    from mull.scoring import evaluate_model

    _own(problem)
    evaluate_model(model, data, steps, device, json_file, Looks(sides, distort, starts, rounds, tries))


@app.command("data")
def make_data(
    name: Annotated[str, typer.Argument(metavar="NAME", help="See: mull list data.")],
    count: Annotated[int | None, typer.Option(min=1, metavar="N", help="How many puzzles.")] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of generated puzzles.")] = 0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="A CSV file; standard output if not given.")] = None,
    problem: Own = None,
) -> None:
    """Write puzzles and their solutions as CSV."""
    from mull.data import sets
    from mull.terminal import print_csv

    own = _own(problem)
    source, batch = sets.problem_of(name, own), sets.load(name, count, seed, own=own)
    if out is None:
        print_csv(source, batch)
    else:
        sets.write_csv(source, batch, out)


@app.command()
def export(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="The folder of a run, its best.safetensors, or a model.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The model file to write: NAME.mull.")],
    scores: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What mull eval --json wrote, to put on the model's card.")
    ] = None,
    int8: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Measure int8 on this validation data; used if it loses nothing."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(metavar="N", help="Recurrences to solve with, if not those it was validated at.")
    ] = None,
    problem: Own = None,
) -> None:
    """Write a model file that solves without torch."""
    from mull.export import export_model

    _own(problem)
    export_model(Path(model), out, scores, steps)
    print(f"wrote {out}")
    if int8 is not None:
        from mull.int8 import add_int8
        from mull.terminal import int8_verdict

        print(int8_verdict(add_int8(out, int8)))


@app.command(cls=PuzzleCommand)
def show(
    puzzle: Annotated[
        str,
        typer.Argument(
            metavar="PUZZLE",
            help=PUZZLE,
        ),
    ],
    out: Annotated[Path | None, typer.Option(metavar="PNG", help="Draw the recurrences into a picture.")] = None,
    model: Model = "sudoku",
    steps: Steps = None,
    problem: Own = None,
) -> None:
    """Print a puzzle's board; with --out, draw how the model solves it."""
    from mull.solve import load
    from mull.terminal import print_puzzle

    _own(problem)
    solver = load(model, steps=steps)
    print_puzzle(solver.problem, *solver.read(puzzle))
    if out is not None:
        from mull.plots import recurrences

        recurrences(solver, puzzle, out)
        print(f"wrote {out}")


@app.command()
def serve(
    host: Annotated[
        str, typer.Option(metavar="H", help="Address to listen on; 0.0.0.0 lets other machines in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="P", help="Port; 0 takes a free one.")] = 8000,
    models: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", metavar="FILE", help="A model file to offer besides those that ship."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name that browsers may call this server by, besides localhost."),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, metavar="S", help="Time limit of a request.")] = 30.0,
    queue: Annotated[int, typer.Option(min=1, metavar="N", help="Puzzles that may wait, by model.")] = 512,
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Puzzles in a request at most.")] = 256,
    body: Annotated[int, typer.Option(min=1, metavar="BYTES", help="Size of a request at most.")] = 8 << 20,
    search: Annotated[
        int, typer.Option(min=0, metavar="N", help="Model calls that a request may ask a search for.")
    ] = 200,
    problem: Own = None,
) -> None:
    """Serve an API, and a page that shows the models thinking, to a browser on this machine."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from mull.serve.run import run
    from mull.serve.settings import Settings

    _own(problem)
    hosts = tuple(allow_host or ())
    limits = Settings(seconds=seconds, queue=queue, batch=batch, body=body, search=search, hosts=hosts)
    run(host, port, models or [], limits)


@app.command("list")
def list_names(
    what: Annotated[str | None, typer.Argument(metavar="[problems|recipes|models|data]")] = None,
) -> None:
    """List what there is."""
    from mull.listing import print_list

    print_list(what)
