// SPDX-License-Identifier: GPL-3.0-or-later
/* ptdbg_ascend, all versions: lines of JSON in a file named .pkl that is not a pickle, and .npy
 * files in the directory with the same stem. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/io/file_name.h"
#include "dump/msprobe/api_walk.h"

#define MAX_FILE      (UINT64_C(2) << 30)
#define MARK_OVERFLOW 101 /* in place of the step marker */

struct reading {
    struct api_load *load;
    const struct api_where *where;
    const char *folder; /* of the .npy files */
};

/* ---- names ----------------------------------------------------------------------------------- */

struct parsed { /* the parts of "API_input.0.1" */
    size_t api;
    bool is_input;
    const char *label;
};

/* From the right, because call names may contain "_input". */
static bool parse_name(const char *name, struct parsed *ret)
{
    static const char *const words[] = {"_input", "_output", ".input", ".output"};

    for (size_t at = strlen(name); at-- > 1;) {
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
            size_t len = strlen(words[i]);
            char end = strncmp(name + at, words[i], len) == 0 ? name[at + len] : 'x';

            if (end == '\0' || end == '.') {
                *ret = (struct parsed){
                    .api = at, .is_input = i % 2 == 0, .label = name + at + len + (end == '.')};
                return true;
            }
        }
    }
    return false;
}

static int call_of(struct reading *in, const char *name, size_t len, struct api_call **ret,
                   struct gd_err *err)
{
    char api[API_MAX_NAME + 1];

    if (len > API_MAX_NAME) {
        return gd_fail(err, GD_ELIMIT, "a name of %zu bytes", len);
    }
    memcpy(api, name, len);
    api[len] = '\0';
    return api_call_get(in->load, api, ret, err);
}

/* ---- records --------------------------------------------------------------------------------- */

static int take_stack(struct reading *in, const char *name, const cJSON *frames, struct gd_err *err)
{
    size_t len = strlen(name) - strlen("stack_info");
    struct api_call *call;
    int rc;

    len -= len > 0 && (name[len - 1] == '_' || name[len - 1] == '.');
    rc = call_of(in, name, len, &call, err);
    return rc != GD_OK ? rc : api_frames(in->load, call, frames, err);
}

static int find_file(struct reading *in, const char *name, struct api_value *value,
                     struct gd_err *err)
{
    char file[API_MAX_NAME + 8];
    struct gd_err why;
    int rc;

    snprintf(file, sizeof(file), "%.*s.npy", API_MAX_NAME, name);
    rc = api_source(in->folder, file, &value->source, &why);
    if (rc == GD_OK && value->dtype == GD_BFLOAT16) {
        value->dtype = GD_FLOAT32;
        value->note = "bfloat16 saved as float32";
    }
    return rc == GD_ENOMEM ? gd_fail(err, rc, "%s", why.text) : GD_OK;
}

