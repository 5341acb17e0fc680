"""`mull solve -f` on a file of RRN test puzzles, as a user runs it: what is solved, what is said of the rest, how fast.

The command runs in a process of its own, once as it is and once with `--exact`; every answer is compared with the true
solution. In the same run, CP-SAT solves a sample one by one on one core, called directly, as in `solve.py`. Processor
time is given besides the clock's, since other work on the machine changes it little.

    python benchmarks/speed/solve_files.py            # writes benchmarks/results/solve_files.json; a few minutes
    python benchmarks/speed/solve_files.py --quick    # seconds; for the tests
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from solve import cpsat

from mull.data import sets
from mull.files import write_text
from mull.problem import NumpyBatch
from mull.processor import usable_cores
from mull.provenance import provenance

RESULTS = Path(__file__).parents[1] / "results"
SET = "rrn_test"


WATCH = """
import json, resource, subprocess, sys
code, used = subprocess.call(sys.argv[1:]), resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([code, used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""
"""A small process between us and the command: by Linux's count, a process has used the memory of who started it."""


def solved(source: Path, out: Path, *options: str) -> dict[str, Any]:
    """Run the command: seconds by the clock and of all cores, the most memory it took, and its exit code."""
    command = [sys.executable, "-m", "mull", "solve", "-f", str(source), "-o", str(out), *options]
    began = time.perf_counter()
    run = subprocess.run([sys.executable, "-c", WATCH, *command], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - began
    code, processor, peak = json.loads(run.stdout)
    if code > 1:
        raise RuntimeError(run.stderr)
    mib = peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    return {"seconds": seconds, "processor_seconds": processor, "peak_mib": mib, "exit_code": code}


def judged(answers: list[dict[str, Any]], puzzles: list[str], solutions: list[str]) -> dict[str, Any]:
    """Answers against the true solutions: all must be there, in order, and no wrong one may be called verified."""
    if [answer["puzzle"] for answer in answers] != puzzles:
        raise RuntimeError("the answers are not in the order of the puzzles")
    right = [answer["solution"] == solution for answer, solution in zip(answers, solutions, strict=True)]
    verified = [answer["verified"] for answer in answers]
    return {
        "answers": len(answers),
        "verified": sum(verified),
        "right": sum(right),
        "verified_but_wrong": sum(yes and not ok for yes, ok in zip(verified, right, strict=True)),
        "methods": dict(Counter(answer["method"] for answer in answers)),
        "notes": dict(Counter(answer.get("note", "") for answer in answers if not answer["verified"])),
    }


def recurrences(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """How many recurrences the verified answers took."""
    steps = sorted(answer["steps"] for answer in answers if answer["verified"] and answer["method"] == "recurrence")
    shares = {str(share): steps[min(len(steps) - 1, int(share * len(steps)))] for share in (0.5, 0.9, 0.99, 0.999)}
    counts = {str(number): count for number, count in sorted(Counter(steps).items())}
    return {"mean": statistics.mean(steps), "within": shares, "most": steps[-1], "counts": counts}


def busy() -> float | None:
    """Seconds that the machine's cores have worked for others than us and our children, if the system tells."""
    try:
        user, nice, system, _, _, interrupts, soft = map(int, Path("/proc/stat").read_text().split()[1:8])
    except OSError:
        return None
    return (user + nice + system + interrupts + soft) / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])


def measure(count: int, exact_count: int, small: int) -> dict[str, Any]:
    """The command on a small and on the whole file, with and without the exact solver; and CP-SAT alone."""
    batch: NumpyBatch = sets.load(SET, count)
    problem = sets.problem_of(SET)
    found: dict[str, Any] = {"puzzles": count, "cores": usable_cores()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sets.write_csv(problem, batch[:small], folder / "small.csv")
        sets.write_csv(problem, batch, folder / "all.csv")
        lines = (folder / "all.csv").read_text().splitlines()[1:]
        puzzles, solutions = (list(column) for column in zip(*(line.split(",") for line in lines), strict=True))
        found["small"] = {"puzzles": small, **solved(folder / "small.csv", folder / "small.jsonl")}
        for way, options in {"recurrences": [], "exact": ["--exact"]}.items():
            cost = solved(folder / "all.csv", folder / f"{way}.jsonl", *options)
            answers = [json.loads(line) for line in (folder / f"{way}.jsonl").read_text().splitlines()]
            rates = {"per_s": count / cost["seconds"], "per_core_s": count / cost["processor_seconds"]}
            found[way] = {"options": options, **cost, **rates, **judged(answers, puzzles, solutions)}
            if way == "recurrences":
                found["steps"] = recurrences(answers)
    instances = [problem.parse(text) for text in puzzles[:exact_count]]
    cpsat(instances[0])
    wall, processor = time.perf_counter(), time.process_time()
    values = [cpsat(instance) for instance in instances]
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    if values != (batch.solution[:exact_count] + 1).tolist():
        raise RuntimeError("CP-SAT was not asked the right question")
    found["cpsat"] = {"puzzles": exact_count, "per_s": exact_count / wall, "per_core_s": exact_count / processor}
    for way in ("recurrences", "exact"):
        for rate in ("per_s", "per_core_s"):
            found[way][f"{rate}_of_cpsat"] = found[way][rate] / found["cpsat"][rate]
    return found


def main() -> None:
    """Measure and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few puzzles only")
    parser.add_argument("--out", type=Path, default=RESULTS / "solve_files.json")
    arguments = parser.parse_args()
    sizes = (60, 3, 20) if arguments.quick else (10_000, 1_000, 1_000)
    began, before = time.perf_counter(), busy()
    found = measure(*sizes)
    after, seconds = busy(), time.perf_counter() - began
    others = None if before is None or after is None else max(0.0, after - before) / seconds / found["cores"]
    result = {"data": SET, "seed": 0, "others": others, **found, "provenance": provenance()}
    write_text(arguments.out, json.dumps(result, indent=1) + "\n")
    print(json.dumps({key: value for key, value in result.items() if key != "steps"}, indent=1))


if __name__ == "__main__":
    main()
