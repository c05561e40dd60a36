// SPDX-License-Identifier: MIT
/* charlm: trains a character-level transformer language model, by default on its own sources. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "trace.h"
#include "train.h"

#define EXIT_USAGE 2

struct program {
    struct train_options train;
    int64_t steps, log_every;
    const char *checkpoint_dir;
    bool checkpoint_last;
};

enum option_number {
    OPT_LAYERS = 256,
    OPT_HEADS,
    OPT_WIDTH,
    OPT_CONTEXT,
    OPT_BATCH,
    OPT_STEPS,
    OPT_LR,
    OPT_SEED,
    OPT_THREADS,
    OPT_ACTIVATION,
    OPT_FAULT,
    OPT_DATA,
    OPT_LOG_EVERY,
    OPT_CHECKPOINT_DIR,
    OPT_CHECKPOINT_LAST,
    OPT_HELP,
};

static const struct option options[] = {
    {"layers", required_argument, NULL, OPT_LAYERS},
    {"heads", required_argument, NULL, OPT_HEADS},
    {"width", required_argument, NULL, OPT_WIDTH},
    {"context", required_argument, NULL, OPT_CONTEXT},
    {"batch", required_argument, NULL, OPT_BATCH},
    {"steps", required_argument, NULL, OPT_STEPS},
    {"lr", required_argument, NULL, OPT_LR},
    {"seed", required_argument, NULL, OPT_SEED},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"activation", required_argument, NULL, OPT_ACTIVATION},
    {"fault", required_argument, NULL, OPT_FAULT},
    {"data", required_argument, NULL, OPT_DATA},
    {"log-every", required_argument, NULL, OPT_LOG_EVERY},
    {"checkpoint-dir", required_argument, NULL, OPT_CHECKPOINT_DIR},
    {"checkpoint-last", no_argument, NULL, OPT_CHECKPOINT_LAST},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static const char *const activations[] = {"gelu", "relu", "tanh"};

static void print_help(void)
{
    printf("usage: charlm [OPTION]...\n"
           "Train a character-level transformer language model on a text.\n\n"
           "  --layers N          number of blocks (2)\n"
           "  --heads N           attention heads; must divide the width (4)\n"
           "  --width N           values per position (64)\n"
           "  --context N         positions (64)\n"
           "  --batch N           windows of text per step (8)\n"
           "  --steps N           steps to train (1000)\n"
           "  --lr X              learning rate (0.003)\n"
           "  --seed N            seed of weights and batches (1)\n"
           "  --threads N         compute threads (number of processors, at most 4)\n"
           "  --activation NAME   gelu, relu or tanh (gelu)\n"
           "  --data PATH         a text file, or a directory of .c and .h files\n"
           "  --log-every N       print every N steps (10)\n"
           "  --checkpoint-dir D  directory for checkpoints that the debugger requests (.)\n"
           "  --checkpoint-last   also write a checkpoint after the last step\n"
           "  --fault NAME        train with a bug:\n");
    for (int i = FAULT_NONE + 1; i < FAULT_COUNT; i++) {
        printf("    %-16s  %s\n", fault_name((enum fault)i), fault_help((enum fault)i));
    }
}

static void report_usage(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void report_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("charlm: ", stderr);
    vfprintf(stderr, format, args);
    fputs("\nTry: charlm --help\n", stderr);
    va_end(args);
    exit(EXIT_USAGE);
}

static int64_t parse_number(const char *name, const char *text, int64_t min, int64_t max)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < min || value > max) {
        report_usage("--%s takes a whole number from %" PRId64 " to %" PRId64 ", not '%s'", name,
                     min, max, text);
    }
    return value;
}

static float parse_rate(const char *name, const char *text)
{
    char *end;
    float value = strtof(text, &end);
    if (end == text || *end != '\0' || !isfinite(value) || value < 0.0f) {
        report_usage("--%s takes a number of at least 0, not '%s'", name, text);
    }
    return value;
}

static enum activation parse_activation(const char *text)
{
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, activations[i]) == 0) {
            return (enum activation)i;
        }
    }
    report_usage("--activation takes gelu, relu or tanh, not '%s'", text);
}

static enum fault parse_fault(const char *text)
{
    enum fault found = fault_find(text);
    if (found == FAULT_COUNT) {
        report_usage("unknown fault '%s': charlm --help lists them", text);
    }
    return found;
}

static void apply_option(struct program *p, int option, const char *text)
{
    struct config *c = &p->train.config;
    switch (option) {
    case OPT_LAYERS: c->layers = (size_t)parse_number("layers", text, 1, 64); break;
    case OPT_HEADS: c->heads = (size_t)parse_number("heads", text, 1, 64); break;
    case OPT_WIDTH: c->width = (size_t)parse_number("width", text, 1, 8192); break;
    case OPT_CONTEXT: c->context = (size_t)parse_number("context", text, 1, 4096); break;
    case OPT_BATCH: c->batch = (size_t)parse_number("batch", text, 1, 1024); break;
    case OPT_STEPS: p->steps = parse_number("steps", text, 1, INT64_C(1000000000000)); break;
    case OPT_LR: p->train.lr = parse_rate("lr", text); break;
    case OPT_SEED: c->seed = (uint64_t)parse_number("seed", text, 0, INT64_MAX); break;
    case OPT_THREADS: p->train.threads = (int)parse_number("threads", text, 1, 256); break;
    case OPT_ACTIVATION: c->activation = parse_activation(text); break;
    case OPT_FAULT: c->fault = parse_fault(text); break;
    case OPT_DATA: p->train.data = text; break;
    case OPT_LOG_EVERY: p->log_every = parse_number("log-every", text, 1, INT64_MAX); break;
    case OPT_CHECKPOINT_DIR: p->checkpoint_dir = text; break;
    case OPT_CHECKPOINT_LAST: p->checkpoint_last = true; break;
    default: break;
    }
}

static void parse_options(struct program *p, int argc, char **argv)
{
    int option;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == OPT_HELP || option == 'h') {
            print_help();
            exit(0);
        }
        if (option == '?') {
            fputs("Try: charlm --help\n", stderr);
            exit(EXIT_USAGE);
        }
        apply_option(p, option, optarg);
    }
    if (optind < argc) {
        report_usage("unexpected argument '%s'", argv[optind]);
    }
    const struct config *c = &p->train.config;
    if (c->width % c->heads != 0) {
        report_usage("--heads %zu must divide --width %zu", c->heads, c->width);
    }
}

static double get_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Prints and flushes one line. Only to stdout: a debugger that started this program reads it
 * there. */
