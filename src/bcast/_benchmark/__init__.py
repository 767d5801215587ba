"""What `python -m bcast bench` needs: a time limit comes in, a table of NumPy's times relative to bcast's goes out.

The suite in benchmarks/ takes workloads, tasks and timing from here, and adds the peers.
"""
