# SPDX-License-Identifier: GPL-3.0-or-later
"""libgradb against a debugger written with the stock gRPC library: watch plans, captured values and what else
our own debugger does not ask for yet."""
import math
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from fake_debugger import A, AT_END, AT_ONCE, B, EAGER, MASK, W, Case, harness, pb  # noqa: E402


class Plans(Case):
    def test_every_step_is_reported(self):
        self.first_stop()
        self.plan(W, A, ranges=[pb.Range(lo=0, hi=202), pb.Range(lo=204, hi=1e9)],
                  histogram=pb.Bins(lo=200, hi=206, count=3))
        self.run_on()
        for step in range(1, 7):
            report = self.debugger.hear("watch_report")
            self.assertEqual((report.plan, report.step, report.holding), (1, step, False))
            self.assertEqual([v.node for v in report.values], [W, A])
            self.assertGreater(report.cost_ns, 0)
            for value in report.values:
                self.assertEqual((value.step, value.dtype, list(value.shape)), (step, pb.FLOAT32, [2, 3]))
                self.assertEqual((value.stats.count, value.stats.min, value.stats.max),
                                 (6, 100 * step, 100 * step + 5))
                low = sum(100 * step + i <= 202 for i in range(6))
                high = sum(100 * step + i >= 204 for i in range(6))
                self.assertEqual(list(value.stats.in_range), [low, high])
                self.assertEqual(list(value.stats.histogram), [2, 2, 2] if step == 2 else [0, 0, 0])
        self.ends()

    def test_histograms_over_the_range_of_the_value(self):
        self.first_stop()
        self.plan(W, A, histogram=pb.Bins(own=True, lo=7, hi=3, count=3))
        self.run_on()
        for step in range(1, 7):
            for value in self.debugger.hear("watch_report").values:
                self.assertEqual((value.stats.min, value.stats.max), (100 * step, 100 * step + 5))
                self.assertEqual(list(value.stats.histogram), [2, 2, 2])
        self.ends()

    def test_plans_that_take_effect_together(self):
        self.first_stop(steps=4)
        self.plan(A, B, plan=1)
        self.debugger.say(watch_plan=pb.WatchPlan(id=1, items=[pb.WatchItem(node=B)], when=AT_END, more=True))
        for step, plans in ((1, {1: [A, B]}), (2, {1: [B], 2: [A]})):
            self.run_on(kind=pb.Run.STEP, count=1)
            for _ in plans:
                report = self.debugger.hear("watch_report")
                self.assertEqual((report.step, [value.node for value in report.values]), (step, plans[report.plan]))
            self.assertEqual(self.debugger.hear("stopped").step, step)
            self.plan(A, plan=2)  # the last of them
        self.plan(A, B, plan=2)
        self.debugger.say(watch_plan=pb.WatchPlan(id=1, more=True))
        self.debugger.say(breakpoints=pb.Breakpoints(nodes=[B]))  # nothing that belongs to them follows
        self.run_on()
        self.assertEqual(self.debugger.hear("stopped").node, B)
        self.debugger.say(breakpoints=pb.Breakpoints())
        self.run_on()
        for step in (3, 4):
            report = self.debugger.hear("watch_report")
            self.assertEqual((report.plan, report.step, len(report.values)), (2, step, 2))
        self.ends()

    def test_triggers_keep_quiet_until_they_hold(self):
        self.first_stop()
        self.plan(A, B, when=AT_ONCE, hold=True,
                  triggers=[pb.Trigger(field=pb.STAT_NON_FINITE, op=pb.GT, value=0)])
        self.run_on()
        report = self.debugger.hear("watch_report")
        self.assertEqual((report.step, report.holding, [v.node for v in report.values]), (3, True, [B]))
        self.assertEqual(report.values[0].stats.nan, 1)
        self.debugger.say(watch_verdict=pb.WatchVerdict(report=report.id, stop=True, text="it is a NaN"))
        stopped = self.debugger.hear("stopped")
        self.assertEqual((stopped.reason, stopped.step, stopped.node, stopped.text, stopped.watch_report),
                         (pb.STOP_WATCH, 3, B, "it is a NaN", report.id))
        # It stands before the next node: what that computes is still that of step 2.
        self.debugger.say(fetch=pb.Fetch(request=1, node=A))
        self.assertEqual(self.debugger.hear("tensor_begin").step, 3)
        self.run_on()
        self.debugger.never("watch_report", until="goodbye")
        self.assertEqual(self.trainer.wait(timeout=harness.DEADLINE), 0)

    def expect_masks(self, said, record=True):
        """Steps in which net/mask is reported, where the verdicts say whether it is meant to be as it is: said."""
        self.debugger.say(watch_plan=pb.WatchPlan(
            id=1, when=AT_ONCE, hold=True, record=record,
            items=[pb.WatchItem(node=MASK, report_if=[pb.Trigger(field=pb.STAT_NON_FINITE, op=pb.GT, value=0)])]))
        self.run_on()
        steps = []
        while len(steps) < len(said):
            report = self.debugger.hear("watch_report")
            if not report.record:
                self.debugger.say(watch_verdict=pb.WatchVerdict(report=report.id, meant=said[len(steps)]))
                steps.append(report.step)
        return steps

    def test_what_is_meant_to_be_is_not_reported_again(self):
        self.first_stop()
        # in step 4 there is another sign, before step 6 the node changes
        self.assertEqual(self.expect_masks([True, False, True]), [1, 4, 6])
        self.ends()

    def test_what_is_not_meant_to_be_is_reported_again(self):
        self.first_stop(steps=3)
        self.assertEqual(self.expect_masks([False, True]), [1, 2])
        self.ends()

    def test_without_a_record_everything_is_reported(self):
        self.first_stop(steps=3)
        self.assertEqual(self.expect_masks([True, True, True], record=False), [1, 2, 3])
        self.ends()

    def stop_by_verdict(self, step):
        report = self.debugger.hear("watch_report")
        self.assertEqual(report.step, step)
        self.debugger.say(watch_verdict=pb.WatchVerdict(report=report.id, stop=True))
        stopped = self.debugger.hear("stopped")
        self.assertEqual((stopped.reason, stopped.step), (pb.STOP_WATCH, step))

    def test_a_verdicts_stop_is_not_followed_by_another_at_the_same_place(self):
        self.first_stop(steps=5)
        self.plan(B, when=AT_ONCE, hold=True, plan=1)
        self.run_on()
        self.stop_by_verdict(1)
        self.run_on(kind=pb.Run.NEXT, count=1)
        stopped = self.debugger.hear("stopped")
        self.assertEqual((stopped.reason, stopped.node, stopped.step), (pb.STOP_NODE, EAGER, 1))
        self.debugger.say(breakpoints=pb.Breakpoints(nodes=[B]))
        self.run_on()
        self.stop_by_verdict(2)
        self.run_on(kind=pb.Run.STEP, count=1)
        stopped = self.debugger.hear("stopped")
        self.assertEqual((stopped.reason, stopped.step), (pb.STOP_STEP, 2))
        self.debugger.say(breakpoints=pb.Breakpoints())
        self.plan(plan=1)
        self.plan(W, when=AT_END, hold=True, plan=2)
        self.run_on()
        self.stop_by_verdict(3)
        self.plan(plan=2)
        self.run_on(kind=pb.Run.STEP, count=1)
        stopped = self.debugger.hear("stopped")
        self.assertEqual((stopped.reason, stopped.step), (pb.STOP_STEP, 4))
        self.run_on()
        self.ends()

    def test_verdicts_let_go(self):
        self.first_stop(steps=4)
        self.plan(A, when=AT_ONCE, hold=True, plan=1)
        self.plan(A, when=AT_ONCE, hold=True, plan=2)
        self.plan(W, when=AT_END, hold=True, plan=3, every=2)
        self.run_on()
        for step in range(1, 5):
            ids = []
            for plans in (({1, 2}), ({3} if step % 2 == 0 else set())):
                reports = [self.debugger.hear("watch_report") for _ in plans]
                self.assertEqual({r.plan for r in reports}, plans)
                for report in reports:
                    self.assertEqual(report.step, step)
                    ids.append(report.id)
                    self.debugger.say(watch_verdict=pb.WatchVerdict(report=report.id))
            self.assertEqual(ids, sorted(ids))
        self.ends()

    def test_difference_to_the_step_before(self):
        self.first_stop(steps=4)
        self.plan(A, against_previous=True, atol=0.5,
                  triggers=[pb.Trigger(field=pb.STAT_MEAN_ABS_DELTA, op=pb.LT, value=1)])
        self.run_on()
        first = self.debugger.hear("watch_report")  # could not be checked: there is no step before
        self.assertEqual(first.step, 1)
        self.assertFalse(first.values[0].stats.HasField("difference"))
        self.debugger.never("watch_report", until="goodbye")

    def test_difference_values(self):
        self.first_stop(steps=4)
        self.plan(A, against_previous=True, atol=0.5)
        self.run_on()
        for step in range(1, 5):
            stats = self.debugger.hear("watch_report").values[0].stats
            self.assertEqual(stats.HasField("difference"), step > 1)
            if step > 1:
                self.assertEqual((stats.difference.mean_abs_delta, stats.difference.mismatch), (100, 6))
        self.ends()

    def test_what_has_no_difference_is_counted(self):
        self.first_stop(steps=6)
        self.plan(B, against_previous=True, triggers=[pb.Trigger(field=pb.STAT_UNPAIRED, op=pb.GT, value=0)])
        self.run_on()
        seen = []
        for _ in range(3):
            report = self.debugger.hear("watch_report")
            stats = report.values[0].stats
            seen.append((report.step, stats.HasField("difference"), stats.nan, stats.difference.unpaired))
        # Nothing before it; NaN now; NaN in the step before.
        self.assertEqual(seen, [(1, False, 0, 0), (3, True, 1, 1), (4, True, 0, 1)])
        self.debugger.never("watch_report", until="goodbye")

    def test_plans_are_replaced_and_removed(self):
        self.first_stop(steps=6)
        self.plan(A, plan=7)
        self.run_on(pb.Run.STEP, count=1)
        self.debugger.hear("watch_report")
        self.debugger.hear("stopped")
        self.plan(B, W, plan=7)
        self.run_on(pb.Run.STEP, count=1)
        self.assertEqual([v.node for v in self.debugger.hear("watch_report").values], [B, W])
        self.debugger.hear("stopped")
        self.plan(plan=7)
        self.plan(99, plan=8)  # a node that is not there
        self.run_on()
        self.debugger.never("watch_report", until="goodbye")

    def test_a_lost_debugger_ends_the_waiting(self):
        self.first_stop(steps=500)
        self.plan(A, when=AT_ONCE, hold=True)
        self.run_on()
        self.debugger.hear("watch_report")
        self.debugger.server.stop(0)
        self.assertEqual(self.trainer.wait(timeout=harness.DEADLINE), 0)

    def value(self, request, node, **fields):
        self.debugger.say(fetch=pb.Fetch(request=request, node=node, **fields))
        begin = self.debugger.hear("tensor_begin")
        data = self.debugger.hear("tensor_data").data
        self.assertEqual((begin.request, begin.bytes), (request, len(data)))
        return begin.step, struct.unpack(f"<{len(data) // 4}f", data)

    def test_captured_values(self):
        self.first_stop()
        self.run_on(pb.Run.STEP, count=2)
        self.debugger.hear("stopped")
        self.debugger.say(fetch=pb.Fetch(request=1, node=EAGER))
        self.assertEqual(self.debugger.hear("error").code, pb.RequestError.NO_VALUE)
        self.debugger.say(capture=pb.Capture(nodes=[EAGER]))
        self.run_on(pb.Run.STEP, count=2)
        self.debugger.hear("stopped")
        self.assertEqual(self.value(2, EAGER), (4, (400, 401, 402, 403)))
        self.run_on(pb.Run.TO_NODE, node=EAGER)  # alive while its call lasts
        self.debugger.hear("stopped")
        self.assertEqual(self.value(3, EAGER)[0], 5)
        self.debugger.say(stop_training=pb.StopTraining())
        self.ends(3)

    def test_values_of_some_steps_are_captured(self):
        self.first_stop()

        def at_end_of(step, **bounds):
            self.debugger.say(capture=pb.Capture(first_step=step, last_step=step, **bounds))
            self.run_on(pb.Run.STEP, count=2)
            self.assertEqual(self.debugger.hear("stopped").step, step)

        at_end_of(2, all=True)
        self.assertEqual(self.value(1, EAGER), (2, (200, 201)))
        at_end_of(4, all=True, max_bytes=8)  # it has four elements now
        self.debugger.say(fetch=pb.Fetch(request=2, node=EAGER))
        error = self.debugger.hear("error")
        self.assertEqual(error.code, pb.RequestError.TOO_LARGE)
        self.assertIn("may take 8 bytes", error.text)
        at_end_of(6, nodes=[EAGER])
        self.assertEqual(self.value(3, EAGER)[0], 6)
        self.debugger.say(stop_training=pb.StopTraining())
        self.ends(3)

    def test_a_copy_does_not_outlive_its_step(self):
        self.first_stop()
        self.debugger.say(capture=pb.Capture(all=True, first_step=2, last_step=2))
        self.run_on(pb.Run.STEP, count=3)
        self.debugger.hear("stopped")
        self.debugger.say(fetch=pb.Fetch(request=1, node=EAGER))
        self.assertEqual(self.debugger.hear("error").code, pb.RequestError.NO_VALUE)
        self.debugger.say(stop_training=pb.StopTraining())
        self.ends(3)

    def test_new_shapes_are_told(self):
        self.first_stop()
        self.debugger.say(capture=pb.Capture(nodes=[EAGER]))
        self.run_on(pb.Run.STEP, count=3)
        outputs = self.debugger.hear("graph").new_outputs
        self.assertEqual([(o.node, list(o.output.shape)) for o in outputs], [(EAGER, [3])])
        self.debugger.hear("stopped")
        self.run_on()
        self.ends()

    def test_eager_values_can_be_watched(self):
        self.first_stop()
        self.plan(EAGER, when=AT_ONCE)
        self.run_on()
        for step in range(1, 7):
            value = self.debugger.hear("watch_report").values[0]
            self.assertEqual((value.stats.count, value.stats.max), (step, 101 * step - 1))
        self.ends()

    def test_nan_statistics_on_request(self):
        self.first_stop()
        self.run_on(pb.Run.STEP, count=3)
        self.debugger.hear("stopped")
        self.debugger.say(stats=pb.StatsRequest(request=9, node=B))
        stats = self.debugger.hear("stats").value.stats
        self.assertEqual((stats.nan, stats.max), (1, 305))
        self.assertTrue(math.isnan(self.value(10, B)[1][4]))
        self.run_on()
        self.ends()

    def test_a_welcome_of_another_version_is_not_taken(self):
        self.start(version=2)
        self.assertIsNone(self.debugger.heard.get(timeout=harness.DEADLINE))

    def test_silence_of_the_debugger_is_a_loss(self):
        """Heartbeats every 0.05 s were agreed on and none comes: the trainer is let go, and gradb_wait
        says that no debugger is there, which is this trainer's exit status 4."""
        self.start(keepalive=0.05)
        self.debugger.hear("stopped")
        self.assertEqual(self.trainer.wait(timeout=harness.DEADLINE), 4)


if __name__ == "__main__":
    harness.main()
