// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/compare/sides.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dump/detect.h"
#include "dump/dump_target.h"
#include "engine/ranks.h"
#include "repl/core/command.h"
#include "repl/core/work.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

#define MAX_RANKS 64

static bool path_exists(const char *path)
{
    struct stat there;

    return stat(path, &there) == 0;
}

/* Where ":NAME" begins after an existing path; NULL: it does not. */
static const char *entry_of(const char *word)
{
    char path[4096];

    for (const char *at = strrchr(word, ':'); at; at = at > word ? at - 1 : NULL) {
        if (*at != ':' || (size_t)(at - word) >= sizeof(path)) {
            continue;
        }
        memcpy(path, word, (size_t)(at - word));
        path[at - word] = '\0';
        if (path_exists(path)) {
            return at;
        }
    }
    return NULL;
}

/* If nothing exists, the error should be about a file. */
static bool looks_like_file(const char *word)
{
    size_t len = strlen(word);

    return (len > 1 && word[len - 1] == '/') || gd_is_tensor_file_name(word);
}

bool side_is_meant(struct command_call *call, const char *word)
{
    struct tensor_arg arg;
    struct gd_err err;
    const char *path = inspect_home_path(call, word);

    if (word[0] == '@') {
        return true;
    }
    if (word[0] == '$' || word[0] == '\0') {
        return false;
    }
    if (word[0] == '/' || strncmp(word, "./", 2) == 0 || strncmp(word, "../", 3) == 0 ||
        strncmp(word, "~/", 2) == 0) {
        return true;
    }
    if (call->session && arg_tensor(call, word, &arg, &err) == GD_OK) {
        return false;
    }
    return path_exists(path) || entry_of(path) || looks_like_file(word);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_session(struct command_call *call, const char *word, struct side *side,
                        struct gd_err *err)
{
    const char *colon = strchr(word, ':');
    const char *digits =
        inspect_printf(call, "%.*s", colon ? (int)(colon - word) - 1 : (int)strlen(word), word + 1);
    int64_t number;
    int rc = arg_count(digits, 1, INT32_MAX, &number, err);

    if (rc != GD_OK || (colon && strcmp(colon, ":prev") != 0)) {
        return gd_fail(err, GD_EINVAL,
                       "%.100s: write @ and a session number, as `info ranks` shows it; @N:prev is "
                       "its previous step",
                       word);
    }
    side->previous = colon != NULL;
    side->session = gd_debugger_session(call->debugger, (int)number);
    if (!side->session) {
        return gd_fail(err, GD_ENOTFOUND, "there is no session %lld", (long long)number);
    }
    gd_session_hold(side->session);
    side->catalog[0] = gd_catalog_of(side->session);
    side->catalog_count = side->catalog[0] ? 1 : 0;
    side->graph[0] = side->session->graph;
    side->kind = side->catalog[0] ? SIDE_DUMP : SIDE_LIVE;
    return GD_OK;
}

/* Reads the catalogs of everything but plain tensor files, which are read by name. */
static bool is_dump(const struct gd_dump *dump)
{
    const struct gd_findings *findings = gd_dump_findings(dump);

    for (size_t i = 0; findings && i < findings->count; i++) {
        if (strcmp(findings->item[i].format->name, "tensor-files") != 0) {
            return true;
        }
    }
    return false;
}

static void take_catalogs(struct side *side)
{
    size_t count = gd_dump_count(side->dump);

    for (size_t i = 0; i < count && i < MAX_RANKS; i++) {
        struct gd_catalog *catalog = gd_dump_at(side->dump, i);

        side->catalog[i] = catalog;
        side->graph[i] = gd_catalog_graph(catalog);
        side->catalog_count++;
    }
    side->ranks_left_out = count - side->catalog_count;
    side->kind = SIDE_DUMP;
}

static int open_directory(struct command_call *call, struct side *side, struct gd_err *err)
{
    struct gd_detect_options options = {.max_graph = call->debugger->settings.max_graph_memory,
                                        .go_on = repl_work_at};
    struct gd_err why = {.text = ""};
    struct repl_work work;
    int rc;

    repl_work_begin_count(&work, call, inspect_printf(call, "looking through %.100s", side->path),
                          "files", 0);
    options.ctx = &work;
    rc = gd_detect(side->path, &options, &side->dump, &why);
    rc = repl_work_end(&work, rc, &why);
    if (rc == GD_OK && is_dump(side->dump)) {
        take_catalogs(side);
        return GD_OK;
    }
    if (rc == GD_EINTR || rc == GD_ENOMEM || rc == GD_ENOTFOUND || rc == GD_EIO) {
        return gd_fail(err, rc, "%s", why.text);
    }
    gd_dump_destroy(side->dump);
    side->dump = NULL;
    side->kind = SIDE_DIRECTORY;
    return GD_OK;
}

static int open_file(struct command_call *call, struct side *side, struct gd_err *err)
{
    struct gd_err why = {.text = ""};
    int rc = gd_archive_open(side->path, NULL, &side->archive, &why);

    side->kind = SIDE_FILE;
    if (rc == GD_OK || rc == GD_ENOMEM || rc == GD_ENOTFOUND || rc == GD_EIO) {
        return rc == GD_OK ? GD_OK : gd_fail(err, rc, "%s", why.text);
    }
    rc = open_directory(call, side, err); /* a flight record or a graph, which dumps consist of */
    return rc == GD_OK && side->kind == SIDE_DUMP ? GD_OK : gd_fail(err, GD_EPROTO, "%s", why.text);
}

int side_open(struct command_call *call, const char *word, struct side *ret, struct gd_err *err)
{
    const char *path = inspect_home_path(call, word), *entry;
    struct stat there;

    *ret = (struct side){.label = word, .entry = ""};
    if (word[0] == '@') {
        return open_session(call, word, ret, err);
    }
    int rc = repl_check_seal(call->repl, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!path_exists(path)) {
        entry = entry_of(path);
        if (!entry) {
            return gd_fail(err, GD_ENOTFOUND, "%.300s: no such file or directory", path);
        }
        ret->entry = entry + 1;
        path = inspect_printf(call, "%.*s", (int)(entry - path), path);
    }
    ret->path = path;
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode)) {
        rc = open_directory(call, ret, err);
    } else {
        rc = open_file(call, ret, err);
    }
    if (rc != GD_OK) {
        side_close(ret);
    }
    return rc;
}

