"""The whole system in one command: servers, schema, key, then our own processes, watched until we are stopped."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import psutil

from memoryos_pipeline.embedded.children import Child, stop_together
from memoryos_pipeline.embedded.directory import Connection, DataDirectory
from memoryos_pipeline.embedded.first_run import ensure_key, ensure_schema
from memoryos_pipeline.embedded.plan import FLOWER_USER, Endpoints, Program, programs
from memoryos_pipeline.embedded.ports import PortClaims
from memoryos_pipeline.embedded.postgres import EmbeddedPostgres
from memoryos_pipeline.embedded.process import EmbeddedServerError, start_program, tail
from memoryos_pipeline.embedded.readiness import answers
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.settings import Settings

DATABASE = "memoryos"
LOOK_SECONDS = 0.5
READY_SECONDS = 45.0
PROGRAMS_STOP_SECONDS = 7.0
PORT_TRIES = 3
SAY_AGAIN_SECONDS = 1.0
LEAST_CONNECTIONS = 100
DATABASE_URLS = ("database_url", "ledger_url", "owner_url")

Tell = Callable[[str], None]


def run(settings: Settings, *, ready: Callable[[Connection], None], tell: Tell) -> None:
    """Run the whole system until SIGINT or SIGTERM; call `ready` once the API answers and `tell` of restarts.

    Must be called from the main thread. Raises EmbeddedServerError; nothing is left running whatever happens.
    """
    directory = DataDirectory(settings.data_dir.expanduser().resolve())
    here = settings.model_copy(update={"data_dir": directory.root})
    _end_like_ctrl_c()
    with directory.held():
        directory.forget_connection()  # a killed run may have left it
        supervisor = Supervisor(here, directory, tell=tell)
        try:
            connection = supervisor.start()
            ready(connection)
            supervisor.watch()
        except KeyboardInterrupt:
            tell("stopping")
        finally:
            supervisor.stop()


class Supervisor:
    """Starts, watches and stops the processes of one data directory."""

    def __init__(self, settings: Settings, directory: DataDirectory, *, tell: Tell) -> None:
        self._settings = settings
        self._directory = directory
        self._tell = tell
        self._postgres = None if _database_is_given(settings) else _own_postgres(settings, directory)
        self._valkey = None if _broker_is_given(settings) else EmbeddedValkey(directory.root / "valkey")
        self._ports = PortClaims()
        self._servers: list[Child] = []
        self._programs: list[Child] = []

    def start(self) -> Connection:
        """Start everything and return how to reach it once the API answers. Raises EmbeddedServerError."""
        endpoints = self._start_servers()
        ensure_schema(endpoints.owner_url)
        key = ensure_key(endpoints.owner_url, endpoints.database_url, directory=self._directory)
        endpoints = self._start_programs(endpoints)
        connection = Connection(
            api_url=endpoints.api_url,
            api_key=key,
            flower_url=endpoints.flower_url,
            flower_user=FLOWER_USER,
            flower_password=endpoints.flower_password,
            database_url=endpoints.database_url,
            ledger_url=endpoints.ledger_url,
            owner_url=endpoints.owner_url,
            broker_url=endpoints.broker_url,
            pid=os.getpid(),
        )
        self._directory.write_connection(connection)
        return connection

    def watch(self) -> None:
        """Start children again when they die, for ever; a stop signal ends it as KeyboardInterrupt."""
        with _child_deaths_wait():
            while True:
                signal.sigtimedwait([signal.SIGCHLD], LOOK_SECONDS)
                for child in (*self._servers, *self._programs):
                    if sentence := child.tend():
                        self._tell(sentence)

    def stop(self) -> None:
        """Stop our processes, then the servers, then whatever is left below us. Takes at most 15 s."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self._directory.forget_connection()
        stop_together(list(reversed(self._programs)), seconds=PROGRAMS_STOP_SECONDS)
        for server in (self._valkey, self._postgres):
            if server:
                server.stop()
        self._ports.release()
        for straggler in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                straggler.kill()

    def _start_servers(self) -> Endpoints:
        settings = self._settings
        broker_url = settings.broker_url.get_secret_value()
        urls = {name: getattr(settings, name).get_secret_value() for name in DATABASE_URLS}
        if self._postgres:
            self._keep(self._servers, Child("postgres", partial(_begin, self._postgres)))
            if not self._postgres.has_database(DATABASE):
                self._postgres.create_database(DATABASE)
            urls = {f"{'database' if role == 'app' else role}_url": self._postgres.url(role, DATABASE)
                    for role in ("app", "ledger", "owner")}  # fmt: skip
        if self._valkey:
            self._keep(self._servers, Child("valkey", partial(_begin, self._valkey)))
            broker_url = self._valkey.url
        password = self._directory.secret("flower_password")
        return Endpoints(
            **urls, broker_url=broker_url, api_host=settings.api_host,
            api_port=0, flower_port=0, flower_password=password,
        )  # fmt: skip

    def _start_programs(self, endpoints: Endpoints) -> Endpoints:
        """Start our own processes; a port that is taken meanwhile is exchanged, unless it was asked for."""
        for _ in range(PORT_TRIES):
            chosen = replace(
                endpoints,
                api_port=self._ports.choose(self._settings, "api_port", self._settings.api_host),
                flower_port=self._ports.choose(self._settings, "flower_port", "127.0.0.1"),
            )
            for program in programs(self._settings, chosen, os.environ):
                self._keep(self._programs, Child(program.name, partial(self._begin_program, program)))
            api = next(child for child in self._programs if child.name == "api")
            if answers(f"{chosen.api_url}/readyz", while_alive=api, seconds=READY_SECONDS):
                return chosen
            stop_together(self._programs, seconds=PROGRAMS_STOP_SECONDS)
            self._programs.clear()
            self._ports.release()
            if "address already in use" not in tail(self._directory.log("api"), lines=20).lower():
                break
        log = self._directory.log("api")
        raise EmbeddedServerError(f"the API did not come up; {log} ends with: {tail(log)}")

    def _begin_program(self, program: Program) -> subprocess.Popen[bytes]:
        return start_program(program.command, log=self._directory.log(program.name), environment=program.environment)

    def _keep(self, children: list[Child], child: Child) -> None:
        children.append(child)
        child.start()


