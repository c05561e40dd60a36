# SPDX-License-Identifier: GPL-3.0-or-later
"""Watch plans in libgradb, field by field: triggers, records, scalars, dead units, ages, costs, and whoever
breaks off while the training thread waits."""
import math
import pathlib
import socket
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from fake_debugger import (A, AT_END, AT_ONCE, B, EAGER, EXTRA, RARE, RELU, W, Case, harness,  # noqa: E402
                           pb)

NEVER = [pb.Trigger(field=pb.STAT_COUNT, op=pb.GT, value=1e9)]


def trigger(field, op, value, index=0):
    return pb.Trigger(field=field, op=op, value=value, range=index)


class Watching(Case):
    def send(self, *items, plan=1, when=AT_END, **fields):
        self.debugger.say(watch_plan=pb.WatchPlan(id=plan, items=items, when=when, **fields))

    def report(self, **wanted):
        """The next report; `wanted` are fields it must have."""
        report = self.debugger.hear("watch_report")
        for name, value in wanted.items():
            self.assertEqual(getattr(report, name), value, f"{name} of {report}")
        return report

    def costs(self, request=77):
        self.debugger.say(watch_cost=pb.WatchCostRequest(request=request))
        costs = self.debugger.hear("watch_costs")
        self.assertEqual(costs.request, request)
        return {plan.plan: plan for plan in costs.plans}

    def verdict(self, report, stop=False, text=""):
        self.debugger.say(watch_verdict=pb.WatchVerdict(report=report.id, stop=stop, text=text))

    def stops(self, reason, step=None):
        stopped = self.debugger.hear("stopped")
        self.assertEqual(stopped.reason, reason)
        if step is not None:
            self.assertEqual(stopped.step, step)
        return stopped


class Hello(Watching):
    def test_capabilities(self):
        hello = self.start()
        for name in ("WATCH", "WATCH_EXACT", "WATCH_COST", "WATCH_RECORD", "WATCH_SCALAR", "DEAD_UNITS"):
            self.assertIn(getattr(pb, "CAPABILITY_" + name), hello.capabilities)
        self.assertNotIn(pb.CAPABILITY_CAPTURE, hello.capabilities)


