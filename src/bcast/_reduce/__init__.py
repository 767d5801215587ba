"""The sum core: from the axes of an array to its sums; `core.pyx` says how."""
