"""Prompts as versioned files: `<task>@<version>.md`. A changed prompt is a new file."""
