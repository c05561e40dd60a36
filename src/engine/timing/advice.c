// SPDX-License-Identifier: GPL-3.0-or-later
/* The table of rules, and those about steps, loaders and waits. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/timing/advice_impl.h"

#define FEWEST_STEPS  8    /* without them nothing is said about steps */
#define DATA_SHARE    0.10 /* of the time of the steps */
#define SLOW_STEP     1.5  /* times the median */
#define SLOW_SHARE    0.05 /* of the steps */
#define SLOW_WAITING  0.8  /* of the slow steps */
#define WAITS_OF_STEP 0.9
#define LAUNCH_SHARE  0.5
#define COMPILES      3

bool advice_say(struct gd_advice *ret, double share, const char *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(ret->text, sizeof(ret->text), format, args);
    va_end(args);
    snprintf(ret->place, sizeof(ret->place), "%s", place ? place : "");
    ret->share = share;
    return true;
}

const char *advice_time(double seconds, char out[32])
{
    if (seconds >= 1) {
        snprintf(out, 32, "%.3g s", seconds);
    } else if (seconds >= 1e-3) {
        snprintf(out, 32, "%.3g ms", 1e3 * seconds);
    } else {
        snprintf(out, 32, "%.3g us", 1e6 * seconds);
    }
    return out;
}

/* ---- the loader ------------------------------------------------------------------------------ */

static void say_queue(const struct gd_time_loader *loader, char *out, size_t size)
{
    out[0] = '\0';
    if (loader->knows_queue && loader->workers != 0 && loader->requests > 0) {
        snprintf(out, size, "; %llu of %llu requests found no batch ready",
                 (unsigned long long)loader->empty, (unsigned long long)loader->requests);
    }
}

/* What to change first, by the settings of the loader. */
static void say_remedy(const struct gd_time_facts *facts, char *out, size_t size)
{
    const struct gd_time_loader *loader = &facts->loader;
    bool torch = strcmp(loader->kind, "DataLoader") == 0;
    long long processors = (long long)facts->processors;
    if (loader->workers < 0) {
        snprintf(out, size, "load the next batch while the current one is computed");
    } else if (torch && loader->workers == 0) {
        snprintf(out, size,
                 "it has num_workers=0, so each batch is loaded between the steps: set num_workers "
                 "(this process may use %lld processors), and persistent_workers=True%s",
                 processors,
                 loader->stream > 0 ? "; each worker iterates the whole IterableDataset unless it "
                                      "takes only its part (torch.utils.data.get_worker_info)"
                                    : "");
    } else if (torch) {
        snprintf(out, size,
                 "it has num_workers=%lld, prefetch_factor=%lld, pin_memory=%s, "
                 "persistent_workers=%s: more workers (this process may use %lld processors) or "
                 "less work for each sample",
                 (long long)loader->workers, (long long)loader->prefetch,
                 loader->pinned > 0 ? "True" : "False", loader->persistent > 0 ? "True" : "False",
                 processors);
    } else {
        snprintf(out, size,
                 "%s, with queues of prefetch_size=%lld: raise num_parallel_workers of the "
                 "slowest operation (this process may use %lld processors)",
                 loader->operations[0] ? loader->operations : "its operations are unknown",
                 (long long)loader->prefetch, processors);
    }
}

static bool advice_on_loader(const struct advice_input *in, struct gd_advice *ret)
{
    const struct gd_time_facts *facts = &in->report->facts;
    char each[32], of[32], queue[96], remedy[448];
    double data = in->part[GD_TIME_DATA];
    if (in->count < FEWEST_STEPS || data < 0 || in->total <= 0 || data < DATA_SHARE * in->total) {
        return false;
    }
    say_queue(&facts->loader, queue, sizeof(queue));
    say_remedy(facts, remedy, sizeof(remedy));
    return advice_say(ret, data / in->total, facts->loader.place,
                      "waiting for data takes %.0f %% of %d steps (%s of %s each%s): the %s is too "
                      "slow: %s",
                      100 * data / in->total, in->count, advice_time(data / in->count, each),
                      advice_time(in->total / in->count, of), queue,
                      facts->loader.kind[0] ? facts->loader.kind : "data loading", remedy);
}

