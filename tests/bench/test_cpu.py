"""CPU time of a process and what came from it."""

import os
import subprocess
import sys
import time

from bench import cpu

BURN = """
import subprocess, sys, time
deep = int(sys.argv[1])
child = deep and subprocess.Popen([sys.executable, "-c", sys.argv[2], str(deep - 1), sys.argv[2]],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
while time.process_time() < 0.1:
    pass
child and child.stdout.readline()
print("burnt", flush=True)
sys.stdin.readline()
"""


def test_children_count_with_their_parent():
    command = [sys.executable, "-c", BURN, "1", BURN]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as burning:
        assert burning.stdout
        assert burning.stdout.readline() == b"burnt\n"
        spent = cpu.spent([burning.pid])
        burning.kill()
    assert len(spent) == 2
    assert min(spent.values()) >= 0.1e9


def test_the_clock_of_a_process_is_finer_than_a_tick():
    before = cpu.of_process(os.getpid())
    own = time.process_time_ns()
    assert 0 <= own - before < 5_000_000
    assert before % 10_000_000 != 0


def test_a_process_that_came_in_between_counts_from_its_start():
    assert cpu.between({1: 10, 2: 20}, {1: 15, 3: 7}) == 12


def test_a_process_that_is_gone_costs_nothing():
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    assert cpu.spent([gone.pid]) == {}


def test_settling_waits_until_the_work_is_done():
    with subprocess.Popen(
        [sys.executable, "-c", BURN, "0", ""], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as burning:
        cpu.settle([burning.pid], 0.1)
        spent = cpu.spent([burning.pid])
        burning.kill()
    assert spent[burning.pid] >= 0.1e9
