# Nothing for Python: what is in it is called from C.
