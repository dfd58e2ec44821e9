"""What `make bench` printed, kept by date: appends it to measured/bench.jsonl, and finds it again.

usage: history.py append FILE     appends what FILE has, the output of scripts/bench.sh
       history.py show [WORDS]    the rows that begin with WORDS, by date; without, names of all rows

A line of the history is one invocation: its date, the commit, the machine, and its rows. A row is a
line of the output that begins with a name and goes on, after two blanks, with a figure.
"""

import datetime
import json
import os
import re
import subprocess
import sys

HISTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "measured", "bench.jsonl")
ROW = re.compile(r"^(?P<name>\S.*?)(?:  +|\s*[:│]\s*)(?P<figures>[-+<]?\d.*)$")


def rows(text):
    """The rows of an output, each with the section that it stands in."""
    section = ""
    for line in text.splitlines():
        if line.startswith("== "):
            section = line[3:].split(":")[0]
        elif found := ROW.match(line):
            figures = " ".join(found["figures"].split())
            yield {"section": section, "name": found["name"], "figures": figures}


def said_by(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def processor():
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else "unknown"


def append(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        found = list(rows(file.read()))
    if not found:
        sys.exit(f"{path}: no row in it: give the output of scripts/bench.sh")
    invocation = {
        "date": datetime.date.today().isoformat(),
        "commit": said_by("git", "describe", "--always", "--dirty"),
        "machine": processor(),
        "load": round(os.getloadavg()[2], 1),
        "rows": found,
    }
    with open(HISTORY, "a", encoding="utf-8") as file:
        file.write(json.dumps(invocation, ensure_ascii=False) + "\n")
    print(f"bench: {len(found)} rows are in {os.path.relpath(HISTORY)}")


def invocations():
    try:
        with open(HISTORY, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        sys.exit("no history yet: make bench")


def show(start):
    all_rows = [(one, row) for one in invocations() for row in one["rows"]]
    if not start:
        print("\n".join(dict.fromkeys(f"{row['name']}  ({row['section']})" for _, row in all_rows)))
        return
    wanted = [(one, row) for one, row in all_rows if row["name"].startswith(start)]
    if not wanted:
        sys.exit(f"no row begins with {start!r}; without words all names are shown")
    for one, row in wanted:
        where = f"{one['date']}  {one['commit']}  load {one['load']}  {one['machine']}"
        print(f"{where}\n    {row['name']}  {row['figures']}")


def main():
    match sys.argv[1:]:
        case ["append", path]:
            append(path)
        case ["show", *words]:
            show(" ".join(words))
        case _:
            sys.exit(__doc__)


main()