/* The distance between slow steps that most of them have; 0: there is none. */
static int64_t find_period(const struct advice_input *in, double slow)
{
    int64_t distance[GD_TIME_STEPS], before = -1;
    int count = 0;
    for (int i = 0; i < in->count; i++) {
        if (in->step[i].part[GD_TIME_TOTAL] > slow) {
            if (before >= 0) {
                distance[count++] = in->step[i].step - before;
            }
            before = in->step[i].step;
        }
    }
    for (int i = 0; i < count; i++) {
        int same = 0;
        for (int j = 0; j < count; j++) {
            same += distance[j] == distance[i];
        }
        if (count >= 4 && same >= 0.8 * count) {
            return distance[i];
        }
    }
    return 0;
}

static bool advice_on_jitter(const struct advice_input *in, struct gd_advice *ret)
{
    const struct gd_time_loader *loader = &in->report->facts.loader;
    char median[32], often[96] = "";
    double slow = SLOW_STEP * in->median, extra = 0;
    int count = 0, waiting = 0;
    for (int i = 0; i < in->count; i++) {
        const double *part = in->step[i].part;
        if (part[GD_TIME_TOTAL] > slow) {
            count++;
            waiting += part[GD_TIME_DATA] > 0.5 * (part[GD_TIME_TOTAL] - in->median);
            extra += part[GD_TIME_TOTAL] - in->median;
        }
    }
    if (in->count < FEWEST_STEPS || in->median <= 0 || count < 3 ||
        count < SLOW_SHARE * in->count || waiting < SLOW_WAITING * count || loader->workers == 0 ||
        (loader->knows_queue && loader->empty == 0)) {
        return false;
    }
    int64_t period = find_period(in, slow);
    if (period > 1 && period == loader->workers) {
        snprintf(often, sizeof(often), ", one in %lld: it has as many workers", (long long)period);
    } else if (period > 1) {
        snprintf(often, sizeof(often), ", one in %lld", (long long)period);
    }
    return advice_say(ret, extra / in->total, loader->place,
                      "%d of %d steps take more than %.1f times the median (%s), and %d of them "
                      "wait for data%s: the queue of the %s runs empty, so its jitter is the "
                      "training's",
                      count, in->count, SLOW_STEP, advice_time(in->median, median), waiting, often,
                      loader->kind[0] ? loader->kind : "loader");
}

/* ---- waits ----------------------------------------------------------------------------------- */

static bool advice_on_waits(const struct advice_input *in, struct gd_advice *ret)
{
    const struct gd_time_facts *facts = &in->report->facts;
    const struct gd_time_wait *most = NULL;
    double calls = 0, seconds = 0;
    char each[32], often[32];
    int places = 0;
    for (int i = 0; i < facts->wait_count; i++) {
        const struct gd_time_wait *wait = &facts->wait[i];
        double per_step = (double)wait->calls / (double)wait->steps;
        if (wait->steps < 2 || per_step < WAITS_OF_STEP) {
            continue;
        }
        places++;
        calls += per_step;
        seconds += wait->seconds / (double)wait->steps;
        most = !most || wait->calls > most->calls ? wait : most;
    }
    if (!most || in->count < FEWEST_STEPS || in->median <= 0) {
        return false;
    }
    bool is_queued = strcmp(facts->mode, "pynative") == 0 || strcmp(facts->mode, "jit") == 0;
    snprintf(often, sizeof(often),
             calls == 1    ? "once"
             : calls < 100 ? "%.3g times"
                           : "%.0f times",
             calls);
    return advice_say(
        ret, seconds / in->median, most->place,
        "%s per step the program reads a value with %s()%s, %s per step (%.1f %%): %s; %s", often,
        most->function, places > 1 ? " and the like" : "", advice_time(seconds, each),
        100 * seconds / in->median,
        in->is_cpu && !is_queued
            ? "on an accelerator each one waits for all work launched before; on this CPU it "
              "costs no more than that"
            : "each one waits for all work launched before",
        strcmp(most->function, "bool") == 0
            ? "branch on it every N steps, or inside a compiled step"
            : "sum up in a tensor, and read it every N steps");
}

