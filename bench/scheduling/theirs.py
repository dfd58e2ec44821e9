"""The other side of the comparison: SimSo schedules periodic tasks by global EDF.

usage: theirs.py CPUS TASKS PERIOD_MS WORK_MS SECONDS
Prints the scheduling events of the run by kind, and how long it took. Only the run is timed.
"""

import json
import sys
import time
from collections import Counter

from simso.configuration import Configuration
from simso.core import Model
from simso.core.JobEvent import JobEvent

KINDS = {
    JobEvent.ACTIVATE: "woken",
    JobEvent.EXECUTE: "switched_in",
    JobEvent.PREEMPTED: "switched_out",
    JobEvent.TERMINATED: "switched_out",
}


def configuration(cpus, tasks, period_ms, work_ms, seconds):
    configured = Configuration()
    configured.duration = seconds * 1000 * configured.cycles_per_ms
    for number in range(tasks):
        configured.add_task(
            name=f"task{number}",
            identifier=number,
            period=period_ms,
            activation_date=0,
            wcet=work_ms,
            deadline=period_ms,
        )
    for number in range(cpus):
        configured.add_processor(name=f"cpu{number}", identifier=number)
    # simso.schedulers.EDF prints a line for each decision; EDF2 decides the same without.
    configured.scheduler_info.clas = "simso.schedulers.EDF2"
    configured.check_all()
    return configured


def main():
    model = Model(configuration(*map(int, sys.argv[1:])))
    start = time.perf_counter()
    model.run_model()
    took = time.perf_counter() - start
    happened = (entry[1].event for task in model.task_list for entry in task.monitor)
    counts = Counter(KINDS[event] for event in happened if event in KINDS)
    print(json.dumps({"events": sum(counts.values()), "kinds": dict(counts), "seconds": took}))


main()
