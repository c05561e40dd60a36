// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Memory timelines of torch.profiler, which export_memory_timeline writes: bytes by category over
 * time, without names, stacks or lines. Plain or gzip, one of
 *
 *   [[TIME, ...], [[0, BYTES OF CATEGORY 0, ...], ...]]   microseconds; .json
 *   [[TIME, ACTION, BYTES, CATEGORY], ...]                nanoseconds, -1: before; .raw.json.gz
 *
 * Categories are numbered as in _CATEGORY_TO_COLORS, actions as in Action, both of
 * torch/profiler/_memory_profiler.py (1.13 to 2.13).
 */
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "dump/format.h"
#include "dump/io/file_name.h"
#include "dump/trace/trace_stream.h"
#include "engine/memory/memory.h"

#define CATEGORIES 8
#define MAX_TIMES  (UINT32_C(1) << 24)
#define MAX_BYTES  (INT64_C(1) << 50)

static const struct {
    const char *name;
    enum gd_memory_kind kind;
} categories[CATEGORIES] = {
    {"parameters", GD_MEMORY_WEIGHTS},      {"optimizer state", GD_MEMORY_OPTIMIZER},
    {"inputs", GD_MEMORY_INPUTS},           {"temporary", GD_MEMORY_OTHER},
    {"activations", GD_MEMORY_ACTIVATIONS}, {"gradients", GD_MEMORY_GRADIENTS},
    {"autograd's own", GD_MEMORY_OTHER},    {"unknown", GD_MEMORY_OTHER}};

enum action { PREEXISTING = 1, CREATE, INCREMENT_VERSION, DESTROY };

struct timeline {
    struct trace_stream stream;
    int64_t *time; /* of the form with two lists */
    size_t times, time_cap;
    size_t moments;
    int64_t now[CATEGORIES], count[CATEGORIES]; /* counts: of the form with events */
    int64_t at_peak[CATEGORIES], count_at_peak[CATEGORIES], peak;
    double first, peak_at; /* seconds; negative: unknown */
    bool has_events;
};

/* ---- recognising ----------------------------------------------------------------------------- */

/* Whether a text begins with two brackets and a number. */
static bool begins_well(const char *text)
{
    text += strspn(text, " \t\r\n");
    if (*text++ != '[') {
        return false;
    }
    text += strspn(text, " \t\r\n");
    if (*text++ != '[') {
        return false;
    }
    text += strspn(text, " \t\r\n");
    return isdigit((unsigned char)*text) || (*text == '-' && text[1] == '1') || *text == ']';
}

static bool packed_begins_well(const char *path)
{
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    struct trace_stream stream = {.at = 0};
    struct gd_json_token token;
    bool found = false;

    if (gd_disk_open(AT_FDCWD, path, true, &disk, NULL) != GD_OK) {
        return false;
    }
    stream.disk = disk;
    if (trace_stream_open(&stream, NULL) == GD_OK &&
        gd_json_next(&stream.json, &token, NULL) == GD_OK && token.kind == GD_JSON_ARRAY) {
        char start[64]; /* the stream's window holds what follows */
        snprintf(start, sizeof(start), "%.*s", (int)(stream.json.size < 63 ? stream.json.size : 63),
                 stream.json.text);
        found = begins_well(start);
    }
    trace_stream_close(&stream);
    return found;
}

bool gd_is_memory_timeline(const struct gd_listing *listing, uint32_t index)
{
    const struct gd_listing_entry *entry = &listing->entry[index];
    char path[PATH_MAX], start[64];

    if (entry->is_directory) {
        return false;
    }
    if (gd_ends_with(entry->name, ".json")) {
        return gd_listing_peek(listing, index, start, sizeof(start)) > 0 && begins_well(start);
    }
    return gd_ends_with(entry->name, ".json.gz") &&
           gd_listing_path(listing, index, path, sizeof(path), NULL) == GD_OK &&
           packed_begins_well(path);
}

static int find_timelines(const struct gd_dump_format *format, const struct gd_listing *listing,
                          struct gd_findings *findings, struct gd_err *err)
{
    return gd_findings_add_files(findings, format, listing, gd_is_memory_timeline,
                                 "JSON that is lists of numbers", err);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int next_token(struct timeline *line, struct gd_json_token *ret, struct gd_err *err)
{
    return gd_json_next(&line->stream.json, ret, err);
}

static int fail_here(struct timeline *line, const struct gd_json_token *token, const char *what,
                     struct gd_err *err)
{
    return gd_json_fail(&line->stream.json, token->at, GD_EPROTO, err, "not a memory timeline: %s",
                        what);
}

/* Reads the numbers of a list whose beginning was read; too many: fails. */
static int read_numbers(struct timeline *line, int64_t *ret, size_t most, size_t *count,
                        struct gd_err *err)
{
    struct gd_json_token token;
    int rc;