class Triggers(Watching):
    def expect(self, node, step, expected, **options):
        """Each of `expected`, (field, value, range), holds just inside its value and not just outside."""
        self.first_stop(steps=step)
        options = pb.StatsOptions(**options)

        def items(low, high):
            for field, value, index in expected:
                room = 1e-9 * abs(value) + 1e-13
                for op, at in ((low, value - room), (high, value + room)):
                    yield pb.WatchItem(node=node, options=options, report_if=[trigger(field, op, at, index)])
        self.send(*items(pb.GE, pb.LE), plan=1, every=step)
        self.send(*items(pb.LT, pb.GT), plan=2, every=step)
        self.run_on()
        report = self.report(plan=1, step=step)
        self.assertEqual(len(report.values), 2 * len(expected), report)
        self.debugger.never("watch_report", until="goodbye")
        return report.values[0].stats

    def test_each_field(self):
        now, before = [400 + i for i in range(6)], [300 + i for i in range(6)]
        mean = sum(now) / 6
        sum_sq, sum_sq_before = sum(x * x for x in now), sum(x * x for x in before)
        std = math.sqrt(sum((x - mean) ** 2 for x in now) / 6)
        dot = sum(x * y for x, y in zip(now, before))
        far = sum(100 > 50 + 0.164 * y for y in before)
        stats = self.expect(A, 4, [
            (pb.STAT_COUNT, 6, 0), (pb.STAT_NAN, 0, 0), (pb.STAT_INF, 0, 0), (pb.STAT_POS_INF, 0, 0),
            (pb.STAT_NEG_INF, 0, 0), (pb.STAT_NON_FINITE, 0, 0), (pb.STAT_ZERO, 0, 0),
            (pb.STAT_NEG_ZERO, 0, 0), (pb.STAT_POSITIVE, 6, 0), (pb.STAT_NEGATIVE, 0, 0),
            (pb.STAT_DENORMAL, 0, 0), (pb.STAT_MIN, 400, 0), (pb.STAT_MAX, 405, 0), (pb.STAT_SPREAD, 5, 0),
            (pb.STAT_MAX_ABS, 405, 0), (pb.STAT_MEAN, mean, 0), (pb.STAT_ABS_MEAN, mean, 0),
            (pb.STAT_STD, std, 0), (pb.STAT_SUM_SQ, sum_sq, 0), (pb.STAT_NORM, math.sqrt(sum_sq), 0),
            (pb.STAT_ZERO_SHARE, 0, 0), (pb.STAT_IN_RANGE_SHARE, 3 / 6, 0), (pb.STAT_IN_RANGE_SHARE, 1 / 6, 1),
            (pb.STAT_OUT_RANGE_SHARE, 3 / 6, 0), (pb.STAT_OUT_RANGE_SHARE, 5 / 6, 1),
            (pb.STAT_MEAN_ABS_DELTA, 100, 0), (pb.STAT_MAX_ABS_DELTA, 100, 0), (pb.STAT_MISMATCH, far, 0),
            (pb.STAT_MISMATCH_SHARE, far / 6, 0), (pb.STAT_MEAN_ABS_PREVIOUS, sum(before) / 6, 0),
            (pb.STAT_UPDATE_RATIO, 100 / (sum(before) / 6 + 1e-9), 0), (pb.STAT_MEAN_DELTA, 100, 0),
            (pb.STAT_DELTA_NORM, math.sqrt(6) * 100, 0), (pb.STAT_PREVIOUS_NORM, math.sqrt(sum_sq_before), 0),
            (pb.STAT_COSINE, dot / math.sqrt(sum_sq * sum_sq_before), 0), (pb.STAT_AGE, 0, 0)],
            ranges=[pb.Range(lo=403, hi=900), pb.Range(lo=401.5, hi=402)],
            against_previous=True, rtol=0.164, atol=50)
        self.assertTrue(0 < far < 6)
        self.assertEqual(list(stats.in_range), [3, 1])
        self.assertAlmostEqual(stats.difference.mean_delta, 100)
        self.assertAlmostEqual(stats.difference.sum_sq_delta, 60000)

    def test_what_is_not_finite(self):
        self.expect(B, 3, [(pb.STAT_NAN, 1, 0), (pb.STAT_NON_FINITE, 1, 0), (pb.STAT_INF, 0, 0),
                           (pb.STAT_MAX, 305, 0), (pb.STAT_POSITIVE, 5, 0)])

    def test_zeros_and_dead_units(self):
        self.expect(RELU, 4, [(pb.STAT_ZERO, 4, 0), (pb.STAT_ZERO_SHARE, 4 / 6, 0),
                              (pb.STAT_DEAD_SHARE, 2 / 3, 0)], dead_steps=1)

    def test_fields_without_a_value_never_hold(self):
        """No range, no such range, no units, no previous value asked for, a field that is not known."""
        self.first_stop(steps=3)
        fields = [(pb.STAT_IN_RANGE_SHARE, 0, {}), (pb.STAT_OUT_RANGE_SHARE, 7, {"ranges": [pb.Range(lo=0, hi=1)]}),
                  (pb.STAT_DEAD_SHARE, 0, {}), (pb.STAT_COSINE, 0, {}), (pb.STAT_MEAN_DELTA, 0, {}),
                  (pb.STAT_NONE, 0, {}), (4711, 0, {})]
        self.send(*(pb.WatchItem(node=A, options=pb.StatsOptions(**options),
                                 report_if=[trigger(field, op, 0, index) for op in range(6)])
                    for field, index, options in fields))
        self.send(pb.WatchItem(node=A, report_if=[trigger(pb.STAT_MAX, 99, 0),
                                                  trigger(pb.STAT_MAX, pb.NE, math.nan)]), plan=2)
        self.run_on()
        self.debugger.never("watch_report", until="goodbye")

    def test_options_out_of_bounds_are_said(self):
        self.first_stop(steps=1)
        many = [pb.Range(lo=0, hi=1)] * 17
        self.send(pb.WatchItem(node=A, options=pb.StatsOptions(ranges=many), report_if=NEVER),
                  pb.WatchItem(node=A, slot=5, report_if=NEVER),
                  pb.WatchItem(node=A, options=pb.StatsOptions(histogram=pb.Bins(lo=0, hi=1, count=5000))),
                  pb.WatchItem(node=0, report_if=NEVER),
                  pb.WatchItem(node=4000000000, report_if=NEVER))
        self.run_on()
        values = self.report().values
        self.assertEqual([v.error_code for v in values], [pb.RequestError.INVALID, pb.RequestError.NOT_FOUND,
                                                          pb.RequestError.INVALID])
        self.assertFalse(any(v.HasField("stats") for v in values))
        self.assertIn("at most 16", values[0].error)
        self.debugger.never("watch_report", until="goodbye")

    def test_ages(self):
        """What did not run in a step has the value of the step before."""
        self.first_stop()
        old = [trigger(pb.STAT_AGE, pb.GT, 0)]
        self.send(*(pb.WatchItem(node=node, report_if=old) for node in (W, A, B, RELU, RARE)))
        self.run_on()
        for step in (3, 4):
            values = self.report(step=step).values
            self.assertEqual([(v.node, v.step, v.stats.max) for v in values], [(RARE, 2, 205)])
        self.debugger.never("watch_report", until="goodbye")

    def test_values_that_do_not_outlive_their_node_are_there_at_the_end_of_the_step(self):
        self.first_stop(steps=4)
        self.send(pb.WatchItem(node=EAGER))
        self.run_on()
        for step in range(1, 5):
            value = self.report(step=step).values[0]
            self.assertEqual((value.step, value.stats.count, value.stats.max), (step, step, 101 * step - 1))
        self.ends()

    def test_those_worth_reporting_are_there_for_whoever_is_stopped_for_them(self):
        self.first_stop(steps=5)
        self.send(pb.WatchItem(node=EAGER, report_if=[trigger(pb.STAT_MAX, pb.EQ, 302)]), hold=True)
        self.run_on(pb.Run.STEP, count=2)
        self.stops(pb.STOP_STEP, 2)
        self.debugger.say(fetch=pb.Fetch(request=1, node=EAGER))
        self.assertEqual(self.debugger.hear("error").code, pb.RequestError.NO_VALUE)
        self.debugger.say(stats=pb.StatsRequest(request=2, node=EAGER))  # what was seen of it is still known
        value = self.debugger.hear("stats").value
        self.assertEqual((value.step, value.stats.count, value.stats.max), (2, 2, 201))
        self.run_on()
        report = self.report(step=3)
        self.verdict(report, stop=True)
        self.stops(pb.STOP_WATCH, 3)
        self.debugger.say(fetch=pb.Fetch(request=2, node=EAGER))
        begin = self.debugger.hear("tensor_begin")
        self.assertEqual((begin.step, begin.bytes), (3, 12))
        self.debugger.hear("tensor_data")
        self.run_on(pb.Run.STEP, count=1)
        self.stops(pb.STOP_STEP, 4)
        self.debugger.say(fetch=pb.Fetch(request=3, node=EAGER))  # not that of step 3
        self.assertEqual(self.debugger.hear("error").code, pb.RequestError.NO_VALUE)
        self.run_on()
        self.ends()


