// SPDX-License-Identifier: GPL-3.0-or-later
/* forward_info, backward_info and stack_info files: the inputs of calls, as written by
 * ptdbg_ascend's overflow replay and accuracy checker. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "dump/io/file_name.h"
#include "dump/msprobe/api_walk.h"

#define MAX_FILE (UINT64_C(2) << 30)

struct reading {
    struct api_load *load;
    const struct api_where *where;
    const char *folder; /* directory of the files with values */
};

/* "forward_info_PID.json": a pointer to PID; NULL: another name. */
static const char *parse_name(const char *name, const char *word)
{
    size_t len = strlen(word), digits;

    name = gd_base_name(name);
    if (strncmp(name, word, len) != 0) {
        return NULL;
    }
    digits = strspn(name + len, "0123456789");
    return digits && strcmp(name + len + digits, ".json") == 0 ? name + len : NULL;
}

/* One of a folder of `overflow record`, opened by itself: it has no PID. */
static bool is_own(const char *name)
{
    name = gd_base_name(name);
    return strcmp(name, "forward_info.json") == 0 || strcmp(name, "backward_info.json") == 0;
}

static bool wants_file(const struct gd_listing *listing, uint32_t entry)
{
    const char *name = listing->entry[entry].name;

    return parse_name(name, "forward_info_") || parse_name(name, "backward_info_") ||
           (listing->entry[entry].parent == GD_NO_ENTRY && is_own(name));
}

static int take_api(void *ctx, const char *name, const cJSON *value, struct gd_err *err)
{
    struct reading *in = ctx;
    struct api_place place = {
        .is_input = true, .label = "", .step = in->where->step, .folder = in->folder};
    const cJSON *kwargs = cJSON_GetObjectItemCaseSensitive(value, "kwargs");
    struct api_call *call;
    int rc = api_call_get(in->load, name, &call, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (cJSON_IsArray(value)) {
        return api_elements(in->load, call, value, &place, err);
    }
    rc = api_elements(in->load, call, cJSON_GetObjectItemCaseSensitive(value, "args"), &place, err);
    place.label = "kwargs";
    return rc != GD_OK ? rc : api_elements(in->load, call, kwargs, &place, err);
}

static int take_stack(void *ctx, const char *name, const cJSON *value, struct gd_err *err)
{
    struct reading *in = ctx;

    return api_frames(in->load, api_call_find(in->load, name), value, err);
}

static int take_calls(struct api_load *load, const char *path, const struct api_where *where,
                      struct gd_err *err)
{
    struct reading in = {.load = load, .where = where};
    const char *pid = parse_name(path, "forward_info_");
    char folder[PATH_MAX], stack[PATH_MAX];
    int rc;

    pid = pid ? pid : parse_name(path, "backward_info_");
    gd_folder_of(path, folder, sizeof(folder));
    snprintf(stack, sizeof(stack), "%.3000s/stack_info%s%.40s", folder, pid ? "_" : "",
             pid ? pid : ".json");
    in.folder = folder;
    snprintf(gd_catalog_peer(load->catalog)->framework,
             sizeof(gd_catalog_peer(load->catalog)->framework), "PyTorch");
    rc = api_take_members(load, path, MAX_FILE, take_api, &in, err);
    return rc != GD_OK ? rc : api_take_members(load, stack, MAX_FILE, take_stack, &in, err);
}

static const struct api_walk_ops ops = {
    .rule = "forward_info_PID.json, backward_info_PID.json",
    .wants = wants_file,
    .take = take_calls,
};

const struct gd_dump_format gd_api_info_format = {
    .name = "api-info",
    .what = "API info files of ptdbg_ascend (forward_info, backward_info)",
    .detail = &ops,
    .find = api_walk_find,
    .read = api_walk_read,
};
