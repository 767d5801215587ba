"""What `python -m bcast bench` needs: workloads, peers, timing and the table.

In: a time limit. Out: a table of ratios. Peers are imported only when they are needed. Those that are not installed are
left out; those that fail to import, or for which no time is left, are named above the table.
"""