class Records(Watching):
    def test_once_a_step_whatever_the_triggers_say(self):
        self.first_stop()
        self.send(*(pb.WatchItem(node=n, report_if=NEVER) for n in (RARE, A, B)), when=AT_ONCE, hold=True,
                  record=True)
        self.run_on()
        for step in range(1, 7):
            report = self.report(step=step, record=True, holding=False, more=False)
            self.assertGreater(report.cost_ns, 0)
            ran = step if step not in (3, 4) else 2
            seen = {v.node: (v.step, v.stats.max) for v in report.values}
            self.assertEqual(len(report.values), 3)
            self.assertEqual(seen, {A: (step, 100 * step + 5), B: (step, 100 * step + 5),
                                    RARE: (ran, 100 * ran + 5)})
        self.ends()

    def test_values_are_not_computed_again(self):
        self.first_stop(steps=4)
        self.send(pb.WatchItem(node=A, report_if=NEVER), when=AT_ONCE, record=True)
        self.send(pb.WatchItem(node=B, report_if=NEVER), when=AT_END, record=True, plan=2)
        self.run_on(pb.Run.STEP, count=4)
        self.stops(pb.STOP_STEP)
        costs = self.costs()
        self.assertEqual([list(costs[p].item_runs) for p in (1, 2)], [[4], [4]])
        self.run_on()
        self.ends()

    def test_beside_the_reports_of_triggers(self):
        self.first_stop(steps=4)
        self.send(pb.WatchItem(node=B, report_if=[trigger(pb.STAT_NAN, pb.GT, 0)]), when=AT_ONCE, hold=True,
                  record=True)
        self.run_on()
        for step in (1, 2):
            self.report(step=step, record=True)
        report = self.report(step=3, record=False, holding=True)
        self.verdict(report, stop=True)
        self.stops(pb.STOP_WATCH, 3)
        self.run_on()
        report = self.report(step=3, record=True, holding=False)
        self.assertEqual(report.values[0].stats.nan, 1)
        self.report(step=4, record=True)
        self.ends()

    def test_only_in_steps_that_are_due(self):
        self.first_stop(steps=6)
        self.send(pb.WatchItem(node=A, report_if=NEVER), when=AT_ONCE, every=3, record=True)
        self.run_on()
        self.assertEqual([self.report(record=True).step for _ in range(2)], [3, 6])
        self.ends()

    def test_large_ones_come_in_parts(self):
        self.first_stop(steps=2, extra=600)
        self.send(*(pb.WatchItem(node=EXTRA + i, report_if=NEVER) for i in range(600)), when=AT_ONCE,
                  record=True)
        self.run_on()
        for step in (1, 2):
            parts = [self.report(step=step, record=True)]
            while parts[-1].more:
                parts.append(self.report(step=step, record=True, id=parts[0].id))
            self.assertEqual([len(part.values) for part in parts], [256, 256, 88])
            self.assertEqual([v.node for part in parts for v in part.values],
                             list(range(EXTRA, EXTRA + 600)))
        self.ends()


