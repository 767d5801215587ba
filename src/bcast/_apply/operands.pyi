# Nothing here is for Python: the .pxd says what other modules may use.
