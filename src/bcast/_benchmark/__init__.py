"""The measurements of `python -m bcast` and `python -m bcast bench`; benchmarks/ uses the same timing."""
