"""Chains with reductions: their plan, their blocks, and their reductions.

In: a `Chain` of the front end (`elementwise.py`), which checks and runs single element-wise steps. Out: its result.
`calls.py` runs a call; `stages.py` plans, `reducing.py` runs the blocks, `folds.py` reduces; `fused.py` has the stages
that one loop computes, and `layouts.py` the order of items within a block.
"""