static int take_tensor(struct reading *in, const char *name, const cJSON *mark, struct gd_err *err)
{
    const cJSON *md5 = mark->next, *dtype = md5 ? md5->next : NULL;
    const cJSON *dims = dtype ? dtype->next : NULL, *summary = dims ? dims->next : NULL;
    const char *type = cJSON_GetStringValue(dtype), *digest = cJSON_GetStringValue(md5);
    struct api_figures figures = {.max = summary ? summary->child : NULL};
    struct api_value value = {.step = in->where->step};
    struct api_call *call;
    struct gd_stats stats;
    struct gd_shape shape;
    struct parsed parsed;
    char crc[48];
    int rc;

    if (!parse_name(name, &parsed) || !type) {
        return gd_fail(err, GD_EPROTO, "\"%.100s\" is neither a tensor nor a stack", name);
    }
    figures.min = figures.max ? figures.max->next : NULL;
    figures.mean = figures.min ? figures.min->next : NULL;
    figures.norm = figures.mean ? figures.mean->next : NULL;
    value.is_input = parsed.is_input;
    value.label = parsed.label;
    value.dtype = gd_stored_dtype(gd_stored_from_name(type));
    value.shape = api_shape(dims, &shape) ? &shape : NULL;
    if (api_stats(&figures, value.shape, false, &stats)) {
        value.stats = &stats;
        value.note = api_stats_note(&stats);
    }
    if (digest && digest[0]) {
        snprintf(crc, sizeof(crc), "crc32:%.32s", digest);
        value.digest = crc;
    }
    rc = call_of(in, name, parsed.api, &call, err);
    rc = rc != GD_OK ? rc : find_file(in, name, &value, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = api_value_add(in->load, call, &value, err);
    if (rc == GD_OK && cJSON_IsNumber(mark) && mark->valuedouble == MARK_OVERFLOW) {
        rc = api_event_add(in->load, call, in->where->step, "overflow",
                           "ptdbg_ascend found an overflow here", err);
    }
    return rc;
}

static int take_line(struct reading *in, const char *line, size_t len, struct gd_err *err)
{
    const char *name;
    cJSON *tree;
    int rc = gd_json_parse(line, len, NULL, &tree, err);

    if (rc != GD_OK) {
        return rc;
    }
    name = cJSON_IsArray(tree) ? cJSON_GetStringValue(tree->child) : NULL;
    if (!name || !name[0] || !tree->child->next) {
        rc = gd_fail(err, GD_EPROTO, "not an array that begins with a name");
    } else if (gd_ends_with(name, "stack_info")) {
        rc = take_stack(in, name, tree->child->next, err);
    } else {
        rc = take_tensor(in, name, tree->child->next, err);
    }
    cJSON_Delete(tree);
    return rc;
}

static int take_lines(struct reading *in, const struct gd_file_text *text, const char *path,
                      struct gd_err *err)
{
    size_t at = 0, number = 0, bad = 0;
    int rc = GD_OK;

    while (rc == GD_OK && at < text->size) {
        const char *end = memchr(text->data + at, '\n', text->size - at);
        size_t len = end ? (size_t)(end - text->data) - at : text->size - at;
        struct gd_err why;

        number++;
        if (strspn(text->data + at, " \t\r") < len &&
            take_line(in, text->data + at, len, &why) != GD_OK) {
            rc = api_bad_row(in->load, path, number, ++bad, &why, err);
        }
        at += len + 1;
    }
    return rc;
}

/* Files are written at once, lines at the end: after a crash some files have no line. */
static int take_files(struct reading *in, struct gd_err *err)
{
    DIR *dir = opendir(in->folder);
    const struct dirent *entry;
    int rc = GD_OK;

    while (dir && rc == GD_OK && (entry = readdir(dir))) {
        size_t len = strlen(entry->d_name);
        struct api_value value = {.step = in->where->step};
        struct api_call *call;
        struct parsed parsed;
        char name[300];

        if (len <= 4 || len >= sizeof(name) || strcmp(entry->d_name + len - 4, ".npy") != 0) {
            continue;
        }
        snprintf(name, sizeof(name), "%.*s", (int)len - 4, entry->d_name);
        if (parse_name(name, &parsed)) {
            value.is_input = parsed.is_input;
            value.label = parsed.label;
            rc = call_of(in, name, parsed.api, &call, err);
            rc = rc != GD_OK ? rc : find_file(in, name, &value, err);
            rc = rc != GD_OK || !value.source ? rc : api_value_add(in->load, call, &value, err);
        }
    }
    if (dir) {
        closedir(dir);
    }
    return rc;
}

/* ---- the format ------------------------------------------------------------------------------ */

/* Text that begins with an array; a real pickle begins with byte 0x80. */
static bool wants_file(const struct gd_listing *listing, uint32_t entry)
{
    const char *name = listing->entry[entry].name;
    size_t len = strlen(name);
    char start[64];
    size_t size;

    if (len < 5 || strcmp(name + len - 4, ".pkl") != 0) {
        return false;
    }
    size = gd_listing_peek(listing, entry, start, sizeof(start));
    return size >= 2 && start[0] == '[' && start[strspn(start + 1, " ") + 1] == '"';
}

static int take_dump(struct api_load *load, const char *path, const struct api_where *where,
                     struct gd_err *err)
{
    struct reading in = {.load = load, .where = where};
    struct gd_peer *peer = gd_catalog_peer(load->catalog);
    char folder[PATH_MAX];
    struct gd_file_text text;
    int rc = gd_file_text_read(path, MAX_FILE, &text, err);

    if (rc != GD_OK) {
        return rc;
    }
    snprintf(folder, sizeof(folder), "%.*s", (int)strlen(path) - 4, path);
    in.folder = folder;
    snprintf(peer->framework, sizeof(peer->framework), "PyTorch");
    api_step(load, where->step);
    rc = take_lines(&in, &text, path, err);
    free(text.data);
    return rc != GD_OK ? rc : take_files(&in, err);
}

static const struct api_walk_ops ops = {
    .rule = ".pkl files whose lines are arrays of JSON",
    .wants = wants_file,
    .take = take_dump,
};

const struct gd_dump_format gd_ptdbg_format = {
    .name = "ptdbg",
    .what = "ptdbg_ascend: calls of PyTorch on Ascend",
    .detail = &ops,
    .find = api_walk_find,
    .read = api_walk_read,
};
