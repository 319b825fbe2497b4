"""How and when work is delivered: Celery workers, the relay and the schedule."""
