// SPDX-License-Identifier: GPL-3.0-or-later
/* MindSpore's logs: lines of level WARNING and above as events of the steps they name, for the
 * ranks of a dump next to the logs. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "dump/format.h"
#include "dump/io/file_name.h"
#include "dump/mindspore/glog.h"
#include "dump/mindspore/ms_dirs.h"

#define CHUNK      ((size_t)1 << 18)
#define MAX_EVENTS 5000  /* per file */
#define MAX_TEXT   2000  /* bytes per event */
#define MAX_LINE   65536 /* longer lines are cut */

/* ---- lines ----------------------------------------------------------------------------------- */

static const char *const level_names[] = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"};

static bool take_level(const char *text, size_t len, struct gd_glog_line *ret)
{
    for (size_t i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++) {
        if (strlen(level_names[i]) == len && strncmp(level_names[i], text, len) == 0) {
            ret->level = (enum gd_glog_level)i;
            return true;
        }
    }
    if (len < 2 || text[0] != 'V' || strspn(text + 1, "0123456789") < len - 1) {
        return false;
    }
    ret->level = GD_GLOG_DEBUG;
    return true;
}

/* "2024-05-01-10:20:30.123.456" */
static size_t time_length(const char *text)
{
    static const char shape[] = "dddd-dd-dd-dd:dd:dd.";
    size_t i;

    for (i = 0; shape[i]; i++) {
        if (shape[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != shape[i]) {
            return 0;
        }
    }
    return i + strspn(text + i, "0123456789.");
}

bool gd_glog_parse(const char *line, struct gd_glog_line *ret)
{
    const char *close, *open, *end, *place;
    size_t len;

    *ret = (struct gd_glog_line){.level = GD_GLOG_DEBUG};
    close = line[0] == '[' ? strchr(line, ']') : NULL;
    if (!close || !take_level(line + 1, (size_t)(close - line) - 1, ret) || close[1] != ' ') {
        return false;
    }
    ret->module = close + 2;
    ret->module_len = strspn(ret->module, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    open = ret->module + ret->module_len;
    end = *open == '(' ? strstr(open, "):") : NULL;
    if (!ret->module_len || !end) {
        return false;
    }
    ret->time = end + 2;
    ret->time_len = len = time_length(ret->time);
    if (len == 0) {
        return false;
    }
    ret->message = ret->time + len + strspn(ret->time + len, " ");
    if (ret->message[0] == '[' && (place = strchr(ret->message, ']'))) {
        ret->place = ret->message + 1;
        ret->place_len = (size_t)(place - ret->place);
        ret->message = place + 1 + strspn(place + 1, " ");
    }
    return true;
}

/* Finds "step: 12", "step 12", "step[12]", "cur_step_num=12": the number after the word. */
bool gd_glog_step(const char *message, int64_t *ret)
{
    for (const char *at = strstr(message, "step"); at; at = strstr(at + 1, "step")) {
        const char *number = at + 4;
        int64_t step = 0;
        size_t digits;

        number += strncmp(number, "_num", 4) == 0 ? 4 : 0;
        number += strspn(number, " :=[_");
        digits = strspn(number, "0123456789");
        if (digits == 0 || digits > 15) {
            continue;
        }
        for (size_t i = 0; i < digits; i++) {
            step = step * 10 + (number[i] - '0');
        }
        *ret = step;
        return true;
    }
    return false;
}

/* ---- a file ---------------------------------------------------------------------------------- */

struct reading {
    struct gd_catalog *catalog;
    struct gd_buf line;  /* the current one */
    struct gd_buf event; /* the current one, which further lines may continue */
    enum gd_glog_level level;
    bool is_open;
    int64_t step; /* the last one mentioned */
    uint64_t count[5], events, left;
};

/* The node whose full name occurs in the text: a word that contains a slash. */
static gd_node_id node_in(const struct gd_graph *graph, const char *text)
{
    static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_-.";

    while (*text) {
        size_t len = strspn(text, name);
        size_t used = len;

        while (used > 0 && text[used - 1] == '.') {
            used--;
        }
        if (used > 2 && memchr(text, '/', used)) {
            gd_node_id node = gd_graph_lookup_wire(graph, text, used);

            if (node != GD_NO_NODE) {
                return node;
            }
        }
        text += len ? len : 1;
    }
    return GD_NO_NODE;
}

static int close_event(struct reading *in, struct gd_err *err)
{
    int rc = GD_OK;

    if (in->is_open) {
        const char *text = gd_buf_text(&in->event);

        rc = gd_catalog_add_event(in->catalog, in->step,
                                  node_in(gd_catalog_graph(in->catalog), text),
                                  level_names[in->level], text, err);
        in->events++;
    }
    in->is_open = false;
    return rc;
}

static void add_text(struct gd_buf *out, const char *text, size_t len)
{
    size_t room = out->len < MAX_TEXT ? MAX_TEXT - out->len : 0;

    gd_buf_add(out, text, len < room ? len : room);
}

static int take_line(struct reading *in, struct gd_err *err)
{
    const char *text = gd_buf_text(&in->line);
    struct gd_glog_line line;
    int rc;

    if (!gd_glog_parse(text, &line)) {
        if (in->is_open) { /* a continuation */
            add_text(&in->event, "\n", 1);
            add_text(&in->event, text, strlen(text));
        }
        return GD_OK;
    }
    rc = close_event(in, err);
    gd_glog_step(line.message, &in->step);
    in->count[line.level]++;
    if (rc != GD_OK || line.level < GD_GLOG_WARNING) {
        return rc;
    }
    if (in->events >= MAX_EVENTS) {
        in->left++;
        return GD_OK;
    }
    in->is_open = true;
    in->level = line.level;
    gd_buf_clear(&in->event);
    gd_buf_printf(&in->event, "%.*s %.*s", (int)line.time_len, line.time, (int)line.module_len,
                  line.module);
    if (line.place) {
        gd_buf_printf(&in->event, " %.*s", (int)(line.place_len > 300 ? 300 : line.place_len),
                      line.place);
    }
    gd_buf_puts(&in->event, ": ");
    add_text(&in->event, line.message, strlen(line.message));
    return GD_OK;
}

static int take_chunk(struct reading *in, const char *data, size_t size, struct gd_err *err)
{
    int rc = GD_OK;

    while (rc == GD_OK && size > 0) {
        const char *end = memchr(data, '\n', size);
        size_t len = end ? (size_t)(end - data) : size;
        size_t room = MAX_LINE - in->line.len;

        gd_buf_add(&in->line, data, len < room ? len : room);
        if (end) {
            rc = take_line(in, err);
            gd_buf_clear(&in->line);
            len++;
        }
        data += len;
        size -= len;
    }
    return rc;
}

static int take_text(struct reading *in, struct gd_disk *disk,
                     bool (*go_on)(void *ctx, uint64_t done), void *ctx, struct gd_err *err)
{
    uint64_t size = gd_disk_size(disk);
    char *chunk = malloc(CHUNK);
    int rc = chunk ? GD_OK : gd_fail_nomem(err);

    for (uint64_t at = 0; rc == GD_OK && at < size;) {
        size_t len = size - at < CHUNK ? (size_t)(size - at) : CHUNK;

        rc = go_on && !go_on(ctx, at) ? gd_fail(err, GD_EINTR, "interrupted")
                                      : gd_disk_read(disk, at, chunk, len, err);
        rc = rc != GD_OK ? rc : take_chunk(in, chunk, len, err);
        at += len;
    }
    free(chunk);
    rc = rc != GD_OK || !in->line.len ? rc : take_line(in, err);
    return rc != GD_OK ? rc : close_event(in, err);
}

static int tell_counts(const struct reading *in, const char *path, struct gd_err *err)
{
    char text[200];
    int len = 0;

    for (int i = 0; i < 5; i++) {
        len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%llu %s", i ? ", " : "",
                        (unsigned long long)in->count[i], level_names[i]);
    }
    if (in->left) {
        snprintf(text + len, sizeof(text) - (size_t)len, "; %llu of them are not events: too many",
                 (unsigned long long)in->left);
    }
    return gd_catalog_add_fact(in->catalog, path, text, err);
}

/* ---- the format ------------------------------------------------------------------------------ */

/* A log's usual name, or a single file whose first line is a log line. */
static bool wants_file(const struct gd_listing *listing, uint32_t entry)
{
    const char *name = gd_base_name(listing->entry[entry].name);
    struct gd_glog_line line;
    char start[513];

    if (strncmp(name, "mindspore.", 10) == 0 && strstr(name, "log")) {
        return true;
    }
    if (listing->entry[entry].parent != GD_NO_ENTRY && !gd_ends_with(name, ".log")) {
        return false;
    }
    gd_listing_peek(listing, entry, start, sizeof(start));
    return gd_glog_parse(start, &line);
}

/* The ERROR log repeats lines of the WARNING log, which repeats lines of the INFO log. */
static bool is_repeated(const struct gd_listing *listing, uint32_t entry)
{
    static const char *const levels[] = {".log.INFO.", ".log.WARNING.", ".log.ERROR."};
    const char *name = gd_base_name(listing->entry[entry].name);
    uint32_t parent = listing->entry[entry].parent;

    for (size_t i = 1; i < 3 && parent != GD_NO_ENTRY; i++) {
        const char *at = strstr(name, levels[i]);

        for (size_t lower = 0; at && lower < i; lower++) {
            size_t prefix = (size_t)(at - name) + strlen(levels[lower]);
            char begin[300];

            snprintf(begin, sizeof(begin), "%.*s%s", (int)(at - name), name, levels[lower]);
            for (uint32_t k = listing->entry[parent].first_child; k != GD_NO_ENTRY;
                 k = listing->entry[k].next) {
                const char *pid = strrchr(name, '.'), *other = listing->entry[k].name;
                const char *its = strrchr(other, '.');

                if (strncmp(other, begin, prefix) == 0 && pid && its && strcmp(pid, its) == 0) {
                    return true;
                }
            }
        }
    }
    return false;
}

static int find_places(const struct gd_dump_format *format, const struct gd_listing *listing,
                       struct gd_findings *findings, struct gd_err *err)
{
    return gd_findings_add_files(findings, format, listing, wants_file,
                                 "mindspore.*log*, or lines \"[LEVEL] MODULE(PID\"", err);
}

static int read_format(const struct gd_listing *listing, const struct gd_finding *finding,
                       struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                       struct gd_err *err)
{
    struct reading in = {.line = GD_BUF_INIT(MAX_LINE + 1),
                         .event = GD_BUF_INIT(MAX_TEXT + 1024),
                         .step = GD_EVERY_STEP};
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    struct gd_peer *peer;
    char path[PATH_MAX];
    int rc = gd_listing_path(listing, finding->root, path, sizeof(path), err);

    if (rc != GD_OK) {
        return rc;
    }
    if (is_repeated(listing, finding->root)) {
        return gd_dump_left_out(dump, path, "the log of a lower level contains the same lines",
                                err);
    }
    rc = gd_dump_catalog_beside(dump, ms_rank_of(path), "logs", &in.catalog, err);
    rc = rc != GD_OK ? rc : gd_listing_open(listing, finding->root, &disk, err);
    if (rc != GD_OK) {
        return rc;
    }
    peer = gd_catalog_peer(in.catalog);
    if (!peer->framework[0]) {
        snprintf(peer->framework, sizeof(peer->framework), "MindSpore");
    }
    rc = take_text(&in, disk, go_on, ctx, err);
    rc = rc != GD_OK ? rc : tell_counts(&in, gd_base_name(path), err);
    rc = rc != GD_OK ? rc : gd_catalog_add_fact(in.catalog, GD_FACT_LOG, path, err);
    gd_buf_deinit(&in.line);
    gd_buf_deinit(&in.event);
    return rc;
}

const struct gd_dump_format gd_glog_format = {
    .name = "glog",
    .what = "MindSpore logs",
    .find = find_places,
    .read = read_format,
};