int side_open_whole(struct command_call *call, const char *word, struct side *ret,
                    struct gd_err *err)
{
    int rc = side_open(call, word, ret, err);

    if (rc == GD_OK && ret->previous && ret->kind == SIDE_DUMP) {
        rc = gd_fail(
            err, GD_EUNSUPPORTED,
            "%.100s: only `compare` takes the previous step of a dump; use --step and --steps here",
            word);
        side_close(ret);
    }
    return rc;
}

void side_close(struct side *side)
{
    if (side->archive) {
        gd_archive_close(side->archive);
    }
    if (side->dump) {
        gd_dump_destroy(side->dump);
    }
    gd_session_release(side->session);
    gd_source_unref(side->tensor);
    side->session = NULL;
    side->archive = NULL;
    side->dump = NULL;
    side->tensor = NULL;
}

/* ---- loading --------------------------------------------------------------------------------- */

const struct gd_catalog_step *side_steps(const struct side *side, size_t rank, size_t *count)
{
    *count = 0;
    return rank < side->catalog_count ? gd_catalog_steps(side->catalog[rank], count) : NULL;
}

/* A live session gives names at once and values on demand. */
static int load_live(const struct gd_session *session, struct gd_table *table, struct gd_err *err)
{
    uint32_t count;
    const gd_node_id *order = gd_graph_execution(session->graph, &count);
    char name[4200];
    int rc = GD_OK;

    for (uint32_t i = 0; rc == GD_OK && i < count; i++) {
        struct gd_node_info info;
        struct gd_output output;

        if (!gd_graph_node(session->graph, order[i], &info) || info.output_count == 0) {
            continue;
        }
        rc = gd_table_node(table, order[i], &info, err);
        if (rc == GD_OK) {
            table->unit[table->unit_count - 1].left =
                info.kind == GD_NODE_WEIGHT && session->stop.at_step_end;
        }
        for (uint32_t slot = 0; rc == GD_OK && slot < info.output_count; slot++) {
            struct gd_item item = {.name = name, .slot = slot, .position = (uint16_t)slot};

            if (gd_graph_output(session->graph, order[i], slot, &output)) {
                item.dtype = output.dtype;
                item.shape = output.shape;
                item.has_shape = output.dtype != GD_DT_NONE && gd_shape_count(&output.shape) >= 0;
            }
            snprintf(name, sizeof(name), "%.4000s:%u", info.name, slot);
            rc = gd_table_add(table, &item, err);
        }
    }
    table->step = session->stop.step;
    table->graph = session->graph;
    return rc;
}

static int load_one(struct gd_table *table, const struct side *side, struct gd_err *err)
{
    const struct gd_archive_entry *entry = gd_archive_find(side->archive, side->entry);
    struct gd_item item = {.name = side->entry};
    int rc;

    if (!entry) {
        return gd_fail(err, GD_ENOTFOUND, "%.200s does not contain \"%.200s\"", side->path,
                       side->entry);
    }
    item.kind = entry->kind;
    item.source = entry->source;
    item.problem = entry->source ? NULL : entry->problem ? entry->problem : "not a tensor";
    rc = gd_table_unit(table, side->entry, NULL, err);
    return rc == GD_OK ? gd_table_add(table, &item, err) : rc;
}

