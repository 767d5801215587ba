"""The element-wise core: operands of any layout and dtype made into blocks, on which loops run."""
