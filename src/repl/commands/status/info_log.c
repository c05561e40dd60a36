// SPDX-License-Identifier: GPL-3.0-or-later
/* `info log`: lines that the training printed, or of an opened log; of MindSpore's own messages
 * those of a submodule and level. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dump/dump_target.h"
#include "dump/mindspore/glog.h"
#include "engine/log/log_level.h"
#include "repl/commands/status/info.h"
#include "repl/core/repl_impl.h"
#include "repl/launch/launch.h"
#include "repl/values/inspect.h"

#define MAX_LINE 65536
#define MOST     100000 /* lines of a file that are shown with -a */

struct filter {
    const char *module; /* NULL: all */
    int least;          /* enum gd_glog_level; -1: all lines */
};

struct lines { /* the last `room` that pass; a ring */
    char **line;
    size_t room, count, total; /* total: with those that were dropped */
};

static bool is_wanted(const struct filter *filter, const char *text)
{
    struct gd_glog_line line;

    if (!filter->module && filter->least < 0) {
        return true;
    }
    return gd_glog_parse(text, &line) && (int)line.level >= filter->least &&
           (!filter->module || (strlen(filter->module) == line.module_len &&
                                strncmp(filter->module, line.module, line.module_len) == 0));
}

static void add_line(struct lines *lines, const char *text)
{
    size_t at = lines->total++ % lines->room;

    free(lines->count < lines->room ? NULL : lines->line[at]);
    lines->count += lines->count < lines->room;
    lines->line[at] = strdup(text);
}

static int read_file(const char *path, const struct filter *filter, struct lines *lines,
                     struct gd_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat there;
    FILE *file =
        fd >= 0 && fstat(fd, &there) == 0 && S_ISREG(there.st_mode) ? fdopen(fd, "r") : NULL;
    char *text = malloc(MAX_LINE);

    if (!file || !text) {
        free(text);
        if (fd >= 0 && !file) {
            close(fd);
        } else if (file) {
            fclose(file);
        }
        return gd_fail(err, GD_EIO, "cannot read %.300s", path);
    }
    while (fgets(text, MAX_LINE, file)) {
        text[strcspn(text, "\r\n")] = '\0';
        if (is_wanted(filter, text)) {
            add_line(lines, text);
        }
    }
    free(text);
    fclose(file);
    return GD_OK;
}

static int take_filter(struct command_call *call, struct filter *ret, struct gd_err *err)
{
    const char *module = NULL, *level = NULL;
    enum gd_log_level least = GD_LOG_UNSET;
    int index = 0;
    int rc = inspect_take_option(call, "-module", &module, err);

    rc = rc != GD_OK ? rc : inspect_take_option(call, "-level", &level, err);
    rc = rc != GD_OK || !module ? rc : gd_log_module_find(module, &index, err);
    rc = rc != GD_OK || !level ? rc : gd_log_level_find(level, &least, err);
    *ret = (struct filter){.module = module ? gd_log_module_name(index) : NULL,
                           .least = (int)least - (int)GD_LOG_DEBUG};
    return rc;
}

/* The opened logs of the current session; false: it has none. */
static int read_opened(struct command_call *call, const struct filter *filter, struct lines *lines,
                       bool *any, struct gd_err *err)
{
    const struct gd_session *session = call->debugger->current;
    const struct gd_catalog *catalog = session ? gd_catalog_of(session) : NULL;
    size_t count = 0;
    const struct gd_catalog_fact *facts = catalog ? gd_catalog_facts(catalog, &count) : NULL;
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        if (strcmp(facts[i].name, GD_FACT_LOG) == 0) {
            *any = true;
            rc = read_file(facts[i].value, filter, lines, err);
        }
    }
    return rc;
}

static void read_program(struct command_call *call, const struct filter *filter,
                         struct lines *lines)
{
    for (size_t i = 0; i < launch_log_count(call->repl); i++) {
        const char *text = launch_log_line(call->repl, i);
        if (is_wanted(filter, text)) {
            add_line(lines, text);
        }
    }
}

static void show_lines(struct command_call *call, const struct lines *lines,
                       const struct filter *filter, bool opened, bool all)
{
    bool filtered = filter->module || filter->least >= 0;
    cJSON *record = out_record(call->out, "log");
    cJSON *list = out_list(record, "lines");

    for (size_t i = lines->total - lines->count; i < lines->total; i++) {
        const char *text = lines->line[i % lines->room];
        out_push_text(list, text ? text : "");
    }
    out_set(record, OUT_INT("count", lines->total),
            OUT_INT("dropped", opened ? 0 : launch_log_dropped(call->repl)),
            OUT_IF(filter->module, OUT_TEXT("module", filter->module)),
            OUT_IF(filter->least >= 0,
                   OUT_TEXT("level", gd_log_level_name((enum gd_log_level)(filter->least + 1)))));
    out_say(call->out, record,
            "[{!count}{nothing}\n]"
            "[({before|line} before these[{?hidden}: info log -a])\n]",
            OUT_TEXT("nothing", filtered ? "No message of that submodule and level: see \"info "
                                           "log\" for all lines."
                                         : "The training program has written nothing."),
            OUT_INT("before", lines->total - lines->count), OUT_BOOL("hidden", !all));
    out_say_each(call->out, list, "{}\n");
}

int info_log(struct command_call *call, struct gd_err *err)
{
    int64_t wanted = 20;
    bool all = inspect_take_flag(call, "-a"), opened = false;
    struct filter filter;
    int rc = take_filter(call, &filter, err);

    rc = rc != GD_OK || call->argc == 0 ? rc : arg_count(call->argv[0], 1, MOST, &wanted, err);
    if (rc != GD_OK) {
        return rc;
    }
    size_t held = launch_log_count(call->repl);
    struct lines lines = {.room = !all ? (size_t)wanted : held > MOST ? held : MOST};
    lines.line = calloc(lines.room, sizeof(*lines.line));
    if (!lines.line) {
        return gd_fail_nomem(err);
    }
    rc = read_opened(call, &filter, &lines, &opened, err);
    if (!opened) {
        read_program(call, &filter, &lines);
    }
    if (rc == GD_OK) {
        show_lines(call, &lines, &filter, opened, all);
    }
    for (size_t i = 0; i < lines.count; i++) {
        free(lines.line[i]);
    }
    free(lines.line);
    return rc;
}
