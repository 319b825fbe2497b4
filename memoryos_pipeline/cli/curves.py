"""Curves as small SVG files: lines over days, from 0 to 1, with a name each."""

from collections.abc import Mapping, Sequence

from memoryos_pipeline.domain.policies_presets import PRESETS
from memoryos_pipeline.domain.simulation import Habit, simulate

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 560, 240, 36, 12, 28
COLOURS = ("#1f6f8b", "#c8553d", "#588157", "#7b4b94", "#b08900", "#444444")
POINTS = 120
Line = Sequence[tuple[float, float]]


def draw(lines: Mapping[str, Line], *, days: int, title: str) -> str:
    """Return an SVG with one line for each name; values are cut to 0..1."""
    wide, high = WIDTH - LEFT - 130, HEIGHT - TOP - BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
        ' font-size="11">',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for value in (0.0, 0.5, 1.0):
        y = TOP + high * (1 - value)
        parts.append(f'<path d="M{LEFT} {y:.0f}h{wide}" stroke="#dddddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{value:g}</text>')
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = LEFT + wide * share
        parts.append(f'<text x="{x:.0f}" y="{HEIGHT - 10}" text-anchor="middle">{days * share:.0f}</text>')
    parts.append(f'<text x="{LEFT + wide + 10}" y="{HEIGHT - 10}">days</text>')
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(
            f"{LEFT + wide * day / days:.1f},{TOP + high * (1 - min(1.0, max(0.0, value))):.1f}" for day, value in line
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<text x="{LEFT + wide + 10}" y="{TOP + 14 + 16 * number}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def documentation() -> dict[str, str]:
    """Return the curves of docs/mechanisms.md by file name."""
    return {
        "heat.svg": draw(
            {
                "default, unused": _heat("default", Habit(), 60),
                "default, used weekly": _heat("default", Habit(use_every_days=7), 60),
                "default, used daily": _heat("default", Habit(use_every_days=1), 60),
                "seed000, unused": _heat("seed000", Habit(), 60),
            },
            days=60,
            title="Page heat over days",
        ),
        "weight.svg": draw(
            {
                "default, unused": _weight("default", Habit(), 365),
                "default, used monthly": _weight("default", Habit(use_every_days=30), 365),
                "seed000, used monthly": _weight("seed000", Habit(use_every_days=30), 365),
                "memorybank, daily": _weight("memorybank", Habit(use_every_days=1, use_until_day=60), 365),
                "mem0": _weight("mem0", Habit(), 365),
            },
            days=365,
            title="Weight of a statement over days",
        ),
    }


def _heat(preset: str, habit: Habit, days: int) -> Line:
    samples = simulate(PRESETS[preset], habit, days=days).samples
    return [(each.day, each.heat) for each in samples[:: max(1, days // POINTS)]]


def _weight(preset: str, habit: Habit, days: int) -> Line:
    samples = simulate(PRESETS[preset], habit, days=days).samples
    return [(each.day, each.weight) for each in samples[:: max(1, days // POINTS)]]
