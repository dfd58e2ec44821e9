"""The caches of WarmQ and the C core of pycachesim on the same references.

usage: compare_caches.py OURS THEIRS FOLDER

OURS is the example `compare_caches`, THEIRS the program made of caches/theirs.c; streams go into
FOLDER. Reads alone must miss equally often on both sides, to the last one: else this fails. With
writes the two differ: in pycachesim a store that hits does not count as a use for LRU, and a
modified line that falls out into a level that lacks it counts as a miss there.
"""

import os
import sys

from alternate import alternate

REFERENCES = 4_000_000
REPETITIONS = 5
LINE = 64
LEVELS = [("L1", 32 << 10, 8), ("L2", 1 << 20, 8)]
# What, memory in bytes, one write in so many (0: none).
STREAMS = [
    ("hits in level 1, reads", 24 << 10, 0),
    ("hits in two levels, reads", 64 << 10, 0),
    ("hits in level 2, reads", 512 << 10, 0),
    ("half miss level 2, reads", 2 << 20, 0),
    ("hits in two levels, 1/4 writes", 64 << 10, 4),
    ("half miss level 2, 1/4 writes", 2 << 20, 4),
]


def definition():
    """The caches, as pycachesim reads them."""
    lines = [str(len(LEVELS))]
    for number, (name, size, ways) in enumerate(LEVELS):
        words = [f"name={name}", f"sets={size // ways // LINE}", f"ways={ways}", f"cl_size={LINE}"]
        # 1 is LRU.
        words += ["replacement_policy_id=1", "write_back=1", "write_allocate=1"]
        if number + 1 < len(LEVELS):
            below = LEVELS[number + 1][0]
            words += [f"load_from={below}", f"store_to={below}"]
        lines.append(",".join(words))
    return "\n".join(lines) + "\n"


def compare(ours, theirs, folder, memory, one_write_in):
    stream = os.path.join(folder, "references")
    make = [ours, "make", str(REFERENCES), str(memory), str(one_write_in), stream]
    if os.spawnv(os.P_WAIT, ours, make) != 0:
        sys.exit("no stream could be made")
    geometry = [str(number) for _, size, ways in LEVELS for number in (size, ways)]
    play = [ours, "play", *geometry, str(LINE), stream]
    pair = alternate(play, [theirs, "caches", stream], REPETITIONS, folder)
    os.remove(stream)
    return pair


def main():
    ours, theirs, folder = map(os.path.abspath, sys.argv[1:])
    with open(os.path.join(folder, "caches"), "w") as file:
        file.write(definition())
    levels = ", ".join(f"{name} {size >> 10} KB {ways} ways" for name, size, ways in LEVELS)
    print(f"{REFERENCES} references, {levels}, {LINE}-byte lines, LRU, write-back and -allocate;")
    print(f"medians of {REPETITIONS} runs a side, in turn; million references a second")
    print(f"{'':<32} {'WarmQ':>8} {'pycachesim':>11} {'ratio':>6}  misses by level")
    differ = False
    for what, memory, one_write_in in STREAMS:
        here, there = compare(ours, theirs, folder, memory, one_write_in)
        rates = [REFERENCES / side["seconds"] / 1e6 for side in (here, there)]
        ratio = there["seconds"] / here["seconds"]
        same = here["misses"] == there["misses"]
        misses = f"{here['misses']}, equal" if same else f"{here['misses']} and {there['misses']}"
        print(f"{what:<32} {rates[0]:>8.1f} {rates[1]:>11.1f} {ratio:>6.2f}  {misses}", flush=True)
        differ |= not same and one_write_in == 0
    if differ:
        sys.exit("the two sides disagree on reads alone: one of them is wrong")


main()
