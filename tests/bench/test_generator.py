"""The load generator, against a server of a few lines."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict

import pytest
from bench import jobs
from bench.generator import Connections, WrongAnswer, closed_loop, paced, percentile, run
from bench.jobs import NEW_ID, Job
from tests.bench.conftest import GOOD, REQUEST
from tests.patience import PATIENT


def job(port, **given):
    return Job(port=port, requests=[REQUEST], body=b"hello", **given)


@pytest.fixture
def connected():
    opened = []

    def connect(server, **given):
        opened.append(Connections(job(server.port, **given)))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()


def test_as_many_calls_as_wanted_are_made_and_timed(tiny, connected):
    server = tiny(lambda _: [GOOD])
    lasted = closed_loop(connected(server, connections=4), lambda asked: asked < 100)
    assert len(lasted) == server.seen == 100
    assert all(one > 0 for one in lasted)


def test_an_answer_may_come_in_parts(tiny, connected):
    server = tiny(lambda _: [GOOD[:9], GOOD[9:-3], GOOD[-3:]])
    assert len(closed_loop(connected(server, connections=2), lambda asked: asked < 20)) == 20


@pytest.mark.parametrize(
    "wrong",
    [
        GOOD.replace(b"hello", b"hullo"),
        GOOD.replace(b"200 OK", b"503 No"),
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhe",
        GOOD + b"!",
    ],
)
def test_a_wrong_answer_ends_the_run(tiny, connected, wrong):
    server = tiny(lambda number: [wrong if number == 7 else GOOD])
    with pytest.raises(WrongAnswer, match="Not the expected answer"):
        closed_loop(connected(server, connections=1), lambda asked: asked < 100)
    assert server.seen == 8


def test_a_server_that_leaves_ends_the_run(tiny, connected):
    connections = connected(tiny(lambda _: [GOOD]), connections=1)
    connections._sockets[0].shutdown(socket.SHUT_WR)  # the tiny server closes its end, too
    with pytest.raises(WrongAnswer, match="closed the connection"):
        connections.answered(wait=True)


def test_paced_calls_keep_to_their_times(tiny, connected):
    server = tiny(lambda _: [GOOD])
    began = time.perf_counter()
    lasted = paced(connected(server, connections=4), 51, rate=500)
    assert time.perf_counter() - began >= 50 / 500
    assert len(lasted) == server.seen == 51


def test_waiting_for_a_slow_server_counts_from_the_planned_time(tiny, connected):
    slow = threading.Event()

    def answer(number):
        slow.wait(0.01)
        return [GOOD]

    lasted = paced(connected(tiny(answer), connections=1), 10, rate=10_000)
    assert lasted == sorted(lasted)
    assert lasted[-1] >= 90e6


def test_requests_are_asked_in_turn(tiny):
    server = tiny(lambda _: [GOOD])
    turns = [REQUEST.replace(b"/ ", b"/%d " % number) for number in range(5)]
    connections = Connections(Job(port=server.port, requests=turns, body=b"hello", connections=1))
    lasted = closed_loop(connections, lambda asked: asked < 10)
    connections.close()
    assert len(lasted) == 10
    begins = turns.index(server.requests[0])
    assert server.requests == [turns[(begins + number) % 5] for number in range(10)]


def test_as_a_process_it_tells_figures_as_json(tiny):
    server = tiny(lambda _: [GOOD])
    wanted = job(server.port, warm_up=0.05, seconds=0.1, connections=2)
    assert asdict(jobs.unpacked(jobs.packed(wanted))) == asdict(wanted)
    done = _generate(wanted)
    told = json.loads(done.stdout)
    assert done.returncode == 0
    assert 0 < told["calls"] < server.seen
    assert 0 < told["p50"] <= told["p99"]


def test_as_a_process_it_fails_on_a_wrong_answer(tiny):
    server = tiny(lambda number: [GOOD if number < 3 else b"HTTP/1.1 404 No\r\n\r\n"])
    done = _generate(job(server.port, warm_up=0.05, seconds=0.1, connections=2))
    assert done.returncode == 1
    assert "404 No" in done.stderr


def test_a_run_says_what_it_measured(tiny):
    server = tiny(lambda _: [GOOD])
    measured = run(job(server.port, warm_up=0.05, seconds=0.1, connections=2))
    assert measured.calls < server.seen
    assert measured.cpu == 0  # nobody's was asked for
    assert measured.own_cpu > 0


def test_percentiles():
    lasted = [number * 1000 for number in range(1, 101)]
    assert percentile(lasted, 0.5) == 51
    assert percentile(lasted, 0.99) == 100
    assert percentile([7000], 0.99) == 7


def _generate(wanted):
    command = [sys.executable, "-m", "bench.generator"]
    return subprocess.run(
        command,
        input=jobs.packed(wanted),
        capture_output=True,
        text=True,
        timeout=PATIENT,
        check=False,
    )


def test_each_call_may_have_an_id_of_its_own_that_the_answer_tells(tiny):
    made = REQUEST.replace(b"/", b"/" + NEW_ID, 1)
    body = NEW_ID + b" is made"
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body)

    def id_of(request):
        return request.split(b" ")[1][1:]

    server = tiny(lambda number: [head + id_of(server.requests[number]) + b" is made"])
    found = run(Job(port=server.port, requests=[made], body=body, connections=4, seconds=0.05))
    ids = [id_of(one) for one in server.requests]
    assert found.calls > 0
    assert NEW_ID not in ids
    assert len(set(ids)) == len(ids)


def test_an_answer_that_tells_another_id_ends_the_run(tiny):
    made = REQUEST.replace(b"/", b"/" + NEW_ID, 1)
    server = tiny(lambda _: [b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n" + b"0" * 20])
    with pytest.raises(WrongAnswer, match="Not the expected answer"):
        run(Job(port=server.port, requests=[made], body=NEW_ID, connections=1))


def test_the_cpu_of_a_database_server_is_counted_by_itself(tiny):
    server = tiny(lambda _: [GOOD])
    found = run(job(server.port, connections=1, seconds=0.05, beside=[os.getpid()]))
    assert found.cpu == 0
    assert found.beside > 0
