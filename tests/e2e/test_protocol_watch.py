# SPDX-License-Identifier: GPL-3.0-or-later
"""Watch plans of gradb.v1 as a trainer sees them: what the debugger asks for, how it answers reports, and what it
does with those that are wrong."""
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from test_protocol import Case, grpc, harness, pb  # noqa: E402

CAN = [pb.CAPABILITY_STATS, pb.CAPABILITY_PREVIOUS, pb.CAPABILITY_NEXT, pb.CAPABILITY_WATCH,
       pb.CAPABILITY_WATCH_EXACT, pb.CAPABILITY_WATCH_COST, pb.CAPABILITY_WATCH_RECORD,
       pb.CAPABILITY_WATCH_SCALAR, pb.CAPABILITY_DEAD_UNITS]
WEIGHT, MATMUL = 1, 2


def healthy(**fields):
    values = dict(count=4, positive=4, min=1, max=2, mean=1.5, abs_mean=1.5, sum_sq=10, std=0.5)
    values.update(fields)
    return pb.Stats(**values)


class Watching(Case):
    def setUp(self):
        super().setUp()
        self.reports = 0

    def armed(self, *commands, capabilities=CAN, plans=1):
        """A trainer that stands and has got the plans of these commands. Returns it and its last plan."""
        trainer = self.standing(capabilities=capabilities)
        for command in commands:
            self.gradb.send(command)
        for _ in range(plans):
            plan = trainer.hear("watch_plan")
        return trainer, plan

    def watched(self, *commands, run="continue", **kwargs):
        """The same, but it runs."""
        trainer, plan = self.armed(*commands, **kwargs)
        self.gradb.send(run)
        self.assertIsNotNone(trainer.hear("run"))
        trainer.say(running=pb.Running(step=1))
        self.record("running")
        return trainer, plan

    def value(self, stats=None, **fields):
        values = dict(node=MATMUL, dtype=pb.FLOAT32, shape=[1, 4], step=2, stats=stats)
        values.update(fields)
        return pb.TensorStats(**values)

    def report(self, trainer, plan, *values, more=False, again=False, **fields):
        self.reports += not again
        parts = dict(id=self.reports, plan=plan, step=2, values=values, holding=True, more=more)
        parts.update(fields)
        trainer.say(watch_report=pb.WatchReport(**parts))

    def goes_on(self, trainer):
        verdict = trainer.hear("watch_verdict")
        self.assertEqual((verdict.report, verdict.stop, verdict.text), (self.reports, False, ""))

    def stops(self, trainer, text):
        verdict = trainer.hear("watch_verdict")
        self.assertEqual((verdict.report, verdict.stop), (self.reports, True))
        self.assertIn(text, verdict.text)

    def said(self, trainer):
        """Everything that the debugger had to say has come when it stops at once."""
        self.gradb.send("interrupt")
        self.assertIsNotNone(trainer.hear("interrupt"))


