"""The rules of all systems: from shapes, axes and a mode to an `Alignment`.

What comes in is shapes, axes and modes as users pass them; what goes out is an `Alignment`, two tuples of Python's own
integers, or the error that says what does not fit. No array is read, and nothing is allocated. Nothing below knows of
modes.
"""
