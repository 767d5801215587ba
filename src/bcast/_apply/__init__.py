"""The element-wise core: operands of any layout and dtype made into blocks, on which loops of NumPy's or its own run.

`_elementwise.pyx` compiles its parts as one module, so that small calls pass from one to the next at no cost.
"""
