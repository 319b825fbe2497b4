"""Writes what follows from the code in docs/mechanisms.md: `python -m memoryos_pipeline.cli.mechanisms docs`."""

import sys
from dataclasses import fields
from pathlib import Path

from memoryos_pipeline.cli.curves import documentation
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.policies_presets import CLAIMS, PRESETS
from memoryos_pipeline.domain.policies_words import describe

BEGIN, END = "<!-- written by: {} -->", "<!-- end -->"


def settings_table() -> str:
    """Return every setting of a policy: default, choices, meaning."""
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for each in fields(Policy):
        choices = f" One of {', '.join(each.metadata['choices'])}." if each.metadata["choices"] else ""
        rows.append(f"| `{each.name}` | {_said(each.default)} | {each.metadata['says']}{choices} |")
    return "\n".join(rows)


def presets_table() -> str:
    """Return what each preset means, in words, and which verbs it claims."""
    parts = []
    for name, policy in PRESETS.items():
        lines = [f"- {sentence}" for sentence in describe(policy).values()]
        parts.append("\n".join([f"### `{name}`", "", f"Verbs: {', '.join(sorted(CLAIMS[name]))}.", "", *lines]))
    return "\n\n".join(parts)


def page_with(page: str) -> str:
    """Return the page with its written parts as the code has them now."""
    for name, part in {"settings": settings_table(), "presets": presets_table()}.items():
        before, _, rest = page.partition(BEGIN.format(name))
        _, _, after = rest.partition(END)
        page = f"{before}{BEGIN.format(name)}\n{part}\n{END}{after}"
    return page


def main(folder: Path) -> None:
    """Write the page and its curves again."""
    page = folder / "mechanisms.md"
    page.write_text(page_with(page.read_text(encoding="utf-8")), encoding="utf-8")
    (folder / "curves").mkdir(exist_ok=True)
    for name, drawing in documentation().items():
        (folder / "curves" / name).write_text(drawing, encoding="utf-8")


def _said(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
