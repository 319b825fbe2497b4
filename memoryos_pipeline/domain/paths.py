"""Names in paths of the API: whatever a user, a conversation or a statement is called, it is one segment. Pure."""

from urllib.parse import quote


def segment(name: str) -> str:
    """Return a name as one segment of a path: `a/b` would be two, `..` the folder above, and `?` the end of it."""
    return quote(name, safe="").replace(".", "%2E")