static int load_tensor(struct gd_table *table, const struct side *side, struct gd_err *err)
{
    int rc = gd_table_unit(table, side->label, NULL, err);

    return rc == GD_OK
               ? gd_table_add(table, &(struct gd_item){.name = side->label, .source = side->tensor},
                              err)
               : rc;
}

static int load_directory(struct command_call *call, struct side *side, struct gd_table *table,
                          struct gd_err *err)
{
    struct repl_work work;
    int rc;

    repl_work_begin_count(&work, call, inspect_printf(call, "looking through %.100s", side->path),
                          "files", 0);
    rc = gd_table_of_directory(table, side->path, repl_work_at, &work, err);
    rc = repl_work_end(&work, rc, err);
    if (rc == GD_OK && table->item_count == 0) {
        return gd_fail(err, GD_ENODATA,
                       "%.300s contains no tensor file: .npy, .npz, .safetensors, .pt, .pth, .ckpt",
                       side->path);
    }
    return rc;
}

int side_load(struct command_call *call, struct side *side, size_t rank, int64_t step,
              struct gd_table *ret, struct gd_err *err)
{
    int rc = GD_OK;

    gd_table_init(ret);
    switch (side->kind) {
    case SIDE_FILE:
        rc = side->entry[0] ? load_one(ret, side, err)
                            : gd_table_of_archive(ret, side->archive, "", err);
        if (rc == GD_OK && ret->item_count == 0) {
            rc = gd_fail(err, GD_ENODATA, "%.300s contains no tensor", side->path);
        }
        break;
    case SIDE_DIRECTORY: rc = load_directory(call, side, ret, err); break;
    case SIDE_TENSOR: rc = load_tensor(ret, side, err); break;
    case SIDE_LIVE:
        rc = gd_ranks_is_running(side->session) || side->session->state == GD_RUNNING
                 ? gd_fail(err, GD_ESTATE,
                           "the training is running: stop it with \"interrupt\" for %s",
                           call->command->name)
                 : load_live(side->session, ret, err);
        ret->step = side->previous ? -1 : side->session->stop.step;
        break;
    case SIDE_DUMP:
        ret->graph = side->graph[rank];
        rc = gd_table_of_catalog(ret, side->catalog[rank], step < 0 ? GD_EVERY_STEP : step, err);
        break;
    }
    if (rc != GD_OK) {
        gd_table_deinit(ret);
    }
    return rc;
}

int side_fetch_value(struct command_call *call, struct gd_session *session,
                     const struct gd_tensor_ref *ref, struct gd_source **ret, const char **why,
                     int64_t *step, struct gd_err *err)
{
    struct gd_session *before = call->session;
    struct gd_tensor *tensor;
    struct gd_err reason = {.text = ""};
    int64_t own = -1;
    int rc;

    *ret = NULL;
    call->session = session;
    rc = repl_fetch(call, ref, NULL, &tensor, step ? step : &own, &reason);
    call->session = before;
    if (rc == GD_OK) {
        rc = gd_source_of_tensor(tensor, ret, &reason);
        gd_tensor_unref(tensor);
    }
    if (rc == GD_EINTR || rc == GD_ENOMEM || rc == GD_ELOST) {
        return gd_fail(err, rc, "%s", reason.text);
    }
    *why = rc == GD_OK ? NULL : inspect_printf(call, "%s", reason.text);
    return GD_OK;
}

int side_fetch(struct command_call *call, struct side *side, const struct gd_unit *unit,
               struct gd_item *item, struct gd_err *err)
{
    struct gd_tensor_ref ref = {
        .node = unit->node, .slot = item->slot, .iter = side->previous ? GD_PREVIOUS : GD_CURRENT};

    if (side->kind != SIDE_LIVE || item->source || item->problem) {
        return GD_OK;
    }
    return side_fetch_value(call, side->session, &ref, &item->source, &item->problem, NULL, err);
}

int side_fetch_of_step(struct command_call *call, struct side *side, const struct gd_unit *unit,
                       struct gd_item *item, struct gd_err *err)
{
    struct gd_tensor_ref ref = {.node = unit->node, .slot = item->slot};
    int64_t step = -1;

    if (side->kind != SIDE_LIVE || side->previous || unit->leaf || item->source || item->problem) {
        return side_fetch(call, side, unit, item, err);
    }
    int rc = side_fetch_value(call, side->session, &ref, &item->source, &item->problem, &step, err);
    char age[VALUE_AGE];
    if (rc == GD_OK && item->source && value_age(side->session, step, age)[0]) {
        gd_source_unref(item->source);
        item->source = NULL;
        item->of_other_step = true;
        item->problem = step >= 0
                            ? inspect_printf(call, "its value is of step %lld", (long long)step)
                            : inspect_printf(call, "its value is %s", age);
    }
    return rc;
}
