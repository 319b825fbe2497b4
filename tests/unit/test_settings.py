"""Settings are typed, frozen, and say in a sentence what is wrong with them."""

import pytest

from memoryos_pipeline.settings import Settings, SettingsError, load_settings


class TestLoad:
    def test_a_wrong_value_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The sentence names the variable, never the value."""
        monkeypatch.setenv("MEMORYOS_LEASE_SECONDS", "soon-hunter2")
        with pytest.raises(SettingsError) as caught:
            load_settings()

        assert "MEMORYOS_LEASE_SECONDS" in str(caught.value)
        assert "hunter2" not in str(caught.value)

    def test_a_model_call_must_end_before_its_lease(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Budgets that contradict each other stop the start."""
        monkeypatch.setenv("MEMORYOS_MODEL_DEADLINE_SECONDS", "90")
        with pytest.raises(SettingsError, match="MEMORYOS_MODEL_DEADLINE_SECONDS"):
            load_settings()

    def test_a_stage_may_run_as_long_as_its_lease(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A process that ended itself over every long row would do nothing else."""
        monkeypatch.setenv("MEMORYOS_STAGE_SECONDS", "59")
        with pytest.raises(SettingsError, match="MEMORYOS_STAGE_SECONDS"):
            load_settings()

    def test_secrets_are_not_printed(self) -> None:
        """A settings object in a log shows no password."""
        settings = Settings(database_url="postgresql://memoryos_app:hunter2@127.0.0.1/memoryos")

        assert "hunter2" not in repr(settings)


class TestModel:
    def test_a_key_switches_the_model_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without ANTHROPIC_API_KEY nothing is called; with it `auto` means the Anthropic model."""
        monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
        assert load_settings().uses_anthropic is False

        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
        assert load_settings().uses_anthropic is True
