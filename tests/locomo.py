"""A generated file of LoCoMo's shape: words of our own, its quirks (dates without sessions, pictures) kept."""

import json
from pathlib import Path
from typing import Any

SHARED_LOCOMO = Path(__file__).resolve().parents[2] / "shared" / "data" / "locomo" / "dev.json"
SUBJECTS = ("kiln", "ferry", "violin", "orchard", "telescope", "marathon", "bakery")
MONTHS = ("January", "March", "May", "June", "August")


def locomo_samples(*, samples: int = 2, sessions: int = 3, turns: int = 8) -> list[dict[str, Any]]:
    """Return samples of two speakers each; the last session has a date and no turns."""
    return [_sample(number, sessions=sessions, turns=turns) for number in range(1, samples + 1)]


def write_locomo(path: Path, **sizes: int) -> Path:
    """Write a generated file and return where it is."""
    path.write_text(json.dumps(locomo_samples(**sizes), indent=2), encoding="utf-8")
    return path


def locomo_file(path: Path) -> Path:
    """Return the shared development half when this checkout has it beside it, else a generated file at `path`."""
    return SHARED_LOCOMO if SHARED_LOCOMO.exists() else write_locomo(path, samples=5, sessions=20, turns=30)


def _sample(number: int, *, sessions: int, turns: int) -> dict[str, Any]:
    speakers = (f"Ada{number}", f"Bo{number}")
    conversation: dict[str, Any] = {"speaker_a": speakers[0], "speaker_b": speakers[1]}
    for session in range(1, sessions + 1):
        month = MONTHS[(session - 1) * len(MONTHS) // sessions]
        date = f"{session % 12 or 12}:0{number % 10} pm on {session % 28 + 1} {month}, 2023"
        conversation[f"session_{session}_date_time"] = date
        conversation[f"session_{session}"] = [_turn(session, place, speakers) for place in range(1, turns + 1)]
    conversation[f"session_{sessions + 1}_date_time"] = "1:56 pm on 8 December, 2023"
    return {"sample_id": f"made-{number}", "conversation": conversation, "qa": []}


def _turn(session: int, place: int, speakers: tuple[str, str]) -> dict[str, Any]:
    subject = SUBJECTS[(session + place) % len(SUBJECTS)]
    turn = {
        "speaker": speakers[place % 2],
        "dia_id": f"D{session}:{place}",
        "text": f"In session {session} I thought about the {subject} again, for the {place}th time.",
    }
    return turn | ({"blip_caption": f"a photo of a {subject}", "img_url": ["x"]} if place % 4 == 0 else {})
