"""What `python -m bcast bench` needs: workloads, tasks, timing and the table.

In: a time limit. Out: a table of NumPy's times relative to bcast's. The suite in benchmarks/ takes workloads, tasks and
timing from here, and adds the peers.
"""
