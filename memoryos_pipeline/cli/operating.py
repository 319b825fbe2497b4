"""What commands that change the ledger share: connections, and tenants by name."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from rich.console import Console

from memoryos_pipeline.cli.output import database_trouble, end_with
from memoryos_pipeline.reach import NotConnectedError, find_connection
from memoryos_pipeline.settings import load_settings

if TYPE_CHECKING:
    from memoryos_pipeline.store.database import Database


@dataclass(frozen=True)
class Operator:
    """The two roles an operator acts through, and the names of the tenants."""

    owner: "Database"
    ledger: "Database"
    names: dict[UUID, str]

    def tenant(self, named: str | None) -> UUID | None:
        """Return the tenant of a name or id, None for all; an unknown one ends the command."""
        if named is None:
            return None
        found = [tenant_id for tenant_id, name in self.names.items() if named in (name, str(tenant_id))]
        if not found:
            end_with(Console(stderr=True), f"there is no tenant {named!r}; there are: {', '.join(self.names.values())}")
        return found[0]


@contextmanager
def both_roles(*, application_name: str = "memoryos") -> "Iterator[tuple[Database, Database]]":
    """Open the owner's and the ledger's role for the length of a command; what goes wrong ends it with a sentence."""
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - other commands start without

    from memoryos_pipeline.domain.errors import NotFoundError  # noqa: PLC0415
    from memoryos_pipeline.store.database import Database  # noqa: PLC0415

    try:
        reach = find_connection(load_settings(), needs_key=False)
        owner, ledger = (
            Database(url, pool_size=2, application_name=application_name) for url in (reach.owner_url, reach.ledger_url)
        )
        try:
            yield owner, ledger
        finally:
            owner.dispose()
            ledger.dispose()
    except (NotConnectedError, NotFoundError) as error:
        end_with(Console(stderr=True), str(error))
    except SQLAlchemyError as error:
        end_with(Console(stderr=True), database_trouble(error))


@contextmanager
def operating() -> Iterator[Operator]:
    """Open both roles, and know the tenants by name."""
    from memoryos_pipeline.store.keys import list_tenants  # noqa: PLC0415 - other commands start without

    with both_roles() as (owner, ledger):
        yield Operator(owner, ledger, {each.tenant_id: each.name for each in list_tenants(owner, ledger)})
