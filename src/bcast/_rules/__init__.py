"""The rules of all systems: from shapes, axes and a mode to an `Alignment`.

In: shapes, axes and modes as users pass them. Out: an `Alignment`, which is two tuples of Python ints, or an error that
says what does not fit. No item of the data is read and no result is allocated here. Nothing below uses modes.
"""
