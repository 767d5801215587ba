"""The element-wise core: operands of any layout and dtype made into blocks, on which loops of NumPy's or its own run.

`nest.pyx` plans the blocks and walks them; `casts.h` converts the items of a block, and `select.h` chooses between two.
"""
