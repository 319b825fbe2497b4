"""Flower as we run it: behind a password, loopback, read only, little memory, nothing on disk.

The user and password come from FLOWER_BASIC_AUTH (`name:password`).
/metrics and /healthcheck answer without a password: block them where Flower is put behind a proxy.
"""

import os

from memoryos_pipeline.embedded.flower_state import remember_no_text
from workers.celery_app import app

if not all(os.environ.get("FLOWER_BASIC_AUTH", "").partition(":")):
    raise SystemExit("Flower needs FLOWER_BASIC_AUTH=name:password; without it everybody could look in")

remember_no_text()
app.conf.broker_transport = None  # Flower tells the kind of broker by its URL, and takes nothing from our queues

address = "127.0.0.1"
read_only = True
max_tasks = 5_000
max_workers = 200
persistent = False
purge_offline_workers = 60
natural_time = False
tasks_columns = "name,uuid,state,args,received,runtime,worker"
