"""The element-wise core: it converts operands of any layout and dtype to blocks, and runs loops on these."""