class Plans(Watching):
    def test_what_is_asked_for(self):
        trainer, plan = self.watched("watch -exact TO on net/MatMul")
        self.assertEqual((plan.when, plan.hold, plan.every), (pb.WatchPlan.BEFORE_NEXT_NODE, True, 0))
        self.assertEqual([(i.node, i.slot, i.scalar) for i in plan.items], [(MATMUL, 0, "")])
        self.assertIn((pb.STAT_NON_FINITE, pb.GT, 0),
                      [(t.field, t.op, t.value) for t in plan.items[0].report_if])
        trainer.stand(step=2)
        self.record("stopped", step=2)
        self.gradb.send("delete 1")
        gone = trainer.hear("watch_plan")
        self.assertEqual((gone.id, list(gone.items)), (plan.id, []))

    def test_shares_tolerances_and_the_step_before(self):
        trainer, plan = self.watched("trace 'zero_percentage > 30 || abs_mean(cur-prev) < 2' on net/weight")
        self.assertEqual((plan.when, plan.hold), (pb.WatchPlan.STEP_END, False))
        self.assertTrue(plan.items[0].options.against_previous)
        triggers = {t.field: t for t in plan.items[0].report_if}
        share = triggers[pb.STAT_ZERO_SHARE]
        self.assertEqual(share.op, pb.GE)
        self.assertLess(share.value, 0.3)  # a little early rather than a little late
        self.assertGreater(share.value, 0.2999)
        change = triggers[pb.STAT_MEAN_ABS_DELTA]
        self.assertEqual((change.op, change.value), (pb.LT, 2))

    def test_what_no_trigger_can_say_is_always_reported(self):
        trainer, plan = self.watched("watch 'abs_mean > 2 * min' on net/weight")
        self.assertEqual(len(plan.items[0].report_if), 0)

    def test_scalars(self):
        trainer, plan = self.watched("watch LN")
        self.assertEqual([(i.node, i.scalar) for i in plan.items], [(0, "loss")])
        self.report(trainer, plan.id, self.value(pb.Stats(count=1, nan=1), node=0, dtype=pb.FLOAT64, shape=[],
                                                 scalar="loss"))
        self.stops(trainer, "loss")
        hit = self.record("hit")
        self.assertEqual((hit["abbreviation"], hit["step"]), ("LN", 2))

    def test_a_trainer_that_cannot_is_not_asked(self):
        trainer = self.standing(capabilities=[pb.CAPABILITY_STATS])
        self.gradb.send("watch TO on net/MatMul")
        self.record("error", command="watch")
        trainer.stand(step=2)
        self.gradb.send("continue")
        self.assertIsNotNone(trainer.hear("run"))


class Reports(Watching):
    def test_hit_and_no_hit(self):
        trainer, plan = self.watched("watch -exact TO on net/MatMul")
        self.report(trainer, plan.id, self.value(healthy()))
        self.goes_on(trainer)
        self.report(trainer, plan.id, self.value(healthy(nan=3)))
        self.stops(trainer, "net/MatMul")
        hit = self.record("hit")
        self.assertEqual((hit["node"], hit["step"], hit["abbreviation"]), ("net/MatMul", 2, "TO"))
        trainer.stand(reason=pb.STOP_WATCH, step=2, at_step_end=False, node=MATMUL, text="as told")
        stopped = self.record("stopped", step=2)
        self.assertEqual((stopped["reason"], stopped["node"]), ("hit", "net/MatMul"))

    def test_a_trace_does_not_stop(self):
        trainer, plan = self.watched("trace -exact TO on net/MatMul")
        self.assertFalse(plan.hold)
        self.report(trainer, plan.id, self.value(healthy(nan=1)), holding=False)
        self.assertTrue(self.record("hit")["trace"])
        self.report(trainer, plan.id, self.value(healthy(nan=1)))  # holds though it should not
        self.goes_on(trainer)

    def test_plans_that_nobody_knows(self):
        trainer, plan = self.watched("watch -exact TO on net/MatMul")
        self.report(trainer, plan.id + 77, self.value(healthy(nan=1)))
        self.goes_on(trainer)
        trainer.stand(step=2)
        self.record("stopped", step=2)
        self.gradb.send("delete 1")
        trainer.hear("watch_plan")
        self.report(trainer, plan.id, self.value(healthy(nan=1)))  # was on its way
        self.goes_on(trainer)

    def test_a_value_on_its_way_while_its_plan_goes(self):
        trainer, plan = self.watched("trace -exact TO on net/MatMul", run="continue &")
        self.gradb.send("watch -exact TO on net/MatMul")  # the value moves to a plan that holds
        other, gone = trainer.hear("watch_plan"), trainer.hear("watch_plan")
        self.assertEqual((other.hold, other.more, len(other.items)), (True, True, 1))
        self.assertEqual((gone.id, gone.more, len(gone.items)), (plan.id, False, 0))
        self.report(trainer, plan.id, self.value(healthy(nan=3)), holding=False)
        self.assertEqual([self.record("hit")["watchpoint"] for _ in range(2)], [1, 2])
        trainer.stand(step=2)
        self.record("stopped", step=2)
        self.gradb.send("continue")
        trainer.say(running=pb.Running(step=3))
        self.report(trainer, plan.id, self.value(healthy(nan=3), step=3), step=3)  # that one is over
        self.goes_on(trainer)
        self.report(trainer, other.id, self.value(healthy(nan=3), step=3), step=3)
        self.stops(trainer, "net/MatMul")

    def test_parts_are_answered_together(self):
        trainer, plan = self.watched("watch -exact TO on net/MatMul")
        plan_id = plan.id
        self.report(trainer, plan_id, self.value(healthy(pos_inf=1)), more=True)
        self.report(trainer, plan_id, self.value(healthy()), more=True, again=True)
        self.report(trainer, plan_id, again=True)
        self.stops(trainer, "net/MatMul")
        self.report(trainer, plan_id, self.value(healthy()), more=True)  # the answer before does not count
        self.report(trainer, plan_id, self.value(healthy()), again=True)
        self.goes_on(trainer)

    def test_records_are_not_judged(self):
        trainer, plan = self.watched("watch -exact TO on net/MatMul")
        self.report(trainer, plan.id, self.value(healthy(nan=1)), holding=False, record=True)
        self.report(trainer, plan.id, self.value(healthy()))
        self.goes_on(trainer)
        trainer.stand(step=2)
        self.record("stopped", step=2)
        self.gradb.send("info watchpoints 1")
        trainer.say(watch_costs=pb.WatchCosts(request=trainer.hear("watch_cost").request))
        self.assertEqual(self.record("watchpoints")["watchpoints"][0]["hits"], 0)

    def test_why_a_value_could_not_be_checked(self):
        words = {pb.RequestError.NO_VALUE: "no value", pb.RequestError.NO_MEMORY: "memory",
                 pb.RequestError.UNSUPPORTED: "numbers", pb.RequestError.FAILED: "no value",
                 pb.RequestError.TOO_LARGE: "memory", 1234: "no value"}
        trainer, plan = self.watched("watch -exact TO on net/MatMul")
        for code, word in words.items():
            self.report(trainer, plan.id, self.value(error_code=code, error="because"))
            self.goes_on(trainer)
            hit = self.record("hit")
            self.assertNotEqual(hit["error"], 0)
            self.assertIn(word, hit["reason"])

    def test_values_that_were_not_captured(self):
        trainer, plan = self.watched("watch -exact TO on net/MatMul",
                                     capabilities=CAN + [pb.CAPABILITY_CAPTURE])
        self.report(trainer, plan.id, self.value(error_code=pb.RequestError.NO_VALUE, error="gone"))
        self.goes_on(trainer)
        self.assertEqual(self.record("hit")["error"], 256)