class Scalars(Watching):
    def test_a_number_is_a_value_of_one_element(self):
        self.first_stop()
        self.send(pb.WatchItem(scalar="loss", options=pb.StatsOptions(against_previous=True)))
        self.run_on()
        for step in range(1, 7):
            value = self.report(step=step).values[0]
            self.assertEqual((value.scalar, value.node, value.dtype, list(value.shape), value.step),
                             ("loss", 0, pb.FLOAT64, [], step))
            self.assertEqual((value.stats.count, value.stats.mean, value.stats.max), (1, 1 / step, 1 / step))
            self.assertEqual(value.stats.HasField("difference"), step > 1)
            if step > 1:
                self.assertAlmostEqual(value.stats.difference.mean_delta, 1 / step - 1 / (step - 1))
        self.ends()

    def test_one_that_was_not_told_in_the_step_has_no_value(self):
        self.first_stop(steps=4)
        self.send(pb.WatchItem(scalar="even", report_if=NEVER), pb.WatchItem(scalar="loss", report_if=NEVER))
        self.run_on()
        for step in (1, 3):
            values = self.report(step=step).values
            self.assertEqual([(v.scalar, v.error_code) for v in values], [("even", pb.RequestError.NO_VALUE)])
            self.assertIn(f"even was not reported in step {step}", values[0].error)
        self.debugger.never("watch_report", until="goodbye")

    def test_triggers_and_verdicts(self):
        self.first_stop()
        self.send(pb.WatchItem(scalar="loss", report_if=[trigger(pb.STAT_MEAN, pb.LT, 0.3)]), hold=True)
        self.run_on()
        self.verdict(self.report(step=4, holding=True), stop=True, text="low enough")
        stopped = self.stops(pb.STOP_WATCH, 4)
        self.assertEqual((stopped.text, stopped.at_step_end), ("low enough", True))
        self.send()
        self.run_on()
        self.ends()

    def test_not_in_plans_that_look_at_once(self):
        self.first_stop(steps=2)
        self.send(pb.WatchItem(scalar="loss"), when=AT_ONCE, record=True)
        self.run_on()
        self.debugger.never("watch_report", until="goodbye")


class DeadUnits(Watching):
    def item(self, steps):
        return pb.WatchItem(node=RELU, options=pb.StatsOptions(dead_steps=steps))

    def look(self, step):
        stats = self.report(step=step).values[0].stats
        self.assertEqual(stats.units, 3)
        return stats.dead_units

    def test_they_are_counted_over_the_last_looks(self):
        for when in (AT_END, AT_ONCE):
            with self.subTest(when=when):
                self.setUp()
                self.first_stop(steps=6)
                self.send(self.item(2), when=when)
                self.run_on()
                self.assertEqual([self.look(step) for step in range(1, 7)], [0, 1, 1, 2, 2, 2])
                self.ends()

    def test_the_count_outlives_the_plan_that_is_replaced(self):
        self.first_stop(steps=6)
        self.send(self.item(4))
        self.run_on(pb.Run.STEP, count=3)
        self.assertEqual([self.look(step) for step in (1, 2, 3)], [0, 0, 0])
        self.stops(pb.STOP_STEP, 3)
        self.send(pb.WatchItem(node=W, report_if=NEVER), self.item(4))
        self.run_on()
        self.assertEqual([self.look(step) for step in (4, 5, 6)], [1, 1, 2])
        self.ends()

    def test_the_count_goes_along_to_another_plan(self):
        self.first_stop(steps=6)
        self.send(self.item(4))
        self.run_on(pb.Run.STEP, count=3)
        self.assertEqual([self.look(step) for step in (1, 2, 3)], [0, 0, 0])
        self.stops(pb.STOP_STEP, 3)
        self.send(more=True)
        self.send(self.item(4), plan=2)
        self.run_on()
        self.assertEqual([self.look(step) for step in (4, 5, 6)], [1, 1, 2])
        self.ends()

    def test_a_plan_that_goes_takes_them_along(self):
        self.first_stop(steps=6)
        self.send(self.item(2))
        self.run_on(pb.Run.STEP, count=4)
        self.assertEqual([self.look(step) for step in (1, 2, 3, 4)], [0, 1, 1, 2])
        self.stops(pb.STOP_STEP, 4)
        self.send()
        self.send(self.item(2))
        self.run_on()
        self.assertEqual([self.look(step) for step in (5, 6)], [0, 2])
        self.ends()