static void print_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void print_line(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

static void run_step(struct train *t, struct trace *trace)
{
    trace_step_begin(trace, t->step + 1);
    trace_phase(trace, PHASE_FORWARD);
    train_forward(t);
    trace_scalar(trace, "loss", (double)t->loss);
    trace_phase(trace, PHASE_BACKWARD);
    train_backward(t);
    trace_phase(trace, PHASE_OPTIMIZER);
    train_update(t);
    trace_scalar(trace, "lr", (double)t->lr);
    trace_scalar(trace, "grad_norm", (double)t->grad_norm);
    trace_scalar(trace, "epoch", (double)train_epoch(t, t->step));
    trace_scalar(trace, "batch", (double)train_batch(t, t->step));
    trace_step_end(trace);
}

static void write_checkpoint(const struct train *t, const char *dir, struct trace *trace)
{
    char text[1100];
    int rc = train_save(t, dir, text, sizeof(text));
    print_line(rc == 0 ? "checkpoint %s" : "charlm: %s", text);
    trace_checkpoint(trace, text, rc == 0);
}

static bool is_in_epoch(const struct train *t, int64_t epoch)
{
    return train_epoch(t, t->step + 1) == epoch;
}

static void train_loop(const struct program *p, struct train *t, struct trace *trace)
{
    double start = get_seconds();
    bool stopped = false;
    int64_t epoch = 0;
    trace_happened(trace, "begin", 0, NULL);
    while (t->step < p->steps && !stopped) {
        if (!is_in_epoch(t, epoch)) {
            epoch = train_epoch(t, t->step + 1);
            trace_happened(trace, "epoch-begin", epoch, NULL);
        }
        run_step(t, trace);
        if (!is_in_epoch(t, epoch)) {
            trace_happened(trace, "epoch-end", epoch, NULL);
        }
        stopped = trace_wants_stop(trace);
        if (t->step % p->log_every == 0 || t->step == 1 || t->step == p->steps || stopped) {
            print_line("step %" PRId64 " loss %.4f lr %.3g", t->step, (double)t->loss,
                       (double)t->lr);
        }
        if (trace_wants_checkpoint(trace)) {
            write_checkpoint(t, p->checkpoint_dir, trace);
        }
    }
    double took = get_seconds() - start;
    if (p->checkpoint_last) {
        write_checkpoint(t, p->checkpoint_dir, trace);
        trace_happened(trace, "checkpoint", epoch, p->checkpoint_dir);
    }
    if (is_in_epoch(t, epoch)) {
        trace_happened(trace, "epoch-end", epoch, NULL);
    }
    trace_happened(trace, "end", 0, NULL);
    print_line("%s after %" PRId64 " steps, loss %.4f, %.1f steps/s",
               stopped ? "stopped" : "finished", t->step, (double)t->loss, (double)t->step / took);
}

static double get_rate(void *ctx)
{
    return train_rate(ctx);
}

static void set_rate(void *ctx, double rate)
{
    train_set_rate(ctx, rate);
}

int main(int argc, char **argv)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct program p = {
        .train = TRAIN_DEFAULTS, .steps = 1000, .log_every = 10, .checkpoint_dir = "."};
    p.train.threads = processors < 1 ? 1 : processors > 4 ? 4 : (int)processors;
    parse_options(&p, argc, argv);
    struct train *t;
    char why[1200];
    if (train_create(&p.train, &t, why, sizeof(why)) != 0) {
        fprintf(stderr, "charlm: %s\n", why);
        return 1;
    }
    struct trace *trace = trace_open(t->graph, &(struct trace_rate){t, get_rate, set_rate});
    print_line("charlm: %zu characters of text, %zu different; %zu parameters, %zu operators",
               t->data.count, t->data.vocabulary_size, model_parameters(t->model),
               t->graph->op_count);
    train_loop(&p, t, trace);
    trace_close(trace, NULL);
    train_destroy(t);
    return 0;
}
