"""Draw the picture of the modes, when the pages are built.

Each panel is one call. Boxes are axes with their lengths; an arrow runs from an axis of the data to the axis of the
output that it feeds. Shapes, arrows and colours are not drawn by hand but asked of the library.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from bcast._rules.alignment import MODES, align

Shape = tuple[int, ...]

INK, FAINT, RULE, CARD = "#1f2933", "#5f6c7b", "#d5dbe1", "#ffffff"
COPIED, REPEATED, PLAIN = ("#d9e8fc", "#2f6fc4"), ("#fde7cf", "#c8691c"), ("#f3f5f7", "#8b97a3")  # fill, edge

UNIT = 0.72  # inches, of the lengths below
WIDTH, HEIGHT = 0.8, 0.44  # of a box
FIRST, STEP = 1.35, 0.98  # where the first axis is, and from one to the next
ROW = 0.98  # from the output's row to the data's, and to the target's

plt.rcParams.update({"font.family": "DejaVu Sans", "hatch.linewidth": 0.9})


class Panel(NamedTuple):
    """A call of `broadcast`, and the rule that it shows."""

    title: str
    rule: str
    data: Shape
    target: Shape
    arguments: dict[str, Any]


def panels() -> Iterator[Panel]:
    """Yield a panel for each example in the table of modes."""
    for mode in MODES:
        for rule, data, target, arguments in mode.forms:
            title = mode.name if len(mode.forms) == 1 else f"{mode.name}, by {', '.join(arguments)}"
            mode_argument = {} if mode is MODES[0] else {"mode": mode.name}
            yield Panel(title, rule, data, target, arguments | mode_argument)


def feeds(data: Shape, target: Shape, arguments: dict[str, Any]) -> list[int]:
    """Find which output axis each axis of `data` feeds: the one that must change with it, and then takes its length."""
    rank = len(align(data, target, **arguments).shape)
    lacking = rank - len(target)  # a bidirectional target may have fewer axes than the output
    mark = max(data + target) + 1
    axes = []
    for i in range(len(data)):
        marked_data = (*data[:i], mark, *data[i + 1 :])
        for axis in range(rank):
            marked_target = tuple([mark if k + lacking == axis else length for k, length in enumerate(target)])
            try:
                source = align(marked_data, marked_target, **arguments).source
            except ValueError:
                continue
            if source[axis] == mark:
                axes.append(axis)
                break
    if len(axes) != len(data):
        raise ValueError(f"{data} to {target}: only {axes} are fed")
    return axes


def draw_box(ax: Axes, x: float, y: float, length: int | str, colours: tuple[str, str], *, hatched: bool) -> None:
    """Draw an axis as a box with its length inside."""
    fill, edge = colours
    place = {"xy": (x - WIDTH / 2, y - HEIGHT / 2), "width": WIDTH, "height": HEIGHT}
    style = "round,pad=0,rounding_size=0.07"
    ax.add_patch(FancyBboxPatch(**place, boxstyle=style, facecolor=fill, edgecolor=edge, linewidth=1.3))
    backing = None
    if hatched:
        hatch = {"facecolor": "none", "edgecolor": edge, "linewidth": 0, "hatch": "////", "alpha": 0.4}
        ax.add_patch(FancyBboxPatch(**place, boxstyle=style, **hatch))
        backing = {"boxstyle": "round,pad=0.1", "facecolor": fill, "edgecolor": "none"}
    ax.text(x, y - 0.01, str(length), ha="center", va="center", fontsize=11.5, color=INK, bbox=backing)


def draw_row(ax: Axes, y: float, name: str, shape: Shape, axes: list[int], colours: list[tuple[str, str]]) -> None:
    """Draw the axes of the data or the target in line with the output axes that they feed, and arrows to these."""
    ax.text(0, y, name, va="center", fontsize=9, color=FAINT)
    side = 1 if y > 0 else -1
    for length, axis, colour in zip(shape, axes, colours, strict=True):
        x = FIRST + axis * STEP
        draw_box(ax, x, y, length, colour, hatched=False)
        ends = (x, y - side * HEIGHT / 2), (x, side * HEIGHT / 2)
        style = {"arrowstyle": "-|>", "mutation_scale": 11, "linewidth": 1.5, "shrinkA": 0.5, "shrinkB": 1}
        ax.add_patch(FancyArrowPatch(*ends, color=colour[1], **style))


def draw_panel(ax: Axes, panel: Panel) -> None:
    """Draw one call: the data above the output, each axis above the one that it feeds."""
    data, target, arguments = panel.data, panel.target, panel.arguments
    alignment = align(data, target, **arguments)
    output = alignment.shape
    fed = feeds(data, target, arguments)

    ax.text(0, 1.98, panel.title, fontsize=13, fontweight="bold", color=INK)
    ax.text(0, 1.6, panel.rule, fontsize=9.5, color=FAINT)
    colours = [COPIED if output[axis] == length else REPEATED for axis, length in zip(fed, data, strict=True)]
    draw_row(ax, ROW, "data", data, fed, colours)
    ax.text(0, 0, "output", va="center", fontsize=9, color=FAINT)
    for axis, length in enumerate(output):
        repeated = alignment.source[axis] != length
        colour = REPEATED if repeated else COPIED if axis in fed else PLAIN
        draw_box(ax, FIRST + axis * STEP, 0, length, colour, hatched=repeated)
        if output == target:
            ax.text(FIRST + axis * STEP, -0.42, f"axis {axis}", ha="center", va="center", fontsize=7.5, color=FAINT)

    bottom = -0.86
    if output != target:  # then the target stretches too, by the same rule the other way round
        draw_row(ax, -ROW, "target", target, feeds(target, data, arguments), [PLAIN] * len(target))
        bottom = -ROW - 0.62
    call = "".join([f", {name}={value!r}" for name, value in arguments.items()]).replace("'", '"')
    code = {"fontsize": 7.8, "family": "DejaVu Sans Mono"}
    ax.text(0, bottom, f"broadcast(x, {target}{call})", color=INK, **code)
    ax.text(0, bottom - 0.33, f"x: {data}  →  {output}", color=FAINT, **code)


def draw_legend(ax: Axes, y: float) -> None:
    """Say what the boxes of the output mean."""
    entries = [
        (0.42, COPIED, False, "copied"),
        (2.2, REPEATED, True, "repeated"),
        (4.2, PLAIN, False, "new, length 1"),
    ]
    for x, colours, hatched, meaning in entries:
        draw_box(ax, x, y, "", colours, hatched=hatched)
        ax.text(x + 0.52, y - 0.01, meaning, va="center", fontsize=9.5, color=INK)


def draw() -> Figure:
    """Draw all panels on a white card, which is readable on a dark page too."""
    shown = list(panels())
    rows = (len(shown) + 1) // 2
    margin, width, size = 0.35, 10.0, (4.65, 3.3)  # inches; a row has room for a target
    height = rows * size[1] + 2 * margin
    figure = plt.figure(figsize=(width, height), facecolor="none", layout="none")
    card = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
    card.axis("off")
    style = "round,pad=0,rounding_size=0.15"
    card.add_patch(FancyBboxPatch((0.02, 0.02), width - 0.04, height - 0.04, style, facecolor=CARD, edgecolor=RULE))

    def part(left: float, bottom: float, top: float) -> Axes:
        ax = figure.add_axes((left / width, bottom / height, size[0] / width, (top - bottom) / height))
        ax.set(xlim=(0, size[0] / UNIT), ylim=(2.4 - (top - bottom) / UNIT, 2.4))
        ax.axis("off")
        return ax

    for i, panel in enumerate(shown):
        row, column = divmod(i, 2)
        top = height - row * size[1]
        if row and not column:
            card.plot([margin, width - margin], [top, top], color=RULE, linewidth=1)
        draw_panel(part(margin + column * width / 2, top - size[1], top - 0.05), panel)
    draw_legend(part(margin, 0, 2 * margin), 2.05)
    return figure


if __name__ == "__main__":
    draw()