class Parts(Watching):
    def some(self, count, quiet=0):
        """`count` nodes that report always, and `quiet` that never do."""
        return [pb.WatchItem(node=EXTRA + i, report_if=() if i < count else NEVER) for i in range(count + quiet)]

    def parts(self, step):
        parts = [self.report(step=step, holding=True)]
        while parts[-1].more:
            parts.append(self.report(step=step, holding=True, id=parts[0].id))
        return parts

    def test_one_verdict_answers_all_parts(self):
        self.first_stop(steps=3, extra=600)
        self.send(*self.some(600), hold=True)
        self.run_on()
        ids = []
        for step in (1, 2, 3):
            parts = self.parts(step)
            self.assertEqual([len(part.values) for part in parts], [256, 256, 88])
            ids.append(parts[0].id)
            self.verdict(parts[0], stop=step == 2, text="enough")
            if step == 2:
                stopped = self.stops(pb.STOP_WATCH, 2)
                self.assertEqual((stopped.watch_report, stopped.text), (parts[0].id, "enough"))
                self.run_on()
        self.assertEqual(ids, sorted(set(ids)))
        self.ends()

    def test_a_full_part_that_nothing_follows_is_the_last(self):
        self.first_stop(steps=2, extra=300)
        self.send(*self.some(256, quiet=44), hold=True)
        self.run_on()
        for step in (1, 2):
            parts = self.parts(step)
            self.assertEqual([len(part.values) for part in parts], [256])
            self.verdict(parts[0])
        self.ends()


    def many_nodes(self, **kwargs):
        self.start(**kwargs)
        self.stops(pb.STOP_CONNECTED, 0)

    def test_the_work_of_very_many_is_shared_and_their_order_kept(self):
        """So many that they take long enough in the first step for several threads in the next."""
        count = 3000
        self.many_nodes(steps=4, extra=count, threads=3)
        options = pb.StatsOptions(against_previous=True, dead_steps=2)
        self.send(*(pb.WatchItem(node=EXTRA + i, options=options) for i in range(count)), record=True)
        self.run_on(pb.Run.STEP, count=4)
        for step in range(1, 5):
            for record in (False, True):
                parts = [self.report(step=step, record=record)]
                while parts[-1].more:
                    parts.append(self.report(step=step, record=record, id=parts[0].id))
                values = [v for part in parts for v in part.values]
                self.assertEqual([v.node for v in values], list(range(EXTRA, EXTRA + count)))
                self.assertEqual({v.stats.max for v in values}, {100 * step + 5})
                self.assertEqual({v.stats.units for v in values}, {3})
                self.assertEqual({v.stats.difference.mean_delta for v in values}, {100 if step > 1 else 0})
        self.stops(pb.STOP_STEP)
        cost = self.costs()[1]
        self.assertEqual(list(cost.item_runs), [4] * count)
        self.run_on()
        self.ends()


