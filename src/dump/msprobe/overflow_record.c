// SPDX-License-Identifier: GPL-3.0-or-later
/* The output of `overflow record`: a directory for each call with a non-finite output, containing
 * overflow.json, forward_info.json or backward_info.json, and a .npy file per tensor. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/io/file_name.h"
#include "dump/msprobe/api_walk.h"

#define MAX_FILE (UINT64_C(256) << 20)

struct reading { /* of one directory */
    struct api_load *load;
    const char *folder;
    struct api_call *call;
    int64_t step;
};

static bool wants_file(const struct gd_listing *listing, uint32_t entry)
{
    const char *base = gd_base_name(listing->entry[entry].name);
    char start[129];

    return strcmp(base, "overflow.json") == 0 &&
           gd_listing_peek(listing, entry, start, sizeof(start)) > 0 &&
           strstr(start, "\"gradb.overflow\"");
}

/* "[rank1.]step4.2.fc.relu": the directory of one call. */
static void where_of(const char *path, struct api_where *ret)
{
    const char *slash = strrchr(path, '/'), *name = slash;
    long long step = 0;

    *ret = (struct api_where){.above = 1};
    while (name && name > path && name[-1] != '/') {
        name--;
    }
    if (!name || (sscanf(name, "step%lld.", &step) != 1 &&
                  sscanf(name, "rank%d.step%lld.", &ret->rank, &step) != 2)) {
        api_where_of(path, ret);
        return;
    }
    ret->step = step;
    ret->rank = ret->rank > 0 ? ret->rank : 0;
    snprintf(ret->root, sizeof(ret->root), "%.*s", name > path ? (int)(name - path - 1) : 1,
             name > path ? path : ".");
}

static const char *text_of(const cJSON *about, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(about, name));

    return text ? text : "";
}

static int64_t count_of(const cJSON *about, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(about, name);

    return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < 9e15
               ? (int64_t)item->valuedouble
               : 0;
}

/* A node that overflowed several times in a step is several calls. */
static int find_call(struct reading *in, const cJSON *about, struct gd_err *err)
{
    const char *node = text_of(about, "node"), *api = text_of(about, "api");
    char name[API_MAX_NAME], text[1024];
    const struct api_event *event;
    struct api_call *call;
    int rc;

    snprintf(name, sizeof(name), "%.4000s", node[0] ? node : api[0] ? api : "call");
    rc = api_call_get(in->load, name, &call, err);
    event = rc == GD_OK ? call->events : NULL;
    while (event && event->step != in->step) {
        event = event->next;
    }
    if (event) {
        size_t len = strlen(name);
        snprintf(name + len, sizeof(name) - len, "#%lld", (long long)count_of(about, "number"));
        rc = api_call_get(in->load, name, &call, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    in->call = call;
    snprintf(text, sizeof(text), "overflow %lld, %.200s, %.600s",
             (long long)count_of(about, "number"), text_of(about, "phase"), text_of(about, "line"));
    call->type = api_keep(in->load, text_of(about, "function"));
    rc = api_attr_add(in->load, call, "phase", text_of(about, "phase"), err);
    return rc != GD_OK ? rc : api_event_add(in->load, call, in->step, "overflow", text, err);
}

static int take_values(struct reading *in, const cJSON *values, bool is_input, const char *label,
                       struct gd_err *err)
{
    struct api_place place = {
        .is_input = is_input, .label = label, .step = in->step, .folder = in->folder};

    return api_elements(in->load, in->call, values, &place, err);
}

static int take_arguments(void *ctx, const char *name, const cJSON *value, struct gd_err *err)
{
    struct reading *in = ctx;
    int rc;

    (void)name;
    if (cJSON_IsArray(value)) {
        return take_values(in, value, true, "grad", err);
    }
    rc = take_values(in, cJSON_GetObjectItemCaseSensitive(value, "args"), true, "", err);
    return rc != GD_OK ? rc
                       : take_values(in, cJSON_GetObjectItemCaseSensitive(value, "kwargs"), true,
                                     "kwargs", err);
}

static int take_stack(void *ctx, const char *name, const cJSON *value, struct gd_err *err)
{
    struct reading *in = ctx;
    (void)name;
    return api_frames(in->load, in->call, value, err);
}

/* A missing file is ignored. */
static int take_file(struct reading *in, const char *name, api_member_fn fn, struct gd_err *err)
{
    char path[PATH_MAX];
    struct gd_file_text text;
    int rc;

    snprintf(path, sizeof(path), "%.3900s/%s", in->folder, name);
    rc = gd_file_text_read(path, MAX_FILE, &text, err);
    if (rc != GD_OK) {
        return rc == GD_ENOTFOUND ? GD_OK : rc;
    }
    rc = api_members(&text, path, "", fn, in, err);
    free(text.data);
    return rc;
}

static int take_all(struct reading *in, const cJSON *about, struct gd_err *err)
{
    int rc = find_call(in, about, err);

    rc = rc != GD_OK ? rc : take_file(in, "forward_info.json", take_arguments, err);
    rc = rc != GD_OK ? rc : take_file(in, "backward_info.json", take_arguments, err);
    rc = rc != GD_OK
             ? rc
             : take_values(in, cJSON_GetObjectItemCaseSensitive(about, "outputs"), false, "", err);
    return rc != GD_OK ? rc : take_file(in, "stack_info.json", take_stack, err);
}

static int take_record(struct api_load *load, const char *path, const struct api_where *where,
                       struct gd_err *err)
{
    struct gd_json_options options = {.max_depth = GD_JSON_MAX_DEPTH, .what = path};
    char folder[PATH_MAX];
    struct reading in = {.load = load, .folder = folder};
    struct gd_file_text text;
    cJSON *about = NULL;
    int rc = gd_file_text_read(path, MAX_FILE, &text, err);

    (void)where;
    if (rc != GD_OK) {
        return rc;
    }
    gd_folder_of(path, folder, sizeof(folder));
    rc = gd_json_parse(text.data, text.size, &options, &about, err);
    if (rc == GD_OK) {
        struct gd_peer *peer = gd_catalog_peer(load->catalog);
        in.step = count_of(about, "step");
        snprintf(peer->framework, sizeof(peer->framework), "PyTorch");
        snprintf(peer->version, sizeof(peer->version), "%s", text_of(about, "torch"));
        snprintf(peer->program, sizeof(peer->program), "%s", text_of(about, "program"));
        rc = take_all(&in, about, err);
    }
    cJSON_Delete(about);
    free(text.data);
    return rc;
}

static const struct api_walk_ops ops = {
    .rule = "overflow.json with the format gradb.overflow",
    .wants = wants_file,
    .take = take_record,
    .where = where_of,
    .steps_inside = true,
};

const struct gd_dump_format gd_overflow_format = {
    .name = "gradb-overflow",
    .what = "overflows that gradb recorded (overflow.json and the call's tensors)",
    .detail = &ops,
    .find = api_walk_find,
    .read = api_walk_read,
};
