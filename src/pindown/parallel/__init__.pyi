# Loops whose turns do not need each other; lazy.py reads this list.

# loops, and seeds for their tasks
from pindown.parallel.tasks import each as each
from pindown.parallel.tasks import shared_out as shared_out
from pindown.parallel.tasks import task_seeds as task_seeds

# where they run
from pindown.parallel.worker_pools import n_workers as n_workers
from pindown.parallel.worker_pools import workers as workers

# what a task may use
from pindown.parallel.limits import few_threads as few_threads
from pindown.parallel.limits import in_threads as in_threads
from pindown.parallel.limits import one_thread as one_thread
