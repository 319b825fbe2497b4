"""What a client can do with one statement: see where it is from, forget it, bring it back, keep it."""

from typing import Any

from memoryos_pipeline.client.transport import Transport
from memoryos_pipeline.domain.paths import segment

Row = dict[str, Any]


class StatementClient(Transport):
    """Requests about one statement, by the `knowledge_id` under which `knowledge` and `search` tell it."""

    def get(self, memory_id: str) -> Row:
        """Return a statement with `sources` (its turns), `versions`, `notes`, `links` and `verdicts`.

        Also one that is history or forgotten: its `status` says so. Raises NotFoundError.
        """
        answer: Row = self.request("GET", _path(memory_id))
        return answer

    def history(self, memory_id: str) -> list[Row]:
        """Return every version of a statement, the oldest first, each with when it held and why it ended."""
        versions: list[Row] = self.get(memory_id)["versions"]
        return versions

    def forget(self, memory_id: str) -> Row:
        """Forget a live statement, with what it replaced; `forgotten` is false when it was forgotten already.

        It is in no search from then on; `restore` brings it back until its grace is over, then it is deleted.
        Raises NotFoundError.
        """
        answer: Row = self.request("DELETE", _path(memory_id))
        return answer

    def delete(self, memory_id: str) -> Row:
        """Forget a statement (mem0's name for `forget`)."""
        return self.forget(memory_id)

    def update(self, memory_id: str, content: str) -> Row:
        """Let a live statement say something else from now on; what it said becomes history, its sources stay.

        Returns `knowledge_id` (of the version that holds now), `verdict_id` (undoes it) and `changed`. Raises
        NotFoundError, and ConflictError when another live statement says that.
        """
        answer: Row = self.request("PATCH", _path(memory_id), json={"content": content})
        return answer

    def restore(self, memory_id: str) -> Row:
        """Bring a forgotten statement back within its grace period; `restored` tells whether it was forgotten."""
        answer: Row = self.request("POST", f"{_path(memory_id)}/restore", json={})
        return answer

    def pin(self, memory_id: str) -> Row:
        """Keep a live statement whatever its weight; `changed` is false when it was pinned already."""
        answer: Row = self.request("PUT", f"{_path(memory_id)}/pin", json={})
        return answer

    def unpin(self, memory_id: str) -> Row:
        """Let a statement fade from now on; `changed` is false when it was not pinned."""
        answer: Row = self.request("DELETE", f"{_path(memory_id)}/pin")
        return answer


def _path(memory_id: str) -> str:
    return f"/v1/knowledge/{segment(memory_id)}"