def _begin(server: EmbeddedPostgres | EmbeddedValkey) -> subprocess.Popen[bytes]:
    server.start()
    assert server.process is not None  # noqa: S101 - started just now, for the type checker
    return server.process


def _own_postgres(settings: Settings, directory: DataDirectory) -> EmbeddedPostgres:
    """Return a server with room for everybody we start."""
    most = max(LEAST_CONNECTIONS, settings.embedded_connections)
    return EmbeddedPostgres(directory.root / "postgres", settings={"max_connections": str(most)})


def _database_is_given(settings: Settings) -> bool:
    given = [name for name in DATABASE_URLS if name in settings.model_fields_set]
    if 0 < len(given) < len(DATABASE_URLS):
        missing = ", ".join(f"MEMORYOS_{name.upper()}" for name in DATABASE_URLS if name not in given)
        raise EmbeddedServerError(f"to use an existing database set {missing} as well")
    return bool(given)


def _broker_is_given(settings: Settings) -> bool:
    return "broker_url" in settings.model_fields_set


def _end_like_ctrl_c() -> None:
    """Let SIGTERM and SIGHUP end us the way Ctrl-C does, and let it be said again until it is heard.

    Python drops what is raised while it runs a weak reference's callback, as it does at imports.
    """

    def interrupt(_: int, __: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, SAY_AGAIN_SECONDS)
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # ignored under nohup
            signal.signal(number, interrupt)


@contextmanager
def _child_deaths_wait() -> Iterator[None]:
    """Hold SIGCHLD back, so that `sigtimedwait` wakes at a child's death and at nothing else."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
