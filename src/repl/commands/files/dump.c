// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: dump */
#include <stdlib.h>
#include <string.h>

#include "repl/commands/files/dump_live.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"

static int word_of(const char *text, const char *const *words, const char *what, int *ret,
                   struct gd_err *err)
{
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0) {
            *ret = i;
            return GD_OK;
        }
    }
    return gd_fail(err, GD_EINVAL, "%s: \"%.40s\" is not %s, %s or %s", what, text, words[0],
                   words[1], words[2]);
}

struct dump_words { /* of the command; NULL: not given */
    const char *dir, *selector, *steps, *io, *data, *net;
};

static int read_words(struct command_call *call, struct dump_words *ret, struct gd_err *err)
{
    int rc = inspect_take_option(call, "--steps", &ret->steps, err);

    rc = rc != GD_OK ? rc : inspect_take_option(call, "--io", &ret->io, err);
    rc = rc != GD_OK ? rc : inspect_take_option(call, "--data", &ret->data, err);
    rc = rc != GD_OK ? rc : inspect_take_option(call, "--net", &ret->net, err);
    int on = call->argc > 0 && strcmp(call->argv[0], "on") != 0; /* the index of "on" */
    bool has_selector = call->argc > on && strcmp(call->argv[on], "on") == 0;
    for (int i = 0; rc == GD_OK && i < call->argc; i++) {
        if (strncmp(call->argv[i], "--", 2) == 0 || (i >= on && !has_selector)) {
            rc = gd_fail(err, GD_EUSAGE, "dump: unknown option \"%.60s\"", call->argv[i]);
        }
    }
    ret->dir = on ? call->argv[0] : NULL;
    ret->selector = has_selector ? inspect_join(call, on + 1, call->argc) : NULL;
    return rc;
}