class Hostile(Watching):
    def test_values_that_make_no_sense(self):
        trainer, plan = self.watched("watch -exact TO on net/MatMul")
        odd = [self.value(healthy(), node=node) for node in (0, 3, 2**32 - 1)]
        odd += [self.value(healthy(), slot=4000000000), self.value(healthy(), dtype=99), self.value(healthy(), dtype=-5),
                self.value(healthy(), step=-2**63), self.value(healthy(), cost_ns=2**64 - 1),
                self.value(healthy(), node=0, scalar="loss"), self.value(healthy(), scalar="x" * 100000),
                self.value(pb.Stats()), pb.TensorStats(),
                self.value(healthy(in_range=[2**64 - 1] * 5000, histogram=[1] * 5000, zero=2**64 - 1,
                                   min=5, max=-5, units=1, dead_units=2**64 - 1))]
        self.report(trainer, plan.id, *odd)
        self.goes_on(trainer)
        self.report(trainer, plan.id, *odd, step=-2**63)
        self.goes_on(trainer)
        self.report(trainer, plan.id, self.value(healthy(nan=1)))  # it is still there
        self.stops(trainer, "net/MatMul")

    def test_a_statistic_that_is_nan_proves_a_nan(self):
        trainer, plan = self.watched("watch -exact TO on net/MatMul")
        self.report(trainer, plan.id, self.value(healthy(min=math.nan)))
        self.stops(trainer, "net/MatMul")

    def test_a_report_of_very_many_values(self):
        trainer, plan = self.watched("watch -exact TO on net/MatMul")
        value = self.value(healthy())
        self.report(trainer, plan.id, *([value] * 10000), self.value(healthy(nan=1)), more=True)
        self.report(trainer, plan.id, again=True)
        self.stops(trainer, "net/MatMul")

    def test_a_malformed_shape_ends_the_session(self):
        for shape in ([-1], [2] * 33, [2**62, 2**62]):
            with self.subTest(shape=shape):
                self.setUp()
                trainer, plan = self.watched("watch -exact TO on net/MatMul")
                self.report(trainer, plan.id, self.value(healthy(), shape=shape))
                self.assertIn(trainer.status()[0], (grpc.StatusCode.INVALID_ARGUMENT,
                                                    grpc.StatusCode.RESOURCE_EXHAUSTED))

    def test_parts_without_end_are_forgotten(self):
        trainer, plan = self.watched("watch -exact TO on net/MatMul")
        for _ in range(20):
            self.report(trainer, plan.id, self.value(healthy(nan=1)), more=True)
        self.report(trainer, plan.id, self.value(healthy()))
        self.goes_on(trainer)


