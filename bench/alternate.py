"""Runs two programs in turn, several times, and compares the medians of what they took."""

import json
import statistics
import subprocess
import sys


def run(command, folder=None):
    """What `command` prints, as JSON; ends this script where the command fails."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed")
    return json.loads(done.stdout)


def alternate(ours, theirs, repetitions, folder=None):
    """Both commands in turn: A B A B ... Returns the median run of each, by `seconds`."""
    runs = [(run(ours, folder), run(theirs, folder)) for _ in range(repetitions)]
    for side in zip(*runs):
        counted = [{key: value for key, value in one.items() if key != "seconds"} for one in side]
        assert all(one == counted[0] for one in counted), "a side counts differently each time"
    return tuple(median(side) for side in zip(*runs))


def median(side):
    """The run of median length, with the spread of all runs."""
    seconds = [one["seconds"] for one in side]
    spread = (max(seconds) - min(seconds)) / statistics.median(seconds)
    return {**side[0], "seconds": statistics.median(seconds), "spread": spread}
