"""Commands as targets: the protocol, and processes that die, hang, chatter or lie."""

from __future__ import annotations

import copy
import gc
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

from unweave import CommandTarget, InvalidInput, Queries, TargetError
from unweave.targets import as_queries

ROWS = np.random.default_rng(1000).standard_normal((50, 3))
ECHO = "import sys\nfor line in sys.stdin: print(line, end='')\n"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def gone(pid: int, seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.01)
    return not alive(pid)


PID = "import os, sys\nfor line in sys.stdin: print(os.getpid())\n"


def test_numbers_go_and_come_back_bit_for_bit():
    odd = np.array([[0.1, 1e-310, -0.0], [np.pi, 1.7976931348623157e308, 5e-324], [1.0, 2.0**60, 1 / 3]])
    with CommandTarget(python(ECHO), input_dim=3) as target:
        answers = target(odd)
    assert answers.tobytes() == odd.tobytes()


@pytest.mark.parametrize(
    ("format", "shown"),
    [("csv", "1.0,2.5,-3.0\n"), ("json", "[1.0, 2.5, -3.0]\n"), ("batch", "[[1.0, 2.5, -3.0]]\n")],
)
def test_the_protocol_is_what_is_documented(tmp_path, format, shown):
    seen = tmp_path / "seen"
    keep = (
        f"import sys\nfor line in sys.stdin:\n open({str(seen)!r}, 'a').write(line)\n print(line, end='')\n"
    )
    with CommandTarget(python(keep), input_dim=3, format=format) as target:
        np.testing.assert_array_equal(target(np.array([[1.0, 2.5, -3.0]])), [[1.0, 2.5, -3.0]])
    assert seen.read_text() == shown


@pytest.mark.parametrize(
    ("format", "line", "answer"),
    [
        ("csv", "1.5", [1.5]),
        ("csv", " 1.5 ,2\\t3e0 ", [1.5, 2.0, 3.0]),
        ("json", "1.5", [1.5]),
        ("json", "[1.5, 2]", [1.5, 2.0]),
        ("batch", "[1.5]", [1.5]),
        ("batch", "[[1.5, 2]]", [1.5, 2.0]),
    ],
)
def test_forms_of_an_answer(format, line, answer):
    code = f"import sys\nfor _ in sys.stdin: print('{line}')\n"
    with CommandTarget(python(code), input_dim=3, format=format) as target:
        np.testing.assert_array_equal(target(ROWS[:1]), [answer])


def test_one_process_for_all_questions():
    with CommandTarget(python(PID), input_dim=3) as target:
        queries = as_queries(target)
        first, second = queries(ROWS[:10]), queries(ROWS[10:20])
        assert len({*first.ravel(), *second.ravel()}) == 1
        pid = int(first[0, 0])
        assert alive(pid)
    assert gone(pid)
    assert target.restarts == 0


def test_a_question_after_closing_starts_another_process():
    with CommandTarget(python(PID), input_dim=3) as target:
        first = target(ROWS[:1])
        target.close()
        target.close()
        assert target(ROWS[:1]) != first


def test_ends_when_nothing_refers_to_it_any_more():
    target = CommandTarget(python(PID), input_dim=3)
    pid = int(target(ROWS[:1])[0, 0])
    del target
    gc.collect()
    assert gone(pid)


def test_many_rows_do_not_stop_both_sides():
    """A megabyte each way: more than any pipe holds, before the first answer is read."""
    rows = np.random.default_rng(1001).standard_normal((20_000, 3))
    with CommandTarget(python(ECHO), input_dim=3) as target:
        np.testing.assert_array_equal(target(rows), rows)


def test_output_that_python_would_keep_back_comes_at_once():
    code = "import sys\nfor line in sys.stdin: sys.stdout.write('1\\n')\n"  # no flush
    with CommandTarget(python(code), input_dim=3, timeout=20) as target:
        assert target(ROWS[:1]) == 1.0


def dying(tmp_path, every: int) -> CommandTarget:
    """Writes down every line it is asked, answers its number, and dies after ``every`` lines."""
    log = tmp_path / "asked"
    code = f"""
import sys
for count, line in enumerate(sys.stdin, 1):
    open({str(log)!r}, "a").write(line)
    print(line, end="", flush=True)
    if count == {every}:
        sys.exit("out of memory, says the model")
"""
    return CommandTarget(python(code), input_dim=3)


def test_a_process_that_dies_is_started_again_for_what_is_missing(tmp_path):
    with dying(tmp_path, every=6) as target:
        np.testing.assert_array_equal(target(ROWS[:10]), ROWS[:10])
        assert target.restarts == 1
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 10  # none twice


def test_a_process_that_dies_again_is_reported_with_its_last_words(tmp_path):
    with dying(tmp_path, every=4) as target:
        ledger = as_queries(target)
        with pytest.raises(TargetError) as caught:
            ledger(ROWS[:10])
    message = str(caught.value)
    assert "Got exit code 1 after 8 of 10 answers instead, although it was started once more" in message
    assert "Its last words on stderr: out of memory, says the model" in message
    assert "The answers to 8 of 10 rows arrived and are kept." in message
    assert ledger.sent == 8
    ledger(ROWS[:8])
    assert (ledger.sent, ledger.cache_hits) == (8, 8)


def test_a_process_that_never_answers_anything():
    told = r"exit code 1 after 0 of 2 answers.*ImportError: no such model"
    code = "raise ImportError('no such model')"
    with CommandTarget(python(code), input_dim=3) as target, pytest.raises(TargetError, match=told):
        as_queries(target)(ROWS[:2])


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_process_that_is_killed_is_named_so():
    code = "import os, signal, sys\nfor _ in sys.stdin: os.kill(os.getpid(), signal.SIGKILL)\n"
    with (
        CommandTarget(python(code), input_dim=3) as target,
        pytest.raises(TargetError, match="Got signal SIGKILL after 0 of 1"),
    ):
        as_queries(target)(ROWS[:1])


