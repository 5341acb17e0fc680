"""May a model run in int8? Its graph is made and measured on validation data, and its card says what came out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mull.errors import InvalidInput
from mull.graphs import complete, load_session, read_tensors
from mull.hub import Card, read_model, write_model
from mull.pool import Crew
from mull.predict import predict
from mull.problem import NumpyBatch
from mull.processor import has_int8_products
from mull.quantise import factors, quantise, watched
from mull.runtime import OnnxRuntime
from mull.scoring import load_data
from mull.solve import Solver

MOST_LOST = 0.001
"""Share of instances that may be lost at most."""
CALIBRATION = 64
"""Instances to take the ranges of numbers from; they are not measured on."""


def add_int8(path: Path, data: str) -> dict[str, Any]:
    """Put an int8 graph into a model file, and onto its card whether it may be used: what it scores on the data set."""
    if not has_int8_products():
        raise InvalidInput("int8 cannot be measured on this processor: it has no exact products of 8-bit numbers")
    card, members = read_model(path, OnnxRuntime.MEMBERS)
    batch = load_data(data, card.problem)
    if len(batch) <= CALIBRATION:
        raise InvalidInput(f"{data} has too few instances to measure int8 on: more than {CALIBRATION} are needed")
    members[OnnxRuntime.INT8] = calibrated(card, members, batch[:CALIBRATION])
    measured = compare(card, members, batch[CALIBRATION:])
    lost = max(row["fp32"] - row["int8"] for row in (measured["right"], measured["verified"]))
    about = {"allowed": bool(lost <= MOST_LOST), "data": data, **measured}
    write_model(path, replace(card, int8=about), members)
    return about


def calibrated(card: Card, members: dict[str, bytes], batch: NumpyBatch) -> bytes:
    """The int8 graph, with the ranges that the numbers have on some instances in all recurrences."""
    step = members["step.onnx"]
    names = factors(step)
    session = load_session(watched(complete(step, read_tensors(members["weights.safetensors"])), names))
    state = OnnxRuntime(card, members).start(batch.inputs)
    feed = {node.name: tensor for node, tensor in zip(session.get_inputs(), state.tensors, strict=True)}
    least, largest = np.full(len(names), np.inf), np.full(len(names), -np.inf)
    for _ in range(card.steps):
        feed["state"], *found = session.run(["next_state", *names], feed)
        least = np.minimum(least, [tensor.min() for tensor in found])
        largest = np.maximum(largest, [tensor.max() for tensor in found])
    return quantise(step, dict(zip(names, zip(least.tolist(), largest.tolist(), strict=True), strict=True)))


def compare(card: Card, members: dict[str, bytes], batch: NumpyBatch) -> dict[str, Any]:
    """Shares in fp32 and int8: right after all recurrences, and verified on the way, where there are rules."""
    found: dict[str, Any] = {"instances": len(batch), "steps": card.steps, "right": {}, "verified": {}}
    for precision in ("fp32", "int8"):
        runtime = OnnxRuntime(card, members, precision=precision, kernels=False)
        answers = predict(runtime, batch.inputs, [card.steps], runtime.batch)[0]
        found["right"][precision] = float(card.problem.right(batch, answers).mean())
        crew = Crew(runtime, card.steps, Solver(runtime).verified)
        done = crew.results(iter(batch.inputs)) if card.problem.rules else []
        found["verified"][precision] = sum(each.verified for each in done) / len(batch)
    return found
