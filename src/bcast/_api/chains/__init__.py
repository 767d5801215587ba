"""Chains that have reductions: their plan, their blocks, and what reduces them.

In: a `Chain` of the front end's (`elementwise.py`), which checks and runs single element-wise steps. Out: its result.
`calls.py` does a call; `stages.py` plans, `reducing.py` runs the blocks, `folds.py` reduces; `fused.py` has stages that
one loop does, `layouts.py` the order of items within a block.
"""
