// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: check-config */
#include "repl/commands/files/dump_live.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"

struct config_report {
    struct command_call *call;
    const char *path;
    cJSON *list;
    char first[256];
};

static void tell_mistake(void *ctx, unsigned long line, const char *text)
{
    struct config_report *t = ctx;
    cJSON *item = t->list ? out_push(t->list) : NULL;

    if (t->first[0] == '\0') {
        snprintf(t->first, sizeof(t->first), "%.200s", out_safe(t->call, text));
    }
    out_set(item, OUT_INT("line", line), OUT_TEXT("text", text));
    out_say(t->call->out, NULL, "{path}[:{line}]: {text}\n", OUT_TEXT("path", t->path),
            OUT_INT("line", line), OUT_TEXT("text", text));
}

/* Reports valid keys that "dump" ignores. */
static void tell_unused_keys(struct command_call *call, const struct gd_dump_config *config)
{
    if (config && config->one_step) {
        out_printf(call->out, "\"iteration\" is a number, as in MindSpore 1.0 to 1.2 (0: all "
                              "steps); later releases need a string: \"all\", \"0|3-5\".\n");
    }
    if (config && config->unused.len > 0) {
        out_printf(call->out, "Ignored by \"dump\": %s.\n",
                   out_safe(call, gd_buf_text(&config->unused)));
    }
}

int repl_dump_set_config(struct command_call *call, const char *path, struct gd_err *err)
{
    struct live_dump *d = dump_live_make(call->repl, err);
    struct config_report t = {.call = call, .path = path};
    struct gd_dump_config *config = NULL;
    size_t bad = 0;
    int rc = d ? GD_OK : GD_ENOMEM;

    if (rc == GD_OK && path[0] != '\0') {
        rc = repl_check_seal(call->repl, err);
        rc = rc != GD_OK ? rc : gd_dump_config_read(path, tell_mistake, &t, &bad, &config, err);
        if (rc == GD_OK && bad > 0) {
            rc = gd_fail(err, GD_EINVAL, "%.200s: %zu errors; the first: %s", path, bad, t.first);
        }
    }
    if (rc == GD_OK) {
        gd_dump_config_free(d->config);
        d->config = config;
        tell_unused_keys(call, config);
    }
    return rc;
}

static int run_check_config(struct command_call *call, struct gd_err *err)
{
    struct config_report t = {.call = call};
    struct gd_dump_config *config = NULL;
    size_t bad = 0;
    int rc = repl_check_seal(call->repl, err);

    if (rc != GD_OK) {
        return rc;
    }
    t.path = call->argv[0];
    cJSON *record = out_record(call->out, "check-config");
    out_set(record, OUT_TEXT("file", t.path));
    t.list = out_list(record, "mistakes");
    rc = gd_dump_config_read(t.path, tell_mistake, &t, &bad, &config, err);
    if (rc == GD_OK && bad > 0) {
        out_printf(call->out, "%s.\n", inspect_plural(call, bad, "mistake"));
        repl_set_failed(call->repl, GD_EINVAL);
    } else if (rc == GD_OK) {
        out_printf(call->out, "%s: keys and values are valid (%s).\n", out_safe(call, t.path),
                   config->is_acl ? "a CANN configuration" : "a MindSpore data_dump.json");
        tell_unused_keys(call, config);
        out_set(record, OUT_TEXT("unused", gd_buf_text(&config->unused)));
    }
    gd_dump_config_free(config);
    return rc;
}

const struct command cmd_check_config = {
    .name = "check-config",
    .group = "files",
    .usage = "check-config FILE",
    .summary = "Report every error in a data_dump.json or acl.json",
    .help =
        "Check every key, every value and their combinations; report each error with its line.\n"
        "gradb --batch exits with status 1 if there is an error.",
    .examples = "check-config data_dump.json",
    .args = {ARG_FILE},
    .words = {1, 1, "specify one file"},
    .run = run_check_config,
};
