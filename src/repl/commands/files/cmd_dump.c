// SPDX-License-Identifier: GPL-3.0-or-later
/* Dumps: open, and what is known of one: its steps, formats, events. Moving in it is in cmd_run.c.
 */
#include "dump/detect.h"
#include "dump/dump_target.h"
#include "repl/core/commands.h"
#include "repl/core/repl_impl.h"
#include "repl/core/work.h"
#include "repl/values/inspect.h"

#include <stdlib.h>
#include <string.h>

#define STEP_ROWS  40
#define LEFT_ROWS  20
#define EVENT_ROWS 40
#define ALARM_ROWS 10

/* ---- looking through the disk ---------------------------------------------------------------- */

static const char *home_path(struct command_call *call, const char *path)
{
    const char *home = getenv("HOME");

    return strncmp(path, "~/", 2) == 0 && home ? inspect_printf(call, "%s%s", home, path + 1)
                                               : path;
}

static bool go_on(void *ctx, uint64_t done)
{
    return repl_work_at(ctx, done);
}

/* ---- open ------------------------------------------------------------------------------------ */

/* Takes "--format NAME" or "--format=NAME" out of the words; false: the name is missing. */
static bool take_option(struct command_call *call, const char *option, const char **ret)
{
    size_t len = strlen(option);

    for (int i = 0; i < call->argc; i++) {
        int used = 1;

        if (strncmp(call->argv[i], option, len) != 0 ||
            (call->argv[i][len] != '\0' && call->argv[i][len] != '=')) {
            continue;
        }
        if (call->argv[i][len] == '=') {
            *ret = call->argv[i] + len + 1;
        } else if (i + 1 < call->argc) {
            *ret = call->argv[i + 1];
            used = 2;
        } else {
            return false;
        }
        call->argc -= used;
        memmove(&call->argv[i], &call->argv[i + used],
                (size_t)(call->argc - i) * sizeof(*call->argv));
        return **ret != '\0';
    }
    return true;
}

/* "MindSpore synchronous dump (1.3 and later)"; several are listed. */
static const char *formats_text(struct command_call *call, const struct gd_dump *dump)
{
    const struct gd_findings *findings = gd_dump_findings(dump);
    const char *text = "";

    for (size_t i = 0; i < findings->count; i++) {
        if (i == 0 || findings->item[i].format != findings->item[i - 1].format) {
            text =
                inspect_printf(call, "%s%s%s", text, i ? ", " : "", findings->item[i].format->what);
        }
    }
    return text;
}

static const char *steps_text(struct command_call *call, const struct gd_catalog *catalog)
{
    size_t count;
    const struct gd_catalog_step *steps = gd_catalog_steps(catalog, &count);

    if (count == 0) {
        return "no steps";
    }
    if (count == 1) {
        return inspect_printf(call, "step %lld", (long long)steps[0].step);
    }
    return inspect_printf(call, "%zu steps from %lld to %lld", count, (long long)steps[0].step,
                          (long long)steps[count - 1].step);
}

/* The alarms of all ranks, printed or as texts. */
static void tell_alarms(struct command_call *call, const struct gd_dump *dump, cJSON *texts)
{
    size_t seen = 0;

    for (size_t i = 0; i < gd_dump_count(dump); i++) {
        size_t count;
        const struct gd_catalog_fact *facts = gd_catalog_facts(gd_dump_at(dump, i), &count);

        for (size_t k = 0; k < count; k++) {
            if (!gd_catalog_fact_is_alarm(&facts[k]) || (++seen > ALARM_ROWS && !texts)) {
                continue;
            }
            const char *text = inspect_printf(call, "%s: %s", out_safe(call, facts[k].name),
                                              out_safe(call, facts[k].value));
            if (texts) {
                cJSON_AddItemToArray(texts, cJSON_CreateString(text));
            } else {
                out_printf(call->out, "%s\n", text);
            }
        }
    }
    if (!texts && seen > ALARM_ROWS) {
        out_printf(call->out, "(%zu more of the kind: info target)\n", seen - ALARM_ROWS);
    }
}