class Verdicts(Watching):
    def two_reports(self, **trainer):
        self.first_stop(steps=4, **trainer)
        for plan in (1, 2):
            self.send(pb.WatchItem(node=B, options=pb.StatsOptions(rtol=plan)), plan=plan, when=AT_ONCE,
                      hold=True)
        self.run_on()
        return self.report(holding=True), self.report(holding=True)

    def test_the_first_that_says_stop_counts(self):
        first, second = self.two_reports()
        self.verdict(first, stop=True, text="one")
        self.verdict(second, stop=True, text="two")
        stopped = self.stops(pb.STOP_WATCH, 1)
        self.assertEqual((stopped.text, stopped.watch_report, stopped.node), ("one", first.id, B))
        self.run_on()
        first, second = self.report(), self.report()
        self.verdict(first)
        self.verdict(second, stop=True, text="two")
        stopped = self.stops(pb.STOP_WATCH, 2)
        self.assertEqual((stopped.text, stopped.watch_report), ("two", second.id))
        self.debugger.say(detach=pb.Detach())
        self.assertEqual(self.debugger.hear("goodbye").reason, pb.Goodbye.DETACHED)
        self.assertEqual(self.trainer.wait(timeout=harness.DEADLINE), 0)

    def test_verdicts_that_nobody_waits_for_are_ignored(self):
        first, second = self.two_reports()
        for wrong in (0, first.id - 1, second.id + 1, 2**64 - 1):
            self.debugger.say(watch_verdict=pb.WatchVerdict(report=wrong, stop=True))
        self.verdict(first)
        self.verdict(second)
        first, second = self.report(step=2), self.report(step=2)  # it did not stop in step 1
        self.debugger.say(stop_training=pb.StopTraining())  # instead of verdicts
        self.assertEqual(self.debugger.hear("goodbye").reason, pb.Goodbye.FINISHED)
        self.assertEqual(self.trainer.wait(timeout=harness.DEADLINE), 3)

    def test_detached_while_it_waits(self):
        self.two_reports()
        self.debugger.say(detach=pb.Detach())
        self.assertEqual(self.debugger.hear("goodbye").reason, pb.Goodbye.DETACHED)
        self.assertEqual(self.trainer.wait(timeout=harness.DEADLINE), 0)

    def test_plans_removed_while_it_waits(self):
        first, second = self.two_reports()
        for plan in (1, 2):
            self.send(plan=plan)
        self.verdict(first)
        self.verdict(second, stop=True, text="late")
        stopped = self.stops(pb.STOP_WATCH, 1)
        self.assertEqual(stopped.text, "late")
        self.run_on()
        self.debugger.never("watch_report", until="goodbye")

    def test_a_debugger_that_dies_while_it_waits(self):
        """Its sockets are closed by the system, without a word: what a SIGKILL does."""
        relay = Relay(self.debugger.port)
        self.addCleanup(relay.close)
        self.two_reports(port=relay.port)
        relay.cut()
        self.assertEqual(self.trainer.wait(timeout=harness.DEADLINE), 0)

    def test_a_debugger_that_hangs_while_it_waits(self):
        self.two_reports(keepalive=1)
        self.assertEqual(self.trainer.wait(timeout=harness.DEADLINE), 0)

    def test_the_steps_that_were_asked_for_end_at_the_same_place(self):
        """A watch that stops at a step's end takes the place of the step's own stop; one that does not stop
        leaves it."""
        self.first_stop(steps=4)
        self.send(pb.WatchItem(node=W), hold=True)
        self.run_on(pb.Run.STEP, count=1)
        self.verdict(self.report(step=1))
        self.stops(pb.STOP_STEP, 1)
        self.run_on(pb.Run.STEP, count=1)
        self.verdict(self.report(step=2), stop=True)
        self.stops(pb.STOP_WATCH, 2)
        self.run_on(pb.Run.STEP, count=2)
        self.verdict(self.report(step=3))
        self.verdict(self.report(step=4))
        self.stops(pb.STOP_STEP, 4)
        self.run_on()
        self.ends()


class Costs(Watching):
    def test_they_add_up(self):
        self.first_stop(steps=8)
        self.send(*(pb.WatchItem(node=n) for n in (A, B, RARE)), when=AT_ONCE, plan=1)
        self.send(pb.WatchItem(node=W, report_if=NEVER), pb.WatchItem(scalar="even", report_if=NEVER), plan=2)
        self.run_on(pb.Run.STEP, count=6)
        reports = {1: [], 2: []}
        while sum(map(len, reports.values())) < 6 + 6 + 4 + 3:
            message = self.debugger.heard.get(timeout=harness.DEADLINE)
            if message.WhichOneof("msg") == "watch_report":
                reports[message.watch_report.plan].append(message)
        self.stops(pb.STOP_STEP, 6)
        costs = self.costs()
        self.assertEqual(sorted(costs), [1, 2])
        self.assertEqual((list(costs[1].item_runs), list(costs[2].item_runs)), ([6, 6, 4], [6, 3]))
        for plan, heard in reports.items():
            self.assertEqual(costs[plan].reports, len(heard))
            self.assertEqual(costs[plan].report_bytes, sum(m.ByteSize() for m in heard))
            self.assertEqual(costs[plan].wait_ns, 0)
        said = [sum(v.cost_ns for m in reports[1] for v in m.watch_report.values if v.node == node)
                for node in (A, B, RARE)]
        self.assertEqual(list(costs[1].item_ns), said)
        self.send(pb.WatchItem(node=A), when=AT_ONCE, plan=1)
        costs = self.costs()  # of a new plan, and of the old one beside it
        self.assertEqual((list(costs[1].item_runs), costs[1].reports, list(costs[1].item_ns)), ([0], 0, [0]))
        self.assertEqual(list(costs[2].item_runs), [6, 3])
        self.run_on()
        self.ends()

    def test_while_the_training_runs_and_waits(self):
        self.first_stop(steps=3)
        self.send(pb.WatchItem(node=A), when=AT_ONCE, hold=True, plan=9)
        self.assertEqual(self.costs()[9].wait_ns, 0)
        self.run_on()
        report = self.report(step=1)
        self.assertEqual(list(self.costs()[9].item_runs), [1])
        self.verdict(report)
        report = self.report(step=2)
        cost = self.costs()[9]
        self.assertGreater(cost.wait_ns, 0)
        self.assertEqual((list(cost.item_runs), cost.reports), ([2], 2))
        self.send(plan=9)
        self.assertEqual(self.costs(), {})
        self.verdict(report)
        self.ends()

    def test_the_same_of_two_plans_is_computed_once(self):
        self.first_stop(steps=4)
        for plan, when in ((1, AT_ONCE), (2, AT_ONCE), (3, AT_END), (4, AT_END)):
            self.send(pb.WatchItem(node=A, options=pb.StatsOptions(dead_steps=2)), plan=plan, when=when)
        self.run_on(pb.Run.STEP, count=4)
        for step in range(1, 5):
            stats = [self.report(step=step).values[0].stats for _ in range(4)]
            self.assertEqual([s.SerializeToString() for s in stats[1:]], [stats[0].SerializeToString()] * 3)
        self.stops(pb.STOP_STEP)
        runs = {plan: cost.item_runs[0] for plan, cost in self.costs().items()}
        self.assertEqual((runs[1] + runs[2], runs[3] + runs[4]), (4, 4))
        self.run_on()
        self.ends()