/* ---- how it runs ----------------------------------------------------------------------------- */

/* Of a step. What is between the parts is left out: the script may save or print there. */
static double time_of_passes(const struct advice_input *in)
{
    double forward = in->part[GD_TIME_FORWARD], backward = in->part[GD_TIME_BACKWARD];
    return in->count > 0 && forward >= 0 && backward >= 0 ? (forward + backward) / in->count : 0;
}

static bool advice_on_launches(const struct advice_input *in, struct gd_advice *ret)
{
    const struct gd_time_report *report = in->report;
    uint64_t calls = 0;
    char each[32], of[32], mean[32];
    for (uint32_t i = 0; i < report->op_count; i++) {
        calls += report->op[i].calls;
    }
    double own = time_of_passes(in);
    double per_step = report->timed_steps > 0 ? in->operators / (double)report->timed_steps : 0;
    if (strcmp(report->facts.mode, "pynative") != 0 || in->count < FEWEST_STEPS || calls == 0 ||
        per_step <= 0 || per_step > LAUNCH_SHARE * own) {
        return false;
    }
    return advice_say(
        ret, (own - per_step) * in->count / in->total, "",
        "PyNative mode: the %.0f operators of a step compute for %s, %s each, of the %s that its "
        "forward and backward pass take; the rest is Python and launching: run the step in graph "
        "mode (@jit, or set_context(mode=GRAPH_MODE))",
        (double)calls / (double)report->timed_steps, advice_time(per_step, each),
        advice_time(in->operators / (double)calls, mean), advice_time(own, of));
}

static bool advice_on_sinking(const struct advice_input *in, struct gd_advice *ret)
{
    const struct gd_time_facts *facts = &in->report->facts;
    double rest = in->part[GD_TIME_REST], data = in->part[GD_TIME_DATA];
    double gap = (rest > 0 ? rest : 0) + (data > 0 ? data : 0);
    char each[32];
    if (in->is_cpu || strcmp(facts->sink, "off") != 0 || in->count < FEWEST_STEPS ||
        gap < DATA_SHARE * in->total) {
        return false;
    }
    return advice_say(
        ret, gap / in->total, "",
        "%s of each step pass on the host (%.0f %%) while dataset_sink_mode is False: "
        "Model.train(..., dataset_sink_mode=True) feeds the device by itself",
        advice_time(gap / in->count, each), 100 * gap / in->total);
}

