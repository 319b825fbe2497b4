"""The page about mechanisms says what the code does, and its examples run."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memoryos_pipeline.cli.curves import documentation
from memoryos_pipeline.cli.main import app
from memoryos_pipeline.cli.mechanisms import page_with
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.policies_presets import PRESETS
from memoryos_pipeline.domain.policies_words import describe, duration
from memoryos_pipeline.domain.simulation import Habit, simulate

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "mechanisms.md").read_text(encoding="utf-8")


def _happened(policy: Policy, habit: Habit | None = None, *, days: int = 200) -> dict[str, float]:
    return {each.what: each.day for each in simulate(policy, habit or Habit(), days=days).happenings}


class TestPage:
    def test_tables_and_curves_are_what_the_code_says(self) -> None:
        """Write them again with `python -m memoryos_pipeline.cli.mechanisms docs` when this fails."""
        assert page_with(PAGE) == PAGE
        for name, drawing in documentation().items():
            assert (DOCS / "curves" / name).read_text(encoding="utf-8") == drawing

    def test_every_setting_it_names_exists(self) -> None:
        """A word in code letters that looks like a setting is one."""
        known = set(Policy.__dataclass_fields__)
        named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", PAGE))
        others = {"fifo_batch", "fifo_one", "token_budget", "ema_time", "ema_tick", "exp_rate", "ebbinghaus_strength",
                  "bounded_bias", "as_of", "pages_as_of", "knowledge_as_of", "forget_braked", "a_mem", "entity_link",
                  "bai_lab"}  # fmt: skip

        assert named - known - others == set()

    def test_its_commands_exist(self) -> None:
        """Each example names a command and options there are."""
        block = re.search(r"```sh\n(.*?)```", PAGE, re.DOTALL)
        assert block is not None
        for line in block[1].splitlines():
            words = line.split("#")[0].split()[1:]
            verbs = words[: 2 if words[0] == "policy" else 1]
            shown = CliRunner().invoke(app, [*verbs, "--help"])
            assert shown.exit_code == 0, line
            assert all(word in shown.output for word in words if word.startswith("--")), line


class TestParity:
    def test_every_mechanism_has_its_tests_and_settings(self) -> None:
        """A row of the matrix names tests and settings there are, and every preset but the default has rows."""
        matrix = (DOCS / "parity.md").read_text(encoding="utf-8")
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", matrix)
        missing = [f"{path}::{test}" for path, test in named if f"def {test}(" not in (ROOT / path).read_text()]
        settings = set(re.findall(r"`([a-z_]+)(?:=\w+)?`", matrix))
        known = {*Policy.__dataclass_fields__, *PRESETS, "profile", "memoryos"}

        assert len(named) > 30
        assert missing == []
        assert settings - known == set()
        assert all(f"| `{name}` |" in matrix for name in PRESETS if name != "default")


class TestSimulate:
    def test_the_default_cools_after_12_days_and_forgets_after_115(self) -> None:
        """The closed forms of heat and weight, replayed day by day."""
        happened = _happened(Policy())

        assert happened["page cooled"] == pytest.approx(12.16, abs=0.01)
        assert happened["statement forgotten"] == pytest.approx(115.13, abs=0.01)
        assert happened["statement deleted"] == pytest.approx(145.13, abs=0.01)

    def test_use_keeps_what_is_used(self) -> None:
        """Used every 30 days a statement lives; used once a day its page is pinned."""
        assert "statement forgotten" not in _happened(Policy(), Habit(use_every_days=30), days=1_000)
        assert "page pinned" in _happened(Policy(), Habit(use_every_days=1))

    def test_presets_differ_fifty_fold(self) -> None:
        """115 days, 2.3 days, for ever; by retrievals, three days of four."""
        assert _happened(PRESETS["memorybank"])["statement forgotten"] == pytest.approx(2.3, abs=0.01)
        assert "statement forgotten" not in _happened(PRESETS["mem0"])
        assert _happened(PRESETS["seed000"])["page cooled"] == 3.0

    def test_the_command_replays_and_draws(self, tmp_path: Path) -> None:
        """One JSON object and a curve to look at."""
        drawn = tmp_path / "life.svg"
        run = CliRunner().invoke(app, ["simulate", "ttl_days=9", "--days", "40", "--svg", str(drawn), "--json"])

        assert {"day": 9.0, "what": "statement forgotten"} in json.loads(run.stdout)["happenings"]
        assert drawn.read_text().startswith("<svg")
        assert CliRunner().invoke(app, ["simulate", "--preset", "memgpt"]).exit_code == 1


class TestDescribe:
    @pytest.mark.parametrize("name", PRESETS)
    def test_every_preset_has_a_sentence_for_everything(self, name: str) -> None:
        """Lifetimes are words, not numbers of seconds."""
        assert all(describe(PRESETS[name]).values())

    @pytest.mark.parametrize(
        ("days", "words"),
        [(115.13, "115 days"), (2.3026, "2.3 days"), (1, "1 day"), (0.25, "6 hours"), (1 / 48, "30 minutes"),
         (3_652.5, "10 years")],
    )  # fmt: skip
    def test_durations_are_said_as_people_say_them(self, days: float, words: str) -> None:
        """In the unit that makes the smallest number above one."""
        assert duration(days) == words
