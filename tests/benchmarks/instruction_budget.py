#!/usr/bin/python3
"""Counts the instructions of fixed pieces of work and compares them with instruction_budget.json.

usage: instruction_budget.py PROGRAM [--update]

Instructions, unlike seconds, do not depend on the machine or its load: built for x86-64-v3 by one compiler, run on one
core under valgrind. More than 5 % above the budget fails. --update writes the counts as the new budget; commit it with the
change that causes it.
"""
import json
import os
import re
import subprocess
import sys

BUDGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "instruction_budget.json")
SLACK = 1.05


def count(program, work):
    """Instructions within Measured, of all threads."""
    core = str(min(os.sched_getaffinity(0)))
    done = subprocess.run(["taskset", "-c", core, "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                           "--toggle-collect=Measured*", program, work],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    collected = re.search(r"Collected : (\d+)", done.stdout)
    if done.returncode != 0 or collected is None:
        sys.exit(f"{work}: valgrind ended with {done.returncode}:\n{done.stdout}")
    return int(collected.group(1))


def main():
    program = sys.argv[1]
    works = subprocess.run([program], stdout=subprocess.PIPE, text=True).stdout.split()
    counted = {work: count(program, work) for work in works}
    if "--update" in sys.argv[2:]:
        with open(BUDGET, "w") as file:
            json.dump(counted, file, indent=2)
            file.write("\n")
    with open(BUDGET) as file:
        budget = json.load(file)
    if sorted(budget) != sorted(counted):
        sys.exit(f"{BUDGET} is of {sorted(budget)}, but the program does {sorted(counted)}")
    above = False
    for work, instructions in counted.items():
        ratio = instructions / budget[work]
        above |= ratio > SLACK
        print(f"{work:16} {instructions:>12} instructions, {ratio:.3f} of the budget{' : ABOVE' if ratio > SLACK else ''}")
    sys.exit(1 if above else 0)


if __name__ == "__main__":
    main()
