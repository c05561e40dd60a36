// SPDX-License-Identifier: GPL-3.0-or-later
/* `info formats`. */
#include <string.h>

#include "dump/detect.h"
#include "dump/dump_target.h"
#include "repl/commands/status/info.h"
#include "repl/core/repl_impl.h"
#include "repl/core/work.h"
#include "repl/values/inspect.h"

#define LEFT_ROWS 20

static void list_known(struct command_call *call)
{
    static const struct out_column columns[] = {{"name", "Format", false}, {"what", "What", false}};
    struct out_table *table = out_table_begin(call->out, "formats", columns, 2);

    for (size_t i = 0; gd_dump_formats[i]; i++) {
        out_put(table, OUT_TEXT("name", gd_dump_formats[i]->name),
                OUT_TEXT("what", gd_dump_formats[i]->what));
    }
    out_put(table, OUT_TEXT("name", "history"),
            OUT_TEXT("what", "What gradb recorded (docs/history.md)"));
    out_table_end(table);
}

static void list_found(struct command_call *call, const struct gd_dump *dump)
{
    static const struct out_column columns[] = {{"name", "Format", false},
                                                {"files", "Files", true, ":n"},
                                                {"path", "Where", false},
                                                {"rule", "Recognised by", false}};
    const struct gd_findings *findings = gd_dump_findings(dump);
    struct out_table *table = out_table_begin(call->out, "formats", columns, 4);

    for (size_t i = 0; i < findings->count; i++) {
        const struct gd_finding *found = &findings->item[i];
        char path[4096] = "?";

        gd_listing_path(gd_dump_listing(dump), found->root, path, sizeof(path), NULL);
        out_put(table, OUT_TEXT("name", found->format->name), OUT_INT("files", found->files),
                OUT_TEXT("path", path), OUT_TEXT("rule", found->rule));
    }
    out_table_end(table);
}

static void list_left(struct command_call *call, const struct gd_dump *dump, bool all)
{
    static const struct out_column columns[] = {{"path", "Skipped", false}, {"why", "Why", false}};
    size_t count, shown;
    uint64_t more;
    const struct gd_catalog_fact *left = gd_dump_left(dump, &count, &more);

    shown = all || out_is_json(call->out) || count <= LEFT_ROWS ? count : LEFT_ROWS;
    if (count == 0 && !out_is_json(call->out)) {
        return;
    }
    out_printf(call->out, "\n");
    struct out_table *table = out_table_begin(call->out, "left_out", columns, 2);
    for (size_t i = 0; i < shown; i++) {
        out_put(table, OUT_TEXT("path", left[i].name), OUT_TEXT("why", left[i].value));
    }
    out_table_end(table);
    if (shown < count) {
        out_printf(call->out, "(%s more: info formats -a)\n",
                   inspect_number(call, count - shown + more));
    } else if (more > 0) {
        out_printf(call->out, "(and %s more)\n", inspect_number(call, more));
    }
}

/* What the directory search skipped. */
static void tell_listing(struct command_call *call, const struct gd_dump *dump)
{
    const struct gd_listing *listing = gd_dump_listing(dump);
    cJSON *record = out_record(call->out, "info_formats");

    out_set(record, OUT_INT("entries", listing->count), OUT_INT("links", listing->links),
            OUT_INT("others", listing->others), OUT_INT("too_deep", listing->too_deep),
            OUT_INT("unreadable", listing->unreadable));
    out_say(call->out, record,
            "{entries|name} examined[, {links|link} not followed][, {others:n} not regular files]"
            "[, {too_deep:n} below {depth} levels][, {unreadable:n} unreadable].\n",
            OUT_INT("depth", GD_LISTING_DEPTH));
}

/* Operators whose files have other names than the graph's nodes. */
static void tell_joined(struct command_call *call, const struct gd_dump *dump)
{
    cJSON *list = out_list(out_record(call->out, "info_formats"), "joined");

    for (size_t i = 0; i < gd_dump_count(dump); i++) {
        const struct gd_catalog *catalog = gd_dump_at(dump, i);
        size_t count;
        const struct gd_catalog_fact *facts = gd_catalog_facts(catalog, &count);

        for (size_t k = 0; k < count; k++) {
            if (strcmp(facts[k].name, GD_FACT_JOINED) == 0) {
                out_push_text(list,
                              inspect_printf(call, "rank %d: %s: %s", gd_catalog_rank(catalog),
                                             facts[k].name, out_safe(call, facts[k].value)));
            }
        }
    }
    out_say_each(call->out, list, "{}\n");
}

static void tell_formats(struct command_call *call, const struct gd_dump *dump, bool all)
{
    out_record(call->out, "info_formats");
    list_found(call, dump);
    list_left(call, dump, all);
    tell_joined(call, dump);
    tell_listing(call, dump);
}

static int look_through(struct command_call *call, const char *path, bool all, struct gd_err *err)
{
    struct gd_detect_options options = {.max_graph = call->debugger->settings.max_graph_memory,
                                        .go_on = repl_work_at};
    struct repl_work work;
    struct gd_dump *dump;
    int rc = repl_check_seal(call->repl, err);

    if (rc != GD_OK) {
        return rc;
    }
    repl_work_begin_count(&work, call, inspect_printf(call, "looking through %.100s", path),
                          "entries", 0);
    options.ctx = &work;
    rc = gd_detect(inspect_home_path(call, path), &options, &dump, err);
    rc = repl_work_end(&work, rc, err);
    if (rc == GD_OK) {
        tell_formats(call, dump, all);
        gd_dump_destroy(dump);
    }
    return rc;
}

int info_formats(struct command_call *call, struct gd_err *err)
{
    bool all = inspect_take_flag(call, "-a");
    int rc = inspect_no_options(call, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "info formats: specify at most one path");
    }
    if (call->argc == 1) {
        return look_through(call, call->argv[0], all, err);
    }
    const struct gd_dump *dump = gd_dump_of(call->debugger->current);
    if (dump) {
        tell_formats(call, dump, all);
    } else {
        out_record(call->out, "info_formats");
        list_known(call);
    }
    return GD_OK;
}
