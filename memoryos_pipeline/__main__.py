"""`python -m memoryos_pipeline` is the `memoryos` command."""

from memoryos_pipeline.cli.main import main

main()
