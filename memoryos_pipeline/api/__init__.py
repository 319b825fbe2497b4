"""The HTTP face: validate, call a stage or recall, answer."""
