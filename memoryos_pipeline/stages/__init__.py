"""One verb a file: what each queue does to a memory."""
