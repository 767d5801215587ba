"""The loop nest: the common description of axes and strides, and all operations on it."""