class Replaced(Watching):
    """What stands when plans took each other's place is what they would be if they had been set so at once."""

    def seen_in_a_step(self, step):
        self.run_on(pb.Run.STEP, count=1)
        reports = [self.report(step=step) for _ in range(5)]
        self.stops(pb.STOP_STEP)
        return [(report.plan, [value.node for value in report.values]) for report in reports]

    def test_what_was_seen_before_is_there_for_the_plan_that_replaces_it(self):
        """In the middle of a step, when the value is gone."""
        self.first_stop(steps=3)
        self.send(pb.WatchItem(node=EAGER, report_if=[trigger(pb.STAT_MAX, pb.GT, 1000)]))
        self.run_on(pb.Run.STEP, count=1)
        self.stops(pb.STOP_STEP, 1)
        self.run_on(pb.Run.TO_NODE, node=RELU)
        self.assertEqual(self.debugger.hear("stopped").step, 2)
        self.send(pb.WatchItem(node=EAGER, report_if=[trigger(pb.STAT_MAX, pb.EQ, 201)]))
        self.run_on()
        value = self.report(step=2).values[0]
        self.assertEqual((value.node, value.step, value.stats.max, value.error), (EAGER, 2, 201, ""))
        self.ends()

    def test_in_any_order(self):
        options = [pb.StatsOptions(), pb.StatsOptions(dead_steps=2), pb.StatsOptions(against_previous=True)]

        def items(*nodes):
            return [pb.WatchItem(node=node, options=o) for node in nodes for o in options[:2]]
        self.first_stop(steps=4)
        for plan in (1, 2, 3):
            self.send(*items(A, B, RELU), plan=plan, when=AT_ONCE)
        self.send(*items(A, W), pb.WatchItem(node=B, options=options[2]), plan=4)
        self.send(*items(B, A), plan=1, when=AT_ONCE)
        self.send(plan=2)
        self.send(*items(W), plan=4)
        self.send(*items(A), plan=3, when=AT_ONCE)
        self.send(*items(RELU), plan=5, when=AT_ONCE)
        replaced = self.seen_in_a_step(1)
        for plan in (1, 3, 4, 5):
            self.send(plan=plan)
        self.assertEqual(self.costs(), {})
        for plan, nodes, when in ((1, (B, A), AT_ONCE), (3, (A,), AT_ONCE), (4, (W,), AT_END),
                                  (5, (RELU,), AT_ONCE)):
            self.send(*items(*nodes), plan=plan, when=when)
        self.assertEqual(self.seen_in_a_step(2), replaced)
        self.assertEqual(sorted(plan for plan, _ in replaced), [1, 1, 3, 4, 5])
        self.run_on()

    def in_the_middle(self):
        """Plan 1 has recorded a value of this step that is gone."""
        self.first_stop(steps=2)
        self.send(*(pb.WatchItem(node=node, report_if=NEVER) for node in (B, EAGER)), when=AT_ONCE, record=True)
        self.debugger.say(breakpoints=pb.Breakpoints(nodes=[RELU]))
        self.run_on()
        self.assertEqual(self.debugger.hear("stopped").node, RELU)
        self.debugger.say(breakpoints=pb.Breakpoints())

    def recorded(self, step):
        report = self.report(step=step, record=True)
        return report.plan, [(value.node, value.error_code, value.stats.max) for value in report.values]

    def test_a_record_by_a_plan_of_the_same_number(self):
        self.in_the_middle()
        self.send(*(pb.WatchItem(node=node, report_if=NEVER) for node in (B, EAGER, RELU)), when=AT_ONCE, record=True)
        self.run_on()
        number, values = self.recorded(1)
        self.assertEqual((number, [node for node, _, _ in values]), (1, [B, EAGER, RELU]))
        self.assertEqual(values[1], (EAGER, 0, 100))
        self.ends()

    def test_a_record_by_another_plan(self):
        self.in_the_middle()
        self.send(more=True)
        self.send(*(pb.WatchItem(node=node, report_if=NEVER) for node in (B, EAGER)), when=AT_ONCE, record=True, plan=2)
        number, values = self.recorded(1)
        self.assertEqual((number, [node for node, _, _ in values], values[1]), (1, [B, EAGER], (EAGER, 0, 100)))
        self.run_on()
        number, values = self.recorded(2)
        self.assertEqual((number, [node for node, _, _ in values]), (2, [B, EAGER]))
        self.ends()