static void tell_dump(struct command_call *call, const struct gd_session *session,
                      const struct gd_dump *dump, const struct gd_graph_counts *counts)
{
    size_t left;
    uint64_t more;

    gd_dump_left(dump, &left, &more);
    out_printf(call->out, "Session %d, %s: %s, ", session->number,
               out_safe(call, session->peer.program), formats_text(call, dump));
    if (gd_dump_count(dump) > 1) {
        out_printf(call->out, "%zu ranks, ", gd_dump_count(dump));
    }
    out_printf(call->out, "%s, %s.\n", inspect_plural(call, counts->nodes, "node"),
               steps_text(call, gd_catalog_of(session)));
    if (left + more > 0) {
        out_printf(call->out, "%s left out: \"info formats\" says why.\n",
                   inspect_plural(call, left + more, "file"));
    }
    tell_alarms(call, dump, NULL);
}

static void add_dump(struct command_call *call, cJSON *record, const struct gd_dump *dump,
                     const struct gd_catalog *catalog)
{
    const struct gd_findings *findings = gd_dump_findings(dump);
    cJSON *formats = cJSON_AddArrayToObject(record, "formats"), *alarms = cJSON_CreateArray();
    size_t count;
    uint64_t more;

    (void)call;
    for (size_t i = 0; i < findings->count; i++) {
        if (i == 0 || findings->item[i].format != findings->item[i - 1].format) {
            cJSON_AddItemToArray(formats, cJSON_CreateString(findings->item[i].format->name));
        }
    }
    inspect_add_count(record, "ranks", gd_dump_count(dump));
    gd_catalog_steps(catalog, &count);
    inspect_add_count(record, "steps", count);
    gd_dump_left(dump, &count, &more);
    inspect_add_count(record, "left_out", count + more);
    tell_alarms(call, dump, alarms);
    if (cJSON_GetArraySize(alarms) > 0) {
        cJSON_AddItemToObject(record, "alarms", alarms);
    } else {
        cJSON_Delete(alarms);
    }
}

static void tell(struct command_call *call, const struct gd_session *session)
{
    const struct gd_dump *dump = gd_dump_of(session);
    struct gd_graph_counts counts;

    gd_graph_counts(session->graph, &counts);
    if (out_is_json(call->out)) {
        cJSON *record = out_record(call->out, "open");

        cJSON_AddNumberToObject(record, "session", session->number);
        cJSON_AddStringToObject(record, "kind", session->target->ops->kind);
        inspect_add_text(call, record, "program", session->peer.program);
        cJSON_AddNumberToObject(record, "step", (double)session->stop.step);
        inspect_add_count(record, "nodes", counts.nodes);
        inspect_add_text(call, record, "end", session->end_text);
        if (dump) {
            add_dump(call, record, dump, gd_catalog_of(session));
        }
    } else if (dump) {
        tell_dump(call, session, dump, &counts);
    } else {
        out_printf(call->out, "Training process %d%s%s: %s, %s. Type \"info history\".\n",
                   session->number, session->peer.program[0] ? ", " : "",
                   out_safe(call, session->peer.program), session->end_text,
                   inspect_plural(call, counts.nodes, "node"));
    }
}

static int open_one(struct command_call *call, const char *path,
                    const struct gd_open_options *options, struct gd_err *err)
{
    struct gd_open_options watched = *options;
    struct gd_session *session = NULL;
    struct repl_work work;
    int rc;

    repl_work_begin_count(&work, call, inspect_printf(call, "looking through %.100s", path),
                          "entries", 0);
    watched.go_on = go_on;
    watched.ctx = &work;
    rc = call->debugger->open_file(call->debugger, home_path(call, path), &watched, &session, err);
    rc = repl_work_end(&work, rc, err);
    if (rc == GD_OK) {
        call->session = session;
        tell(call, session);
    }
    return rc;
}

