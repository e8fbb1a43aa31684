"""Properties of sidecar.alarms.book over any course of events."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sidecar.alarms.book import MAX_STEP_SECONDS, Book
from sidecar.verdicts import Outcome
from tests.alarms.samples import (
    FAIL,
    FIRING,
    NOON,
    PASS,
    PENDING,
    RESOLVED,
    verdict,
)

CLEAR = 4.0
seconds = st.one_of(
    st.sampled_from([0.9, 1.0, 1.1, MAX_STEP_SECONDS]), st.floats(0.0, 3 * MAX_STEP_SECONDS)
)


class OneAlarm(RuleBasedStateMachine):
    """One alarm through verdicts, silence, restarts and clock steps, beside what really happened.

    ``failed`` is the time for which FAIL was seen at both ends while one process ran, since the
    alarm last began; ``passed`` the same for PASS since FAIL was last seen.
    """

    @initialize(hold=st.sampled_from([0.0, 3.0, 10.0]))
    def begin(self, hold: float) -> None:
        self.hold = hold
        self.book = Book(keep_resolved_seconds=50.0)
        self.wall, self.clock = NOON, 7.0
        self.last: Outcome | None = None
        self.failed = self.passed = 0.0
        self.fired = self.resolved = 0

    @rule(
        outcome=st.sampled_from([*Outcome, FAIL, FAIL, None]),
        step=seconds,
        rounds=st.integers(1, 6),
    )
    def judge(self, outcome: Outcome | None, step: float, rounds: int) -> None:
        """More rounds of one outcome."""
        for _ in range(rounds):
            self.judge_once(outcome, step)

    def judge_once(self, outcome: Outcome | None, step: float) -> None:
        """Another round: real time passes, watched when the process was not stopped for long."""
        before, self.clock = self.clock, self.clock + step
        self.wall += step
        # What a clock shows of a step is rounded: 10.05 - 5.05 is more than 5.
        shown = self.clock - before
        watched = shown if shown <= MAX_STEP_SECONDS else 0.0
        if outcome is self.last is FAIL:
            self.failed += watched
        if outcome is self.last is PASS:
            self.passed += watched
        if outcome is FAIL:
            self.passed = 0.0
        verdicts = [] if outcome is None else [verdict(outcome, hold=self.hold, clear=CLEAR)]
        states = {alarm.state for alarm in self.book.alarms()}
        for transition in self.book.update(verdicts, self.wall, self.clock):
            self.check(transition.alarm.state, outcome)
        self.last = outcome
        if outcome is PASS and states <= {PENDING, RESOLVED}:
            self.failed = 0.0

    def check(self, state: object, outcome: Outcome | None) -> None:
        if state is PENDING:
            assert outcome is FAIL
            self.failed = 0.0
        elif state is FIRING:
            assert outcome is FAIL
            assert self.failed >= self.hold - 1e-9
            self.fired += 1
        else:
            assert outcome is PASS
            assert self.passed >= CLEAR - 1e-9
            self.resolved += 1
            self.failed = 0.0

    @rule(down=st.floats(0.0, 1e6), clock=st.floats(0.0, 1e6))
    def restart(self, down: float, clock: float) -> None:
        """A new process, after some time in which things may have failed unseen."""
        self.book = Book(self.book.standings(), keep_resolved_seconds=50.0)
        self.wall += down
        self.clock = clock
        self.last = None

    @rule(jump=st.sampled_from([-3_600.0, 3_600.0, 315_576_000.0, -315_576_000.0]))
    def set_clock(self, jump: float) -> None:
        """Somebody sets the wall clock."""
        self.wall += jump

    @invariant()
    def no_time_is_invented(self) -> None:
        for alarm in self.book.alarms():
            if alarm.state is PENDING:
                assert abs(alarm.held_seconds - self.failed) < 1e-6
            assert alarm.held_seconds <= self.hold + MAX_STEP_SECONDS
            assert (alarm.state is RESOLVED) == (alarm.resolved is not None)
            assert (alarm.state is PENDING) == (alarm.fired is None)

    @invariant()
    def firing_and_resolving_alternate(self) -> None:
        assert self.fired - self.resolved in (0, 1)
        firing = any(alarm.state is FIRING for alarm in self.book.alarms())
        assert firing == (self.fired - self.resolved == 1)

    @invariant()
    def known_says_whether_it_was_judged(self) -> None:
        for alarm in self.book.alarms():
            if self.last in (FAIL, PASS):
                assert alarm.known


TestOneAlarm = OneAlarm.TestCase
TestOneAlarm.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
