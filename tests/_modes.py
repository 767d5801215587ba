"""Calls of every mode, drawn from the table of modes: the second implementation in `_reference` decides which fit."""

from itertools import chain, combinations, product

from _reference import reference

from bcast._rules.alignment import MODES

# The mode and the names of the arguments of each way to call it.
FORMS = {"-".join((m.name, *form.arguments)): (m.name, tuple(form.arguments)) for m in MODES for form in m.forms}
NAMES = [mode.name for mode in MODES]


def readers(*arguments):
    return {mode for mode, names in FORMS.values() if set(names) & set(arguments)}


def subsets(items):
    return chain.from_iterable(combinations(items, count) for count in range(len(items) + 1))


def drawn_call(choose, target, form):
    """Draw the data's shape, a target and arguments around `target`, which fit if anything drawn does.

    `choose` takes a sequence and returns one of its items.
    """
    mode, names = FORMS[form]
    rank = len(target)
    source = tuple(choose((1, length)) for length in target)
    ones = tuple(choose((1, length, length)) for length in target)
    first = choose(range(rank + 1))
    last = choose(range(first, rank + 1))
    axes = [axis for axis in range(rank) if choose((True, False))]
    arguments = {"mode": mode}
    if "axis" in names:
        arguments["axis"] = choose((first, first, -1))
    for name in ("axes_mapping", "broadcast_axes"):
        if name in names:
            arguments[name] = axes
    shapes = [
        source[first:last] + (1,) * choose(range(rank - last + 1)),
        tuple(source[axis] for axis in axes),
        tuple(target[axis] for axis in range(rank) if axis not in axes),
        source[first:],
        source[:last],
        target,
    ]
    pairs = [(data, to) for data in shapes for to in (ones, target)]
    fits = [pair for pair in pairs if reference(*pair, **arguments)]
    data, to = choose(fits or pairs)
    return data, to, arguments


def every_call(form, shapes):
    """All calls with targets of `shapes` whose data has axes of the target, or 1s there and behind; most do not fit."""
    mode, names = FORMS[form]
    for shape in shapes:
        rank = len(shape)
        choices = [{}]
        if "axis" in names:
            choices = [{"axis": axis} for axis in range(-1, rank + 1)]
        for name in ("axes_mapping", "broadcast_axes"):
            if name in names:
                choices = [{name: axes} for axes in subsets(range(rank))]
        datas = {
            data + (1,) * ones
            for axes in subsets(range(rank))
            for data in product(*[{1, shape[axis]} for axis in axes])
            for ones in range(rank - len(data) + 1)
        }
        for arguments in choices:
            for data in sorted(datas):
                yield data, shape, {"mode": mode, **arguments}
