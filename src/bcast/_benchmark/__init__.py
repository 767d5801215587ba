"""What `python -m bcast` and `python -m bcast bench` measure; benchmarks/ takes the timing from here."""