def test_silence_ends_in_a_timeout_with_the_answers_so_far():
    code = """
import os, sys, time
print(os.getpid(), file=sys.stderr)
for count, line in enumerate(sys.stdin):
    if count == 2:
        time.sleep(1000)
    print(1, flush=True)
"""
    with CommandTarget(python(code), input_dim=3, timeout=1.0) as target:
        ledger = as_queries(target)
        began = time.monotonic()
        with pytest.raises(TargetError, match=r"within 1 s. Got 2 of 5 answers.*flush the output") as caught:
            ledger(ROWS[:5])
        assert time.monotonic() - began < 10
        assert ledger.sent == 2
    pid = int(str(caught.value).partition("stderr: ")[2].split()[0])
    assert gone(pid)


def test_a_process_that_ignores_everything_is_killed():
    code = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdin.readline()
print(os.getpid(), flush=True)
time.sleep(1000)
"""
    target = CommandTarget(python(code), input_dim=3)
    pid = int(target(ROWS[:1])[0, 0])
    target._process.stop(grace=0.0)
    assert gone(pid, seconds=0.5)
    target.close()


BAD = {
    "words": ("print('Loading the model')", "a line of numbers. Got 'Loading the model' instead"),
    "nothing": ("print()", "at least one number per row"),
    "too many lines": ("print(1); print(2)", "one line per row and nothing else"),
    "ragged": (
        "print('1' if line[0] == '1' else '1,2')",
        "must answer 1 numbers as before. Got '1,2' instead",
    ),
}


def ask_often(ledger: Queries) -> None:
    for _ in range(100):  # a line too many is seen when the next question is asked, at the latest
        ledger(np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]), fresh=True)


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_answer_is_shown(name):
    code, message = BAD[name]
    script = f"import sys\nfor line in sys.stdin:\n {code}\n"
    with CommandTarget(python(script), input_dim=3) as target:
        ledger = as_queries(target)
        with pytest.raises(TargetError, match="Write anything that is not an answer to the") as caught:
            ask_often(ledger)
    assert message in str(caught.value)


@pytest.mark.parametrize("line", ["null", "true", '"1"', "{}", "[[1]]", "[1", "[1, null]"])
def test_json_that_is_no_answer(line):
    code = f"import sys\nfor _ in sys.stdin: print({line!r})\n"
    with (
        CommandTarget(python(code), input_dim=3, format="json") as target,
        pytest.raises(TargetError, match="numbers in JSON"),
    ):
        as_queries(target)(ROWS[:1])


def test_a_batch_must_be_answered_whole():
    code = "import sys\nfor _ in sys.stdin: print('[1, 2]')\n"
    with (
        CommandTarget(python(code), input_dim=3, format="batch") as target,
        pytest.raises(TargetError, match="a list of 3 answers"),
    ):
        as_queries(target)(ROWS[:3])


def test_an_interrupt_keeps_what_has_arrived_and_the_next_question_is_answered_right():
    code = """
import sys, time
for count, line in enumerate(sys.stdin):
    if count == 5:
        time.sleep(1000)
    print(line, end="", flush=True)
"""
    with CommandTarget(python(code), input_dim=3) as target:
        ledger = Queries(target, 3)

        def interrupt() -> None:
            time.sleep(0.5)
            signal.raise_signal(signal.SIGINT)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background shells ignore it
        threading.Thread(target=interrupt, daemon=True).start()
        try:
            with pytest.raises(KeyboardInterrupt):
                ledger(ROWS[:10])
        finally:
            signal.signal(signal.SIGINT, before)
        assert ledger.sent <= 5  # 5 unless the process was slow to start
        np.testing.assert_array_equal(ledger(ROWS[:5]), ROWS[:5])
        assert ledger.sent == 5


def test_copies_have_processes_of_their_own():
    with (
        CommandTarget(python(PID), input_dim=3, format="json", timeout=7) as target,
        copy.copy(target) as other,
    ):
        assert repr(other) == repr(target)
        assert other(ROWS[:1]) != target(ROWS[:1])
        assert "running" in repr(other)


def test_environment_and_folder_are_ours(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCALE", "4")
    (tmp_path / "model.py").write_text(
        "import os, sys\nfor line in sys.stdin: print(float(line) * float(os.environ['SCALE']))\n",
        encoding="utf-8",
    )
    with CommandTarget(f"{sys.executable} model.py", input_dim=1) as target:
        assert target(np.array([[2.0]])) == 8.0


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ([], {}, "It is empty"),
        ("", {}, "It is empty"),
        ("python 'open", {}, "command must be a program and its arguments"),
        (None, {}, "command must be a program and its arguments"),
        (["no-such-program-here"], {}, "Got 'no-such-program-here' instead"),
        (python(ECHO), {"input_dim": 0}, "input_dim must be a whole number >= 1"),
        (python(ECHO), {"input_dim": 2.0}, "input_dim must be a whole number >= 1"),
        (python(ECHO), {"format": "xml"}, "format must be one of csv, json, batch"),
        (python(ECHO), {"timeout": 0}, "timeout must be a number of seconds > 0"),
    ],
)
def test_what_cannot_be_a_command(command, options, message):
    with pytest.raises(InvalidInput, match=message):
        CommandTarget(command, **{"input_dim": 3, **options})


def test_a_width_that_is_not_ours():
    with CommandTarget(python(ECHO), input_dim=3) as target:
        with pytest.raises(InvalidInput, match=r"shape \(n, 3\)"):
            target(np.zeros((1, 2)))
        assert target(np.empty((0, 3))).shape == (0, 0)