class Costs(Watching):
    def ask(self, trainer):
        self.gradb.send("info watchpoints")
        return trainer.hear("watch_cost").request

    def cost(self, plan, ns, **fields):
        return pb.PlanCost(plan=plan.id, item_ns=ns, item_runs=[2] * len(ns), **fields)

    def total(self):
        return self.record("watchpoints")["total"]

    def test_they_are_shared_among_the_watchpoints_and_add_up(self):
        trainer, plan = self.armed("watch -exact TO on net/MatMul", "watch -exact 'max > 1e9' on net/MatMul",
                                     plans=2)
        request = self.ask(trainer)
        trainer.say(watch_costs=pb.WatchCosts(request=request, plans=[
            self.cost(plan, [1001], wait_ns=500, reports=3, report_bytes=301)]))
        found = self.record("watchpoints")
        rows = found["watchpoints"]
        self.assertEqual(found["total"]["compute_ns"], 1001)
        self.assertEqual(sum(row["cost_ns"] for row in rows), 1001)
        self.assertEqual(sum(row["cost_bytes"] for row in rows), 301)
        self.assertTrue(all(row["cost_ns"] >= 500 for row in rows))
        self.assertEqual((found["total"]["wait_ns"], found["total"]["reports"]), (500, 3))

    def test_answers_that_do_not_fit(self):
        trainer, plan = self.armed("watch -exact TO on net/MatMul")
        good = self.cost(plan, [70])
        wrong = [pb.PlanCost(plan=plan.id + 1, item_ns=[5], item_runs=[5]), self.cost(plan, []),
                 self.cost(plan, [1, 2, 3]), pb.PlanCost(plan=plan.id, item_ns=[5])]
        trainer.say(watch_costs=pb.WatchCosts(request=4711, plans=[good]))  # nobody asked
        request = self.ask(trainer)
        trainer.say(watch_costs=pb.WatchCosts(request=request + 1, plans=[good]))
        trainer.say(watch_costs=pb.WatchCosts(request=request, plans=wrong + [good, good]))
        self.assertEqual(self.total()["compute_ns"], 70)
        trainer.say(watch_costs=pb.WatchCosts(request=request, plans=[good]))  # twice
        request = self.ask(trainer)
        trainer.say(watch_costs=pb.WatchCosts(request=request))
        self.assertEqual(self.total()["compute_ns"], 0)

    def test_refused_or_lost(self):
        trainer, plan = self.armed("watch -exact TO on net/MatMul")
        request = self.ask(trainer)
        trainer.say(error=pb.RequestError(request=request, code=pb.RequestError.NO_MEMORY, text="none left"))
        self.record("watchpoints")
        self.ask(trainer)
        trainer.close()
        self.record("watchpoints")

    def test_a_trainer_that_does_not_count(self):
        trainer, plan = self.armed("watch -exact TO on net/MatMul",
                                     capabilities=[c for c in CAN if c != pb.CAPABILITY_WATCH_COST])
        self.gradb.send("info watchpoints")
        self.assertEqual(len(self.record("watchpoints")["watchpoints"]), 1)


if __name__ == "__main__":
    harness.main()