class Relay:
    """Between the trainer and its debugger; cut() ends it the way the system does for a killed process."""

    def __init__(self, to):
        self.to = to
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.ends = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        ends = [self.listener.accept()[0], socket.create_connection(("127.0.0.1", self.to))]
        self.listener.close()
        self.ends = ends
        threading.Thread(target=self._copy, args=ends, daemon=True).start()
        self._copy(*reversed(ends))

    @staticmethod
    def _copy(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass

    def cut(self):
        self.ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.ends[0].shutdown(socket.SHUT_RDWR)
        self.ends[0].close()

    def close(self):
        self.listener.close()
        for end in self.ends:
            end.close()


class Events(Watching):
    """Of which steps the training waits for a verdict: loss is 1 / step, and "even" is reported in even ones."""

    def held(self, *tests, **options):
        return self.held_by(*(pb.NumberTest(number=number, op=op, value=value) for number, op, value in tests),
                            **options)

    def held_by(self, *tests, every=1, kind="step-end", steps=8, scalars=0):
        self.setUp()  # each training has its own debugger
        self.first_stop(steps=steps)
        wish = pb.EventWish(kind=kind, every=every, hold_if=tests)
        self.debugger.say(event_wishes=pb.EventWishes(wishes=[wish], scalars=scalars))
        self.debugger.say(run=pb.Run(kind=pb.Run.CONTINUE))
        seen = []
        while True:
            name, message = self.debugger.hear_any("happening", "goodbye")
            if name == "goodbye":
                return seen
            self.assertTrue(message.holding)
            seen.append(message.step)
            self.debugger.say(event_verdict=pb.EventVerdict(id=message.id))

    def test_each_test_holds_the_steps_that_satisfy_it(self):
        for tests, every, wanted in (
                ([], 1, [1, 2, 3, 4, 5, 6, 7, 8]), ([], 3, [3, 6]),
                ([("step", pb.GE, 5)], 1, [5, 6, 7, 8]), ([("step", pb.GT, 5)], 2, [6, 8]),
                ([("step", pb.EQ, 4)], 1, [4]), ([("step", pb.LT, 3)], 1, [1, 2]),
                ([("loss", pb.LT, 0.15)], 1, [7, 8]), ([("loss", pb.LT, 0.15), ("step", pb.EQ, 2)], 1, [2, 7, 8]),
                ([("even", pb.EQ, 6)], 1, [6, 7]), ([("nothing", pb.GT, 0)], 1, []),
                ([("elapsed", pb.GT, 1e6)], 1, []), ([("elapsed", pb.GE, 0)], 4, [4, 8])):
            with self.subTest(tests=tests, every=every):
                self.assertEqual(self.held(*tests, every=every), wanted)

    def test_a_value_that_was_reported_before_counts(self):
        for last, scalars, wanted in ((0.9, 0, [1, 2, 3, 4, 5, 6, 7, 8]), (0.1, 0, []), (0.1, 9, list(range(1, 9)))):
            with self.subTest(last=last, scalars=scalars):  # 9: the debugger does not know the newest value
                test = pb.NumberTest(number="rare", op=pb.GT, value=0.5, known=True, last=last)
                self.assertEqual(self.held_by(test, scalars=scalars), wanted)
        test = pb.NumberTest(number="even", op=pb.GE, value=4, known=True, last=9)
        self.assertEqual(self.held_by(test), [1, 4, 5, 6, 7, 8])  # step 2 reports another one

    def test_step_begins_are_looked_at_too(self):
        self.assertEqual(self.held(("step", pb.GE, 7), kind="step-begin"), [7, 8])


if __name__ == "__main__":
    harness.main()