static bool advice_on_compiles(const struct advice_input *in, struct gd_advice *ret)
{
    const struct gd_time_facts *facts = &in->report->facts;
    char each[32];
    if (facts->compiles < COMPILES || facts->compiles_late < COMPILES) {
        return false;
    }
    double seconds = facts->compiled_seconds >= 0 ? facts->compiled_seconds : facts->compile;
    return advice_say(
        ret, -1, facts->compile_place,
        "%s was compiled %lld times, %lld of them after step 2 (%s in all): %s",
        facts->compiled[0] ? facts->compiled : "a function", (long long)facts->compiles,
        (long long)facts->compiles_late, advice_time(seconds, each),
        facts->compile_cause[0] ? facts->compile_cause
                                : "its inputs change shape; pad them to a few shapes");
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct gd_advice_rule rules[] = {
    {"slow-loader", "waiting for data is 10 % of the steps' time", "performance tuning guide"},
    {"jitter", "5 % of the steps take 1.5 times the median, 80 % of those wait for data",
     "performance tuning guide"},
    {"synchronization", "one place reads a value in 90 % of the steps", "PyTorch's tuning guide"},
    {"shapes",
     "matrix products or convolutions with odd sizes are 10 % of the operators' time "
     "(30 % on a CPU)",
     "debugging and tuning guide"},
    {"dtype",
     "one type of number takes 1.5 times as long as another one, for 5 % of the "
     "operators' time",
     "performance tuning guide"},
    {"casts", "10 casts and layout changes per step are 10 % of the operators' time",
     "debugging and tuning guide"},
    {"one-bucket",
     "the tail after the last gradient is 10 % of a step, and a split hides 20 % of it",
     "performance optimization guide"},
    {"small-collectives", "8 calls of less than 64 KiB at one line take 10 % of a step",
     "performance tuning guide"},
    {"blocking-collectives",
     "a line that sends 1 MiB or more and waits at once takes 10 % of a step",
     "performance tuning guide"},
    {"graph-mode", "the operators of PyNative mode fill less than half of both passes",
     "debugging and tuning guide"},
    {"sinking", "the host takes 10 % of the steps' time of a device", "debugging and tuning guide"},
    {"compiles", "3 compilations after step 2", "debugging and tuning guide"},
    {NULL, NULL, NULL},
};
static bool (*const tests[])(const struct advice_input *,
                             struct gd_advice *) = {advice_on_loader,
                                                    advice_on_jitter,
                                                    advice_on_waits,
                                                    advice_on_shapes,
                                                    advice_on_dtypes,
                                                    advice_on_casts,
                                                    advice_on_reduction,
                                                    advice_on_small_collectives,
                                                    advice_on_blocking_collectives,
                                                    advice_on_launches,
                                                    advice_on_sinking,
                                                    advice_on_compiles};
_Static_assert(sizeof(tests) / sizeof(tests[0]) + 1 == sizeof(rules) / sizeof(rules[0]),
               "one test for each rule");

const struct gd_advice_rule *gd_advice_rules(void)
{
    return rules;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A trace does not name its device. */
static bool runs_on_cpu(const struct gd_time_report *report)
{
    bool computes = false;
    for (uint32_t i = 0; i < report->op_count; i++) {
        computes |= report->op[i].lane == GD_LANE_DEVICE;
    }
    return report->facts.device[0] ? strncasecmp(report->facts.device, "cpu", 3) == 0 : !computes;
}

static void gather_steps(const struct gd_time_report *report, struct advice_input *in)
{
    double sorted[GD_TIME_STEPS];
    int count = gd_time_recent(report, in->step, GD_TIME_STEPS);
    in->report = report;
    in->is_cpu = runs_on_cpu(report);
    in->operators = gd_time_operator_seconds(report);
    for (int i = 0; i < count; i++) {
        const struct gd_time_step *step = &in->step[i];
        bool is_first = report->count <= GD_TIME_STEPS && i == 0;
        if (is_first || step->timed || step->part[GD_TIME_TOTAL] < 0) {
            continue;
        }
        for (int part = 0; part < GD_TIMES; part++) {
            in->part[part] =
                in->part[part] < 0 || step->part[part] < 0 ? -1 : in->part[part] + step->part[part];
        }
        sorted[in->count] = step->part[GD_TIME_TOTAL];
        in->step[in->count++] = *step;
    }
    qsort(sorted, (size_t)in->count, sizeof(sorted[0]), compare_doubles);
    in->median = in->count > 0 ? (sorted[(in->count - 1) / 2] + sorted[in->count / 2]) / 2 : 0;
    in->total = in->part[GD_TIME_TOTAL];
}

int gd_time_advice(const struct gd_time_report *report, struct gd_advice *ret)
{
    struct advice_input *in = calloc(1, sizeof(*in));
    int count = 0;
    if (!in) {
        return 0;
    }
    gather_steps(report, in);
    for (int i = 0; rules[i].name && count < GD_MAX_ADVICE; i++) {
        ret[count] = (struct gd_advice){.rule = rules[i].name};
        count += tests[i](in, &ret[count]);
    }
    free(in);
    return count;
}
