# Each function has the types of NumPy's function, in whose place it is.
from numpy import *
from numpy import __version__ as __version__