static int run_open(struct command_call *call, struct gd_err *err)
{
    struct gd_open_options options = {.format = NULL};
    int rc = repl_check_seal(call->repl, err);

    if (rc != GD_OK) {
        return rc;
    }
    options.partial = inspect_take_flag(call, "--partial");
    if (!take_option(call, "--format", &options.format) ||
        !take_option(call, "--key", &options.key) ||
        !take_option(call, "--dtype", &options.dtype)) {
        return gd_fail(err, GD_EUSAGE, "open: a name is missing behind an option");
    }
    rc = inspect_no_options(call, err);
    if (rc == GD_OK && call->argc == 0) {
        rc = gd_fail(err, GD_EUSAGE, "open: which file or directory?");
    }
    if (rc == GD_OK && !call->debugger->open_file) {
        rc = gd_fail(err, GD_EUNSUPPORTED, "this gradb opens no files");
    }
    for (int i = 0; rc == GD_OK && i < call->argc; i++) {
        rc = open_one(call, call->argv[i], &options, err);
    }
    return rc;
}

/* ---- info steps ------------------------------------------------------------------------------ */

static int need_catalog(struct command_call *call, const struct gd_catalog **ret,
                        struct gd_err *err)
{
    int rc = inspect_session(call, err);

    if (rc == GD_OK) {
        *ret = gd_catalog_of(call->session);
        if (!*ret) {
            rc = gd_fail(err, GD_EUNSUPPORTED,
                         "session %d is no dump: \"open DIRECTORY\" makes a session of one",
                         call->session->number);
        }
    }
    return rc;
}

/* The graphs that ran in it, each by its own count. */
static const char *graphs_of_step(struct command_call *call, const struct gd_catalog *catalog,
                                  int64_t step)
{
    const struct gd_graph *graph = call->session->graph;
    const char *text = "";
    struct gd_graph_counts counts;

    gd_graph_counts(graph, &counts);
    for (uint32_t i = 0; i < counts.subgraphs; i++) {
        if (gd_catalog_has_graph(catalog, i, step)) {
            text = inspect_printf(call, "%s%s%s", text, text[0] ? ", " : "",
                                  inspect_name(call, gd_graph_subgraph_name(graph, i)));
        }
    }
    return text;
}

static void step_row(struct command_call *call, struct out_table *table,
                     const struct gd_catalog *catalog, const struct gd_catalog_step *step)
{
    bool here = step->step == call->session->stop.step;
    const char *cells[] = {
        out_is_json(call->out) ? (here ? "true" : "false")
        : here                 ? "*"
                               : "",
        inspect_printf(call, "%lld", (long long)step->step), inspect_number(call, step->values),
        gd_graph_is_qualified(call->session->graph) ? graphs_of_step(call, catalog, step->step)
                                                    : ""};

    out_table_row(table, cells);
}

