"""The models: one contract, `forward(inputs, steps) -> Trace`, and none knows labels or losses."""
