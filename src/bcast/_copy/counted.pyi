# Python sees nothing of it.
