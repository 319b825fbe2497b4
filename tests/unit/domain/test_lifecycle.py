"""The life of a page is written down once: the table, the drawing, and the columns agree."""

from itertools import product
from pathlib import Path

import pytest

from memoryos_pipeline.domain.lifecycle import (
    REMARKS,
    TRANSITIONS,
    IllegalTransitionError,
    PageFacts,
    PageState,
    draw,
    move,
    page_state,
)

DRAWING = Path(__file__).parents[3] / "docs" / "lifecycle.md"


class TestMove:
    def test_the_usual_life(self) -> None:
        """Five events take a page from sealed to archived."""
        state = PageState.SEALED
        for event in ("page_summarized", "page_assigned", "page_handed", "page_distilled", "page_archived"):
            state = move(state, event)

        assert state is PageState.ARCHIVED

    def test_everything_else_is_illegal(self) -> None:
        """No event may come in a state the table does not name; no page is archived before it is distilled."""
        for event, state in product(TRANSITIONS, PageState):
            if state not in TRANSITIONS[event]:
                with pytest.raises(IllegalTransitionError):
                    move(state, event)
        with pytest.raises(IllegalTransitionError):
            move(PageState.DISTILLING, "page_archived")

    def test_remarks_move_nothing(self) -> None:
        """Heating, cooling and pins are told, and leave the state as it is."""
        assert {move(PageState.WARM, event) for event in REMARKS} == {PageState.WARM}


class TestState:
    def test_every_state_can_be_read_from_the_columns(self) -> None:
        """Each state is what some row is in, and an archived row is archived whatever else it says."""
        states = {
            page_state(PageFacts(tier, *flags))
            for tier in ("warm", "archived")
            for flags in product((False, True), repeat=4)
        }

        assert states == set(PageState)


class TestDraw:
    def test_the_document_shows_this_table(self) -> None:
        """docs/lifecycle.md holds exactly the diagram drawn from the table, and names every event."""
        document = DRAWING.read_text(encoding="utf-8")

        assert f"```mermaid\n{draw()}\n```" in document
        assert [event for event in (*TRANSITIONS, *REMARKS) if f"`{event}`" not in document] == []
