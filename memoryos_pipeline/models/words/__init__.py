"""Word lists, one file a list, words apart by white space."""
