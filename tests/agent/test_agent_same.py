# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that the program says are the same as others: what is taken over, and what is looked at all the same.
same_trainer.c lies: figures tell by themselves whose elements they are of."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from fake_debugger import AT_END, AT_ONCE, Case, harness, pb  # noqa: E402

TRAINER = harness.BUILD / "tests" / "agent" / "same_trainer"
(FIRST, VIEW, AGAIN, NAN, LONGER, WIDER, ODD, ECHO, TWO, FAR, FAR_VIEW, HERE, THERE, SHAPELESS) = range(1, 15)
NEVER = [pb.Trigger(field=pb.STAT_COUNT, op=pb.GT, value=1e9)]
NOT_FINITE = [pb.Trigger(field=pb.STAT_NAN, op=pb.GT, value=0)]


def least(node, step):
    """Of the elements of a node."""
    return 1000 * node + 10 * step


class Same(Case):
    def begin(self, steps=8):
        self.trainer = subprocess.Popen([str(TRAINER), f"127.0.0.1:{self.debugger.port}", str(steps)],
                                        env=dict(os.environ, GRADB_THREADS="1"))
        self.addCleanup(self.trainer.kill)
        self.debugger.hear("hello")
        self.debugger.say(welcome=pb.Welcome(version=1, stop=True, debugger_id=b"0123456789abcdef", keepalive=20))
        self.assertEqual(len(self.debugger.hear("graph").nodes), SHAPELESS)
        self.debugger.hear("stopped")

    def send(self, *nodes, plan=1, when=AT_ONCE, report_if=(), slot=0, hold=False, record=False, every=0, **options):
        items = [pb.WatchItem(node=n, slot=slot, report_if=report_if, options=pb.StatsOptions(**options))
                 for n in nodes]
        self.debugger.say(watch_plan=pb.WatchPlan(id=plan, items=items, when=when, hold=hold, record=record,
                                                  every=every))

    def steps(self, count):
        self.run_on(pb.Run.STEP, count=count)
        return self.until_stop()

    def until_stop(self):
        """What is reported until the trainer stands: (plan, step, node, slot) -> value."""
        values = {}
        while True:
            message = self.debugger.heard.get(timeout=harness.DEADLINE)
            self.assertIsNotNone(message, "the trainer ended")
            if message.WhichOneof("msg") == "stopped":
                return values
            if message.WhichOneof("msg") == "watch_report":
                report = message.watch_report
                values.update({(report.plan, report.step, v.node, v.slot): v for v in report.values})

    def whose(self, values, node, step, plan=1, slot=0):
        """The node whose elements were looked at for this one."""
        value = values[plan, step, node, slot]
        self.assertEqual((value.step, value.error), (step, ""))
        return next(n for n in range(1, SHAPELESS + 1) if value.stats.min == least(n, step))

    def runs(self):
        self.debugger.say(watch_cost=pb.WatchCostRequest(request=1))
        return {plan.plan: list(plan.item_runs) for plan in self.debugger.hear("watch_costs").plans}

    def end(self):
        self.run_on()
        self.ends()

    def test_figures_are_taken_along_a_chain_and_the_rest_is_its_own(self):
        nodes = FIRST, VIEW, AGAIN, NAN, LONGER, WIDER
        self.begin()
        self.send(*nodes, report_if=NEVER, record=True)
        values = self.steps(4)
        for step in (2, 3, 4):
            self.assertEqual([self.whose(values, n, step) for n in nodes], [FIRST] * 4 + [LONGER, WIDER])
            told = [(list(values[1, step, n, 0].shape), values[1, step, n, 0].dtype) for n in nodes]
            self.assertEqual(told, [([2, 3], pb.FLOAT32), ([3, 2], pb.FLOAT32), ([6], pb.FLOAT32),
                                    ([6], pb.FLOAT32), ([7], pb.FLOAT32), ([6], pb.FLOAT64)])
            first = values[1, step, FIRST, 0].stats
            for node in (VIEW, AGAIN, NAN):
                self.assertEqual(values[1, step, node, 0].stats, first)
        self.assertEqual(self.runs()[1][0], 4)
        self.assertEqual(self.runs()[1][4:], [4, 4])
        self.assertLess(max(self.runs()[1][1:4]), 4)
        self.end()

    def test_of_this_step_and_of_the_last_time_in_it(self):
        self.begin()
        self.send(ODD, ECHO, report_if=NEVER, record=True)
        self.send(ECHO, plan=2)
        values = self.steps(6)
        for step in (3, 5):
            self.assertEqual(values[2, step, ECHO, 0].stats.min, 0)
        for step in (2, 4, 6):
            self.assertEqual(self.whose(values, ECHO, step, plan=2), ECHO)
        self.end()

    def test_what_a_plan_in_steps_that_are_due_saw_is_not_of_others(self):
        self.begin()
        self.send(FIRST, every=2)
        self.send(VIEW, plan=2)
        values = self.steps(5)
        self.assertEqual([self.whose(values, VIEW, step, plan=2) for step in (3, 4, 5)], [VIEW, FIRST, VIEW])
        self.end()

    def test_other_options_are_other_figures(self):
        self.begin()
        middle = [pb.Range(lo=0, hi=1500)]
        self.send(FIRST)
        self.send(VIEW, plan=2, ranges=middle)
        self.send(FIRST, VIEW, plan=3, against_previous=True)
        self.send(FIRST, VIEW, plan=4, dead_steps=2)
        self.send(FIRST, plan=5, when=AT_END, ranges=middle)  # at another moment
        values = self.steps(3)
        for plan in (2, 3, 4):
            self.assertEqual(self.whose(values, VIEW, 3, plan=plan), VIEW)
        self.send(FIRST, plan=6, ranges=middle)
        values = self.steps(2)
        self.assertEqual(self.whose(values, VIEW, 5, plan=2), FIRST)
        self.assertEqual(list(values[2, 5, VIEW, 0].stats.in_range), [6])
        self.end()

    def test_histograms_are_made_from_the_elements(self):
        self.begin()
        self.send(FIRST, VIEW, histogram=pb.Bins(lo=2000, hi=2100, count=2))
        stats = self.steps(3)[1, 3, VIEW, 0].stats
        self.assertEqual((stats.min, list(stats.histogram)), (least(FIRST, 3), [6, 0]))
        self.end()

    def test_that_all_is_finite_is_less_than_statistics(self):
        self.begin()
        self.send(FIRST, VIEW, NAN, report_if=NOT_FINITE)
        self.send(AGAIN, plan=2)
        values = self.steps(3)
        self.assertIn((1, 1, NAN, 0), values)  # nothing was remembered yet
        self.assertNotIn((1, 2, NAN, 0), values)
        self.assertNotIn((1, 3, NAN, 0), values)
        self.assertEqual(self.whose(values, AGAIN, 3, plan=2), AGAIN)
        self.send(FIRST, plan=3)  # now there are statistics
        values = self.steps(3)
        self.assertNotIn((1, 6, NAN, 0), values)
        self.assertEqual(self.whose(values, AGAIN, 6, plan=2), FIRST)
        self.end()

    def test_slots_of_one_node_and_nodes_that_do_not_exist(self):
        self.begin()
        items = [pb.WatchItem(node=TWO, slot=slot) for slot in (0, 1)]
        self.debugger.say(watch_plan=pb.WatchPlan(id=1, items=items, when=AT_ONCE))
        values = self.steps(3)
        self.assertEqual(self.whose(values, TWO, 3), TWO)
        self.assertEqual(self.whose(values, TWO, 3, slot=1), TWO)  # its own are negative
        self.end()

    def test_values_of_the_source(self):
        nodes = FIRST, FAR, FAR_VIEW, HERE, THERE, SHAPELESS
        self.begin()
        self.send(*nodes)
        values = self.steps(3)
        self.assertEqual([self.whose(values, n, 3) for n in nodes], [FIRST, FAR, FAR, HERE, THERE, SHAPELESS])
        self.end()

    def test_plans_that_come_and_go_between_the_two(self):
        self.begin()
        self.send(FIRST, hold=True)
        self.send(VIEW, AGAIN, plan=2)
        for _ in range(2):
            self.run_on(pb.Run.STEP, count=1)
            self.debugger.say(watch_verdict=pb.WatchVerdict(report=self.debugger.hear("watch_report").id))
            self.until_stop()
        self.run_on(pb.Run.STEP, count=1)
        report = self.debugger.hear("watch_report")
        self.send(VIEW, plan=2)
        self.debugger.say(watch_verdict=pb.WatchVerdict(report=report.id))
        self.assertEqual(self.whose(self.until_stop(), VIEW, 3, plan=2), FIRST)
        self.run_on(pb.Run.STEP, count=1)
        report = self.debugger.hear("watch_report")
        self.send(FIRST)  # what the old one saw went with it
        self.debugger.say(watch_verdict=pb.WatchVerdict(report=report.id))
        self.assertEqual(self.whose(self.until_stop(), VIEW, 4, plan=2), VIEW)
        self.assertEqual(self.whose(self.steps(2), VIEW, 6, plan=2), FIRST)
        self.end()


if __name__ == "__main__":
    harness.main()
