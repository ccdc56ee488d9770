"""Tuned numbers of parallel work: patience with workers, and shares of the machine."""

from __future__ import annotations

# Deaths of workers in a row, none of which left a result behind, before giving up.
MAX_DEATHS = 3
# Functions that a worker keeps unpacked.
MAX_FUNCTIONS_KEPT = 4

# Seconds for a scheduler to answer, and for the first worker to be there, or to be there again.
SCHEDULER_WITHIN = 10
WORKERS_WITHIN = 60
# Seconds between two looks at whether there are workers, and at whether the parent is there.
WORKER_LOOK = 2.0
PARENT_LOOK = 0.5

# Of the memory: estimates are rough, and the rest of the machine needs some.
MEMORY_SHARE = 0.8
# On a busy machine, factoring small matrices takes far longer with several threads than with one.
MAX_WIDTH_FOR_ONE_THREAD = 1_024