int inspect_info_steps(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {{"here", "", false},
                                                {"step", "Step", true},
                                                {"values", "Values", true},
                                                {"graphs", "Graphs", false}};
    const struct gd_catalog *catalog;
    bool all = inspect_take_flag(call, "-a");
    size_t count, first = 0, shown, here = 0;
    int rc = inspect_no_options(call, err);

    if (rc == GD_OK) {
        rc = need_catalog(call, &catalog, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    const struct gd_catalog_step *steps = gd_catalog_steps(catalog, &count);
    shown = all || out_is_json(call->out) || count <= STEP_ROWS ? count : STEP_ROWS;
    while (here < count && steps[here].step < call->session->stop.step) {
        here++;
    }
    if (shown < count && here > shown / 2) { /* those around where it stands */
        first = here - shown / 2;
        first = first + shown > count ? count - shown : first;
    }
    struct out_table *table = out_table_begin(call->out, "steps", columns,
                                              gd_graph_is_qualified(call->session->graph) ? 4 : 3);
    for (size_t i = first; i < first + shown; i++) {
        step_row(call, table, catalog, &steps[i]);
    }
    out_table_end(table);
    if (shown < count) {
        out_printf(call->out, "(%s in all: info steps -a)\n", inspect_plural(call, count, "step"));
    } else if (count == 0) {
        out_printf(call->out, "The dump has no steps: its values hold in all.\n");
    }
    return GD_OK;
}

/* ---- info formats ---------------------------------------------------------------------------- */

static void list_known(struct command_call *call)
{
    static const struct out_column columns[] = {{"name", "Format", false}, {"what", "What", false}};
    struct out_table *table = out_table_begin(call->out, "formats", columns, 2);

    for (size_t i = 0; gd_dump_formats[i]; i++) {
        const char *cells[] = {gd_dump_formats[i]->name, gd_dump_formats[i]->what};
        out_table_row(table, cells);
    }
    out_table_row(table, (const char *[]){"history", "What gradb recorded (docs/history.md)"});
    out_table_end(table);
}

static void list_found(struct command_call *call, const struct gd_dump *dump)
{
    static const struct out_column columns[] = {{"name", "Format", false},
                                                {"files", "Files", true},
                                                {"path", "Where", false},
                                                {"rule", "Recognised by", false}};
    const struct gd_findings *findings = gd_dump_findings(dump);
    struct out_table *table = out_table_begin(call->out, "formats", columns, 4);

    for (size_t i = 0; i < findings->count; i++) {
        const struct gd_finding *found = &findings->item[i];
        char path[4096] = "?";

        gd_listing_path(gd_dump_listing(dump), found->root, path, sizeof(path), NULL);
        const char *cells[] = {found->format->name, inspect_number(call, found->files),
                               out_safe(call, path), out_safe(call, found->rule)};
        out_table_row(table, cells);
    }
    out_table_end(table);
}

static void list_left(struct command_call *call, const struct gd_dump *dump, bool all)
{
    static const struct out_column columns[] = {{"path", "Left out", false}, {"why", "Why", false}};
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
        const char *cells[] = {out_safe(call, left[i].name), out_safe(call, left[i].value)};
        out_table_row(table, cells);
    }
    out_table_end(table);
    if (shown < count) {
        out_printf(call->out, "(%s more: info formats -a)\n",
                   inspect_number(call, count - shown + more));
    } else if (more > 0) {
        out_printf(call->out, "(and %s more)\n", inspect_number(call, more));
    }
}

/* What the walk over the directory did not go into. */
static void tell_listing(struct command_call *call, const struct gd_dump *dump)
{
    const struct gd_listing *listing = gd_dump_listing(dump);

    if (out_is_json(call->out)) {
        cJSON *record = out_record(call->out, "info_formats");

        inspect_add_count(record, "entries", listing->count);
        inspect_add_count(record, "links", listing->links);
        inspect_add_count(record, "others", listing->others);
        inspect_add_count(record, "too_deep", listing->too_deep);
        inspect_add_count(record, "unreadable", listing->unreadable);
        return;
    }
    out_printf(call->out, "%s looked at", inspect_plural(call, listing->count, "name"));
    if (listing->links) {
        out_printf(call->out, ", %s not followed", inspect_plural(call, listing->links, "link"));
    }
    if (listing->others) {
        out_printf(call->out, ", %s that are no files", inspect_number(call, listing->others));
    }
    if (listing->too_deep) {
        out_printf(call->out, ", %s below %d levels", inspect_number(call, listing->too_deep),
                   GD_LISTING_DEPTH);
    }
    if (listing->unreadable) {
        out_printf(call->out, ", %s that cannot be read",
                   inspect_number(call, listing->unreadable));
    }
    out_printf(call->out, ".\n");
}

/* Operators whose files have other names than the graph. */
static void tell_joined(struct command_call *call, const struct gd_dump *dump)
{
    cJSON *record = out_is_json(call->out) ? out_record(call->out, "info_formats") : NULL;
    cJSON *list = record ? cJSON_AddArrayToObject(record, "joined") : NULL;

    for (size_t i = 0; i < gd_dump_count(dump); i++) {
        const struct gd_catalog *catalog = gd_dump_at(dump, i);
        size_t count;
        const struct gd_catalog_fact *facts = gd_catalog_facts(catalog, &count);

        for (size_t k = 0; k < count; k++) {
            if (strcmp(facts[k].name, GD_FACT_JOINED) != 0) {
                continue;
            }
            const char *text = inspect_printf(call, "rank %d: %s: %s", gd_catalog_rank(catalog),
                                              facts[k].name, out_safe(call, facts[k].value));
            if (list) {
                cJSON_AddItemToArray(list, cJSON_CreateString(text));
            } else {
                out_printf(call->out, "%s\n", text);
            }
        }
    }
}

static void tell_formats(struct command_call *call, const struct gd_dump *dump, bool all)
{
    out_record(call->out, "info_formats");
    list_found(call, dump);
    list_left(call, dump, all);
    tell_joined(call, dump);
    tell_listing(call, dump);
}

static int look_at(struct command_call *call, const char *path, bool all, struct gd_err *err)
{
    struct gd_detect_options options = {.max_graph = call->debugger->settings.max_graph_memory,
                                        .go_on = go_on};
    struct repl_work work;
    struct gd_dump *dump;
    int rc = repl_check_seal(call->repl, err);

    if (rc != GD_OK) {
        return rc;
    }
    repl_work_begin_count(&work, call, inspect_printf(call, "looking through %.100s", path),
                          "entries", 0);
    options.ctx = &work;
    rc = gd_detect(home_path(call, path), &options, &dump, err);
    rc = repl_work_end(&work, rc, err);
    if (rc == GD_OK) {
        tell_formats(call, dump, all);
        gd_dump_destroy(dump);
    }
    return rc;
}

int inspect_info_formats(struct command_call *call, struct gd_err *err)
{
    bool all = inspect_take_flag(call, "-a");
    int rc = inspect_no_options(call, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "info formats: one path");
    }
    if (call->argc == 1) {
        return look_at(call, call->argv[0], all, err);
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

/* Of an operator that dumped nothing, whose value is what another was given. */
static const char *note_given(struct command_call *call, const struct gd_catalog *catalog,
                              const struct gd_tensor_ref *ref, int64_t step)
{
    const struct gd_catalog_value *value =
        gd_catalog_find_given(catalog, call->session->graph, ref->node, ref->slot, step);

    if (!value) {
        return NULL;
    }
    return inspect_printf(call, "not dumped: as %s:%s was given it",
                          gd_graph_name(call->session->graph, value->node),
                          inspect_slot(call, value->node, value->slot));
}

const char *inspect_dump_note(struct command_call *call, const struct gd_tensor_ref *ref,
                              int64_t step)
{
    const struct gd_catalog *catalog = call->session ? gd_catalog_of(call->session) : NULL;
    const struct gd_catalog_value *value =
        catalog ? gd_catalog_find(catalog, ref->node, ref->slot, step) : NULL;

    if (catalog && !value) {
        return note_given(call, catalog, ref, step);
    }
    if (!value || !value->digest) {
        return value ? value->note : NULL;
    }
    return inspect_printf(call, "%s%s%s", value->note ? value->note : "", value->note ? "; " : "",
                          value->digest);
}

/* Behind the note the first digest that the dump has of the node, which may be all it has. */
static const char *add_digest(struct command_call *call, gd_node_id node, uint32_t slots,
                              const char *note)
{
    const struct gd_catalog *catalog = gd_catalog_of(call->session);

    for (uint32_t slot = 0; slot < slots; slot++) {
        const struct gd_catalog_value *value =
            gd_catalog_find(catalog, node, slot, call->session->stop.step);

        if (value && value->digest) {
            char name[16];

            gd_graph_slot_name(call->session->graph, node, slot, name);
            return inspect_printf(call, "%s%sdigest of :%s %s", note ? note : "", note ? "; " : "",
                                  name, value->digest);
        }
    }
    return note;
}

const char *inspect_dump_node(struct command_call *call, gd_node_id node)
{
    const struct gd_catalog *catalog = call->session ? gd_catalog_of(call->session) : NULL;
    const char *why = catalog ? gd_catalog_why_not(catalog, node) : NULL, *note = NULL;
    struct gd_node_info info;

    if (!catalog || !gd_graph_node(call->session->graph, node, &info)) {
        return NULL;
    }
    if (why) {
        return inspect_printf(call, "nothing was dumped: %s", why);
    }
    for (uint32_t slot = 0; !note && slot < info.output_count; slot++) {
        const struct gd_catalog_value *value =
            gd_catalog_find(catalog, node, slot, call->session->stop.step);

        note = value ? value->note : NULL;
    }
    return add_digest(call, node, info.output_count, note);
}

/* ---- info events ----------------------------------------------------------------------------- */

int inspect_info_events(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {{"step", "Step", true},
                                                {"kind", "What", false},
                                                {"node", "Node", false},
                                                {"text", "", false}};
    const struct gd_catalog *catalog;
    bool all = inspect_take_flag(call, "-a") || out_is_json(call->out);
    size_t count;
    int rc = inspect_no_options(call, err);

    if (rc == GD_OK) {
        rc = need_catalog(call, &catalog, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    const struct gd_catalog_event *events = gd_catalog_events(catalog, &count);
    size_t shown = all || count <= EVENT_ROWS ? count : EVENT_ROWS;
    struct out_table *table = out_table_begin(call->out, "events", columns, 4);
    for (size_t i = 0; i < shown; i++) {
        const char *cells[] = {
            events[i].step == GD_EVERY_STEP
                ? NULL
                : inspect_printf(call, "%lld", (long long)events[i].step),
            out_safe(call, events[i].kind),
            inspect_name(call, gd_graph_name(call->session->graph, events[i].node)),
            inspect_name(call, events[i].text)};
        out_table_row(table, cells);
    }
    out_table_end(table);
    if (count == 0) {
        size_t steps;
        gd_catalog_steps(catalog, &steps);
        out_printf(call->out,
                   "No event was recorded in %s of rank %d (\"info formats\" lists the files that "
                   "were read).\n",
                   inspect_plural(call, steps, "step"), gd_catalog_rank(catalog));
    } else if (shown < count) {
        out_printf(call->out, "(%s more: info events -a)\n", inspect_number(call, count - shown));
    }
    return GD_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct command cmd_dump_table[] = {
    {
        .name = "open",
        .group = "files",
        .usage = "open PATH... [--format NAME] [--key NAME] [--dtype NAME] [--partial]",
        .summary = "Look at what a training left on the disk: a dump, a checkpoint, a record",
        .help =
            "A directory is looked through for all formats that are known (\"info formats\"), a "
            "file\n"
            "is what its bytes say. It becomes a session, or one for each rank (\"info ranks\", "
            "\"rank\n"
            "N\"): info, print, tensor, watch, why and compare work as on a training. \"step\",\n"
            "\"reverse-step\" and \"goto\" go to the steps that were dumped, \"continue\" to the "
            "next\n"
            "one in which a watchpoint fires. --format takes one format and no other; --key names\n"
            "the dictionary of a checkpoint that holds the weights, --dtype the element type where "
            "a\n"
            "file leaves it open. --partial reads what there is of a file that was cut short.\n"
            "\n"
            "  open ~/.local/state/gradb/history-train.py-4711-20260102-030405.gdhist\n"
            "  open dump/rank_0\n",
        .args = {ARG_FILE, ARG_FILE, ARG_FILE},
        .run = run_open,
    },
    {.name = NULL},
};