static int check_net(const char *net, struct gd_err *err)
{
    size_t len = strspn(net, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

    return len == 0 || net[len] != '\0' || len > 200
               ? gd_fail(err, GD_EINVAL,
                         "--net: \"%.60s\" is not a name: use letters, digits, '_' and '-'", net)
               : GD_OK;
}

/* An absolute path: the working directory may change. */
static int make_plan(const struct dump_words *words, struct live_dump *d, struct dump_plan *plan,
                     struct gd_err *err)
{
    static const char *const ios[] = {"all", "input", "output", NULL};
    static const char *const datas[] = {"tensor", "statistic", "full", NULL};
    const struct gd_dump_config *config = d->config;
    const char *dir = words->dir ? words->dir : config ? config->path : NULL;
    const char *net = words->net                   ? words->net
                      : config && config->net_name ? config->net_name
                                                   : "net";
    int io = config ? (int)config->io : GD_DUMP_OUTPUT, data = config ? (int)config->data : 0;
    int rc =
        dir ? GD_OK
            : gd_fail(err, GD_EUSAGE, "dump: specify a directory (dump-config does not name one)");

    rc = rc != GD_OK || !words->io ? rc : word_of(words->io, ios, "--io", &io, err);
    rc = rc != GD_OK || !words->data ? rc : word_of(words->data, datas, "--data", &data, err);
    rc = rc != GD_OK ? rc : check_net(net, err);
    if (rc == GD_OK) {
        const char *home = getenv("HOME");
        bool tilde = strncmp(dir, "~/", 2) == 0 && home;
        size_t size = strlen(dir) + (tilde ? strlen(home) : 0) + 1;
        plan->dir = malloc(size);
        plan->net = strdup(net);
        plan->selector = words->selector ? strdup(words->selector) : NULL;
        plan->io = (enum gd_dump_io)io;
        plan->data = (enum gd_dump_data)data;
        if (!plan->dir || !plan->net || (words->selector && !plan->selector)) {
            return gd_fail_nomem(err);
        }
        snprintf(plan->dir, size, "%s%s", tilde ? home : "", tilde ? dir + 1 : dir);
    }
    return rc;
}

static int make_steps(const struct dump_words *words, const struct live_dump *d,
                      struct gd_steps *ret, bool *has, struct gd_err *err)
{
    static const struct gd_step_rules rules = {.all_allowed = true, .blanks = true};
    struct gd_buf text = GD_BUF_INIT(1 << 20);
    int rc = GD_OK;

    *has = words->steps || (d->config && d->config->has_steps);
    if (words->steps) {
        rc = gd_steps_parse(words->steps, &rules, ret, err);
    } else if (*has) {
        gd_steps_text(&d->config->steps, &text);
        rc = gd_steps_parse(gd_buf_text(&text), &rules, ret, err);
        gd_buf_deinit(&text);
    }
    return rc;
}

void dump_live_show_plan(struct command_call *call, const struct live_dump *d)
{
    struct gd_buf text = GD_BUF_INIT(1 << 20);
    cJSON *record = out_record(call->out, "dump");
    bool has_directory = cJSON_HasObjectItem(record, "directory");

    gd_steps_text(&d->steps, &text);
    out_set(record, OUT_IF(!has_directory, OUT_TEXT("directory", d->plan.dir)),
            OUT_BOOL("armed", d->armed), OUT_TEXT("steps", gd_buf_text(&text)));
    out_say(call->out, record,
            "Steps {steps} will be dumped to {directory} when the training reaches them (dump off "
            "cancels).\n");
    gd_buf_deinit(&text);
}

static int dump_off(struct command_call *call, struct live_dump *d)
{
    bool was = d->armed;

    dump_live_clear(d);
    out_set(out_record(call->out, "dump"), OUT_BOOL("armed", false));
    out_printf(call->out, was ? "Dumping is off.\n" : "No steps will be dumped.\n");
    return GD_OK;
}

/* The totals count what was written to all directories. */
static void add_totals(struct live_dump *d, const struct live_dump *once)
{
    d->bytes = once->bytes;
    d->tensors = once->tensors;
    d->rows = once->rows;
    d->steps_done = once->steps_done;
}

/* Replaces the plan that was armed before. */
static void arm_dump(struct live_dump *d, struct live_dump *once)
{
    dump_live_clear(d);
    d->plan = once->plan;
    d->steps = once->steps;
    d->steps_written = once->steps_written;
    d->rank = once->rank;
    d->ranks = once->ranks;
    d->done_sequence = once->done_sequence;
    d->done_session = once->done_session;
    d->used = once->used;
    d->session = once->session;
    d->behind = once->behind;
    d->armed = true;
    *once = (struct live_dump){.config = NULL};
}

static int run_dump(struct command_call *call, struct gd_err *err)
{
    struct dump_words words = {.dir = NULL};
    struct live_dump *d = dump_live_make(call->repl, err), once;
    bool steps = false;
    int rc = d ? repl_check_seal(call->repl, err) : GD_ENOMEM;

    if (rc == GD_OK && call->argc == 1 && strcmp(call->argv[0], "off") == 0) {
        return dump_off(call, d);
    }
    rc = rc != GD_OK ? rc : read_words(call, &words, err);
    if (rc == GD_OK &&
        (!gd_session_is_live(call->session) || gd_session_is_record(call->session))) {
        rc = gd_fail(err, GD_ESTATE, "dump: needs a training that runs under gradb");
    }
    if (rc != GD_OK) {
        return rc;
    }
    once = (struct live_dump){.config = d->config,
                              .bytes = d->bytes,
                              .tensors = d->tensors,
                              .rows = d->rows,
                              .steps_done = d->steps_done,
                              .session = call->session->number,
                              .behind = dump_live_ended(&call->session->stop)};
    rc = make_plan(&words, d, &once.plan, err);
    rc = rc != GD_OK ? rc : make_steps(&words, d, &once.steps, &steps, err);
    if (rc == GD_OK && steps) { /* report errors now rather than at that step */
        rc = dump_live_prepare(call, &once, err);
        add_totals(d, &once);
    }
    if (rc == GD_OK && (!steps || (call->session->stop.at_step_end &&
                                   gd_steps_have(&once.steps, call->session->stop.step)))) {
        rc = dump_live_step(call, &once, err);
        add_totals(d, &once);
    }
    if (rc == GD_OK && steps) {
        arm_dump(d, &once);
        dump_live_show_plan(call, d);
    }
    dump_live_clear(&once);
    return rc;
}

const struct command cmd_dump = {
    .name = "dump",
    .group = "files",
    .usage = "dump DIR [on SELECTOR] [--steps STEPS] [--io output|input|all] "
             "[--data tensor|statistic|full] [--net NAME] | dump off",
    .summary = "Write values to disk in the layout of MindSpore's dumps",
    .help =
        "Without --steps, dump the current values; inside a step, those of the nodes that have\n"
        "run. With --steps, dump each of those steps at its end, without stopping: 3, 3-5, joined\n"
        "by |, or all. \"dump off\" cancels this, \"info dump\" shows the progress. SELECTOR "
        "chooses\n"
        "nodes (default: all). --io output (default) writes outputs, input writes inputs as they\n"
        "are at the end of the step. --data statistic writes statistic.csv instead of elements,\n"
        "full writes both. \"set dump-config FILE\" takes all this from a data_dump.json. \"set\n"
        "dump-bytes\" limits the size: when it is reached, the dump ends and the training\n"
        "continues.\n"
        "\n"
        "Files are in DIR/rank_R/NAME/GRAPH/STEP and appear when they are complete. \"open DIR\"\n"
        "or numpy reads them.",
    .examples = "dump values\n"
                "dump weights_dir on weights --data full\n"
                "dump later --steps 100|200-210\n"
                "dump off",
    .args = {ARG_FILE, ARG_SELECTOR},
    .flags = CMD_NEEDS_SESSION | CMD_NEEDS_STOP,
    .run = run_dump,
};
