"""The loop nest: the one description of axes and strides, and all that is done to it."""
