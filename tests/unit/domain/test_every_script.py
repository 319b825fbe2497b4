"""Texts that differ in letters of any script are different things wherever texts are compared."""

import hashlib
from datetime import UTC, datetime

import pytest

from memoryos_pipeline.domain.turn_body import hash_turn
from memoryos_pipeline.domain.turns import NewTurn
from memoryos_pipeline.models.lexical import lexical_terms, normalize_text
from memoryos_pipeline.store.entities import normalize_name

UNRELATED = ["猫を飼い始めた", "이사를 갔다", "他换了工作", "Я переехал в Казань"]
SHARING_LATIN = ["v2が出た", "v2を待つ", "v2は遅い", "v2に戻す"]


@pytest.mark.parametrize("texts", [UNRELATED, SHARING_LATIN], ids=["unrelated", "sharing-v2"])
class TestCompare:
    def test_hashes_differ(self, texts: list[str]) -> None:
        """Four texts are four turns, none of them the empty one."""
        turn = NewTurn("u", "a", "c", "t", "user", "Maya", "", datetime(2026, 1, 1, tzinfo=UTC))
        hashes = {hash_turn(turn._replace(content=text)) for text in texts}

        assert len(hashes) == 4
        assert hash_turn(turn) not in hashes
        assert hashlib.sha256(b"").digest() not in hashes

    def test_normal_forms_keep_letters(self, texts: list[str]) -> None:
        """Folding forms and case folds no two of them into one, and none into nothing."""
        for fold in (normalize_text, normalize_name):
            folded = {fold(text) for text in texts}
            assert len(folded) == 4
            assert "" not in folded

    def test_each_has_words_of_its_own(self, texts: list[str]) -> None:
        """Each is found by something no other has."""
        terms = [set(lexical_terms(text, "und")) for text in texts]

        assert all(mine - set().union(*(other for other in terms if other is not mine)) for mine in terms)
