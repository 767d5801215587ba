"""What `python -m bcast bench` needs: workloads, peers, timing and the table.

What comes in is a time limit; what goes out is a table of ratios. Peers are imported only when asked for, and those not
installed are left out, by name.
"""