    *count = 0;
    while ((rc = next_token(line, &token, err)) == GD_OK && token.kind == GD_JSON_NUMBER) {
        char *end;
        long long value = strtoll(token.text, &end, 10);

        if (*count == most || *end) {
            return fail_here(line, &token, *end ? "whole numbers expected" : "a row is too long",
                             err);
        }
        ret[(*count)++] = value;
    }
    return rc != GD_OK || token.kind == GD_JSON_ARRAY_END
               ? rc
               : fail_here(line, &token, "numbers expected", err);
}

static void note_moment(struct timeline *line, double seconds)
{
    int64_t sum = 0;

    for (int i = 0; i < CATEGORIES; i++) {
        sum += line->now[i];
    }
    line->first = line->first < 0 ? seconds : line->first;
    if (line->moments++ == 0 || sum > line->peak) {
        line->peak = sum;
        line->peak_at = seconds;
        memcpy(line->at_peak, line->now, sizeof(line->now));
        memcpy(line->count_at_peak, line->count, sizeof(line->count));
    }
}

/* [TIME, ACTION, BYTES, CATEGORY] */
static int take_event(struct timeline *line, const int64_t *number, struct gd_err *err)
{
    int64_t bytes = number[2], category = number[3];

    if (category < 0 || category >= CATEGORIES || bytes > MAX_BYTES || bytes < -MAX_BYTES ||
        number[1] < PREEXISTING || number[1] > DESTROY || line->moments == MAX_TIMES) {
        return gd_json_fail(&line->stream.json, line->stream.json.at, GD_EPROTO, err,
                            "not a memory timeline: an impossible event");
    }
    line->now[category] += bytes;
    if (line->now[category] > MAX_BYTES || line->now[category] < -MAX_BYTES) {
        return gd_json_fail(&line->stream.json, line->stream.json.at, GD_EPROTO, err,
                            "impossible sums of bytes");
    }
    /* an increment of the version is a pair: of the old one, and of the new one */
    line->count[category] += bytes >= 0 ? 1 : -1;
    note_moment(line, number[0] < 0 ? -1 : (double)number[0] / 1e9);
    return GD_OK;
}

/* [0, BYTES, ...] at the moment of the same index. */
static int take_sizes(struct timeline *line, const int64_t *number, size_t count,
                      struct gd_err *err)
{
    for (size_t i = 0; i < CATEGORIES; i++) {
        int64_t bytes = i + 1 < count ? number[i + 1] : 0;

        if (bytes > MAX_BYTES || bytes < -MAX_BYTES) {
            return gd_json_fail(&line->stream.json, line->stream.json.at, GD_EPROTO, err,
                                "an impossible number of bytes");
        }
        line->now[i] = bytes;
    }
    note_moment(line, line->moments < line->times ? (double)line->time[line->moments] / 1e6 : -1);
    return GD_OK;
}

/* The rest of the first inner list: of four numbers if it is an event, otherwise all times. */
static int read_first(struct timeline *line, struct gd_err *err)
{
    struct gd_json_token token;
    int rc;

    while ((rc = next_token(line, &token, err)) == GD_OK && token.kind == GD_JSON_NUMBER) {
        if (line->times == MAX_TIMES) {
            return gd_fail(err, GD_ELIMIT, "more than %u moments", MAX_TIMES);
        }
        if (!gd_grow_list(&line->time, line->times, &line->time_cap, sizeof(*line->time))) {
            return gd_fail_nomem(err);
        }
        char *end;
        line->time[line->times++] = strtoll(token.text, &end, 10);
        if (*end) {
            return fail_here(line, &token, "whole numbers expected", err);
        }
    }
    return rc != GD_OK || token.kind == GD_JSON_ARRAY_END
               ? rc
               : fail_here(line, &token, "numbers expected", err);
}

/* The rows that follow, each a list; then the end of the list that contains them. */
static int read_rows(struct timeline *line, struct gd_err *err)
{
    struct gd_json_token token;
    int64_t number[CATEGORIES + 1];
    size_t count;
    int rc;

    while ((rc = next_token(line, &token, err)) == GD_OK && token.kind == GD_JSON_ARRAY) {
        rc = read_numbers(line, number, CATEGORIES + 1, &count, err);
        if (rc == GD_OK && line->has_events && count != 4) {
            rc = fail_here(line, &token, "events of four numbers expected", err);
        }
        rc = rc != GD_OK        ? rc
             : line->has_events ? take_event(line, number, err)
                                : take_sizes(line, number, count, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    return rc != GD_OK || token.kind == GD_JSON_ARRAY_END
               ? rc
               : fail_here(line, &token, "lists expected", err);
}

/* A list of four numbers is an event where no list of lists follows it: times of four moments are
 * followed by one. */
static int read_timeline(struct timeline *line, struct gd_err *err)
{
    struct gd_json_token token;
    int rc = next_token(line, &token, err);

    rc = rc != GD_OK ? rc : next_token(line, &token, err);
    if (rc == GD_OK && token.kind != GD_JSON_ARRAY) {
        return fail_here(line, &token, "lists expected", err);
    }
    rc = rc != GD_OK ? rc : read_first(line, err);
    if (rc == GD_OK && line->times == 4 && line->time[1] >= PREEXISTING &&
        line->time[1] <= DESTROY) {
        line->has_events = true;
        rc = take_event(line, line->time, err);
        return rc != GD_OK ? rc : read_rows(line, err);
    }
    rc = rc != GD_OK ? rc : next_token(line, &token, err);
    if (rc == GD_OK && token.kind != GD_JSON_ARRAY) {
        return fail_here(line, &token, "a list of sizes expected", err);
    }
    return rc != GD_OK ? rc : read_rows(line, err);
}

/* ---- the report ------------------------------------------------------------------------------ */

static void add_kind(struct gd_memory *report, enum gd_memory_kind kind, int64_t bytes,
                     int64_t count)
{
    report->kind[kind].bytes += bytes > 0 ? bytes : 0;
    report->kind[kind].count += bytes > 0 ? count : 0;
}

static int report_timeline(const struct timeline *line, struct gd_memory *report)
{
    char text[160];
    int rc = GD_OK;

    snprintf(text, sizeof(text),
             "at the end of a memory timeline of torch.profiler (%zu moments); it has no lines: a "
             "snapshot has them",
             line->moments);
    report->source = gd_memory_text(report, text);
    report->unit = line->has_events ? "tensor" : "kind";
    report->peak.bytes = line->peak > 0 ? line->peak : 0;
    if (line->peak_at >= 0 && line->first >= 0) {
        snprintf(text, sizeof(text), "%.6g s after the first moment", line->peak_at - line->first);
        report->peak.note = gd_memory_text(report, text);
    }
    for (int i = 0; i < CATEGORIES; i++) {
        int64_t count = line->has_events ? line->count[i] : 1;

        add_kind(report, categories[i].kind, line->now[i], count > 0 ? count : 0);
        if (rc == GD_OK && line->at_peak[i] > 0) {
            rc = gd_memory_add_peak_node(
                report,
                &(struct gd_memory_row){.name = categories[i].name,
                                        .where = "",
                                        .detail = "",
                                        .kind = categories[i].kind,
                                        .bytes = line->at_peak[i],
                                        .count = line->has_events ? line->count_at_peak[i] : -1});
        }
    }
    return rc;
}

static int read_format(const struct gd_listing *listing, const struct gd_finding *finding,
                       struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                       struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    struct timeline line = {.stream = {.go_on = go_on, .ctx = ctx}, .first = -1, .peak_at = -1};
    struct gd_catalog *catalog;
    struct gd_memory *memory;
    char path[PATH_MAX];
    bool cut = false;
    int rc = gd_listing_path(listing, finding->root, path, sizeof(path), err);

    rc = rc != GD_OK ? rc : gd_disk_open(AT_FDCWD, path, true, &disk, err);
    line.stream.disk = disk;
    rc = rc != GD_OK ? rc : trace_stream_open(&line.stream, err);
    rc = rc != GD_OK ? rc : read_timeline(&line, err);
    if (rc == GD_EPROTO) {
        cut = trace_stream_is_cut(&line.stream, err);
        rc = cut && line.moments > 0 ? GD_OK : rc;
    }
    rc = rc != GD_OK ? rc : gd_dump_catalog(dump, 0, path, &catalog, err);
    rc = rc != GD_OK ? rc : gd_catalog_memory(catalog, &memory, err);
    if (rc == GD_OK && report_timeline(&line, memory) != GD_OK) {
        rc = gd_fail_nomem(err);
    }
    if (rc == GD_OK && cut) {
        rc = gd_catalog_add_fact(catalog, gd_base_name(path),
                                 "SUSPICIOUS: the file is truncated; what precedes that was read",
                                 err);
    }
    trace_stream_close(&line.stream);
    free(line.time);
    return rc;
}

const struct gd_dump_format gd_memory_timeline_format = {
    .name = "memory-timeline",
    .what = "memory timelines of torch.profiler (export_memory_timeline, JSON)",
    .find = find_timelines,
    .read = read_format,
};
