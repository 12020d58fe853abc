"""Line charts as SVG, on logarithmic or linear scales; linear ones start at zero."""

from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 300, 250
WIDE, HIGH = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 58, 16, 30, 44
LEGEND = 24
STYLE = "font-family: sans-serif; font-size: 11px"
GREY, LIGHT = "#444", "#ddd"


@dataclass(frozen=True)
class Dot:
    """A value, and its range in both directions."""

    x: float
    y: float
    least: float
    most: float


@dataclass(frozen=True)
class Curve:
    name: str
    colour: str
    dots: list
    dash: str = ""


@dataclass(frozen=True)
class Scale:
    """A scale from one value to another, logarithmic or linear."""

    first: float
    last: float
    title: str
    # Labels that replace numbers.
    names: dict = field(default_factory=dict)

    @classmethod
    def around(cls, curves, title):
        """Returns the logarithmic scale between the powers of ten that enclose all values."""
        values = [value for curve in curves for dot in curve.dots for value in (dot.least, dot.most)] or [1, 10]
        first, last = floor(log10(min(values))), ceil(log10(max(values)))
        return cls(10.0**first, 10.0 ** max(last, first + 1), title)

    @classmethod
    def from_zero(cls, curves, title):
        most = max((dot.most for curve in curves for dot in curve.dots), default=1)
        step = step_for(most)
        return cls(0, step * ceil(most / step), title)

    @classmethod
    def from_zero_along(cls, curves, title):
        """Returns a linear scale from zero for the horizontal axis."""
        most = max((dot.x for curve in curves for dot in curve.dots), default=1)
        step = step_for(most)
        return cls(0, step * ceil(most / step), title)

    @property
    def is_even(self):
        return self.first == 0

    def share(self, value):
        """Returns the position of a value, from 0 to 1."""
        if self.is_even:
            return value / self.last
        return (log10(value) - log10(self.first)) / (log10(self.last) - log10(self.first))

    def ticks(self):
        if self.is_even:
            step = step_for(self.last)
            return [step * index for index in range(round(self.last / step) + 1)]
        return [10.0**power for power in range(round(log10(self.first)), round(log10(self.last)) + 1)]

    def label(self, value):
        return self.names.get(value) or short(value)


def step_for(most):
    """Returns 1, 2 or 5 times a power of ten, with which there are four to ten steps."""
    power = 10.0 ** floor(log10(most / 4))
    return max(factor * power for factor in (1, 2, 5) if factor * power <= most / 4)


def short(value):
    for factor, letter in ((1e6, "M"), (1e3, "K")):
        if value >= factor:
            return f"{value / factor:g}{letter}"
    return f"{value:g}"


@dataclass(frozen=True)
class Chart:
    title: str
    x: Scale
    y: Scale
    curves: list
    width: int = 0
    height: int = 0

    @staticmethod
    def side_by_side(charts, columns):
        """Returns a picture of charts with the same curves, whose names are only at the top."""
        width, height = (WIDTH, HEIGHT) if columns > 1 else (WIDE, HIGH)
        across = min(columns, len(charts))
        whole_width, whole_height = width * across, LEGEND + height * ceil(len(charts) / columns)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole_width} {whole_height}" '
            f'width="{whole_width}" height="{whole_height}" style="{STYLE}">',
            '<rect width="100%" height="100%" fill="white"/>',
            *legend(charts[0].curves),
        ]
        for index, chart in enumerate(charts):
            x, y = width * (index % columns), LEGEND + height * (index // columns)
            parts.append(f'<g transform="translate({x} {y})">')
            parts += chart.drawn(width - LEFT - RIGHT, height - TOP - BOTTOM)
            parts.append("</g>")
        return "\n".join([*parts, "</svg>\n"])

    def drawn(self, width, height):
        """Returns the chart with axes of these lengths."""
        yield f'<g transform="translate({LEFT} {TOP})">'
        yield text(width / 2, -10, self.title, "middle", "bold")
        for value in self.x.ticks():
            x = self.x.share(value) * width
            yield line(x, 0, x, height, LIGHT)
            yield text(x, height + 15, self.x.label(value), "middle")
        for value in self.y.ticks():
            y = (1 - self.y.share(value)) * height
            yield line(0, y, width, y, LIGHT)
            yield text(-6, y + 4, self.y.label(value), "end")
        yield line(0, height, width, height, GREY)
        yield line(0, 0, 0, height, GREY)
        yield text(width / 2, height + 33, self.x.title, "middle")
        yield f'<g transform="translate(-42 {height / 2:.1f}) rotate(-90)">{text(0, 0, self.y.title, "middle")}</g>'
        for curve in self.curves:
            yield from self.drawn_curve(curve, width, height)
        yield "</g>"

    def drawn_curve(self, curve, width, height):
        def at(x, y):
            return self.x.share(x) * width, (1 - self.y.share(y)) * height

        path = " ".join("{:.1f},{:.1f}".format(*at(dot.x, dot.y)) for dot in curve.dots)
        yield (
            f'<polyline points="{path}" fill="none" stroke="{curve.colour}" stroke-width="2" '
            f'stroke-dasharray="{curve.dash or "none"}"/>'
        )
        for dot in curve.dots:
            (x, y), (_, low), (_, high) = at(dot.x, dot.y), at(dot.x, dot.least), at(dot.x, dot.most)
            yield line(x, low, x, high, curve.colour)
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{curve.colour}"/>'


def legend(curves):
    for index, curve in enumerate(curves):
        x = LEFT + 150 * index
        yield (
            f'<line x1="{x}" y1="16" x2="{x + 24}" y2="16" stroke="{curve.colour}" stroke-width="2" '
            f'stroke-dasharray="{curve.dash or "none"}"/>'
        )
        yield text(x + 30, 20, curve.name, "start")


def line(x1, y1, x2, y2, colour):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def text(x, y, words, anchor, weight="normal"):
    look = f'text-anchor="{anchor}" font-weight="{weight}" fill="#222"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{escape(words)}</text>'
