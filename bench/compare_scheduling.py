"""WarmQ and SimSo on as many scheduling events: periodic tasks that compute.

usage: compare_scheduling.py OURS

OURS is the example `compare_scheduling`. Run it with the Python that has SimSo. An event is a task
that wakes, gets a CPU, or leaves one; both sides must count as many, within a percent.
"""

import os
import sys

from alternate import alternate

REPETITIONS = 3
# CPUs, tasks, period in ms, work in ms, simulated seconds.
SCENES = [(4, 8, 10, 4, 20), (8, 24, 10, 3, 7)]


def main():
    ours = os.path.abspath(sys.argv[1])
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scheduling", "theirs.py")
    print(f"medians of {REPETITIONS} runs a side, in turn; thousand scheduling events a second")
    print(f"{'':<40} {'WarmQ':>9} {'SimSo':>7} {'ratio':>7}  events")
    for scene in SCENES:
        words = [str(number) for number in scene]
        pair = alternate([ours, *words], [sys.executable, script, *words], REPETITIONS)
        here, there = pair
        rates = [side["events"] / side["seconds"] / 1e3 for side in pair]
        cpus, tasks, period, work, seconds = scene
        what = f"{cpus} CPUs, {tasks} tasks, {work} of {period} ms, {seconds} s"
        events = f"{here['events']} and {there['events']}"
        print(f"{what:<40} {rates[0]:>9.0f} {rates[1]:>7.1f} {rates[0] / rates[1]:>7.0f}  {events}")
        if abs(here["events"] - there["events"]) > there["events"] / 100:
            sys.exit(f"the two sides do not do the same: {here['kinds']}, {there['kinds']}")


main()
