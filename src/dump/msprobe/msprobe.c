// SPDX-License-Identifier: GPL-3.0-or-later
/* msprobe: dump.json with calls and modules, stack.json, construct.json, tensor files. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/io/file_name.h"
#include "dump/msprobe/api_walk.h"
#include "dump/msprobe/msprobe.h"

#define MAX_FILE (UINT64_C(2) << 30)

struct reading { /* of one dump.json */
    struct api_load *load;
    const struct api_where *where;
    const char *folder; /* with the tensors */
    char framework[32], task[40], level[40];
};

/* ---- recognising ----------------------------------------------------------------------------- */

/* The keys of the root tell msprobe's dump.json from the configuration of the same name, whose key
 * is "dump". */
static bool looks_so(const char *start, size_t size)
{
    static const char *const keys[] = {"task", "level", "framework", "dump_data_dir", "data"};
    struct gd_json json = {.text = start, .size = size};
    struct gd_json_token token;
    bool found = false;

    if (gd_json_next(&json, &token, NULL) == GD_OK && token.kind == GD_JSON_OBJECT &&
        gd_json_next(&json, &token, NULL) == GD_OK && token.kind == GD_JSON_KEY) {
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
            found = found || strcmp(token.text, keys[i]) == 0;
        }
    }
    gd_json_deinit(&json);
    return found;
}

static bool wants_file(const struct gd_listing *listing, uint32_t entry)
{
    const char *name = gd_base_name(listing->entry[entry].name);
    char start[513];
    if (strcmp(name, "dump.json") != 0 && strcmp(name, "debug.json") != 0) {
        return false;
    }
    return looks_so(start, gd_listing_peek(listing, entry, start, sizeof(start)));
}

/* ---- entries --------------------------------------------------------------------------------- */

/* A parameter, or its gradient, of "Module.PATH.Class.forward.N" becomes a node of its own,
 * PATH/NAME. */
static int take_parameter(struct reading *in, const char *of, const cJSON *element, bool is_grad,
                          struct gd_err *err)
{
    struct api_place place = {.label = "", .step = in->where->step, .folder = in->folder};
    char name[API_MAX_NAME];
    struct api_call *call;
    const char *leaf = element->string ? element->string : "";
    size_t path = strlen(of);
    int rc;

    for (int dots = 0; path > 0 && dots < 3; path--) { /* strip Class.forward.N */
        dots += of[path - 1] == '.';
    }
    snprintf(name, sizeof(name), "%.*s.%.1000s%s", (int)path, of, leaf, is_grad ? ".grad" : "");
    rc = api_call_get(in->load, name, &call, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!call->parent) {
        size_t prefix = strncmp(of, "Cell.", 5) == 0 ? 5 : 7;
        char scope[API_MAX_NAME];

        snprintf(scope, sizeof(scope), "%.*s", path > prefix ? (int)(path - prefix) : 0,
                 of + (path > prefix ? prefix : 0));
        call->kind = is_grad ? GD_NODE_GRADIENT : GD_NODE_WEIGHT;
        call->type = is_grad ? "Gradient" : "Parameter";
        call->leaf = strlen(leaf) + (is_grad ? 5 : 0);
        call->parent = api_keep(in->load, scope);
    }
    place.nan_may_hide = strcmp(in->framework, "mindspore") == 0;
    element = cJSON_IsArray(element) && element->child && !element->child->next ? element->child
                                                                                : element;
    return api_elements(in->load, call, element, &place, err);
}

static int take_parameters(struct reading *in, const char *of, const cJSON *object, bool is_grad,
                           struct gd_err *err)
{
    const cJSON *element;
    int rc = GD_OK;

    cJSON_ArrayForEach(element, object)
    {
        if (rc == GD_OK && element->string) {
            rc = take_parameter(in, of, element, is_grad, err);
        }
    }
    return rc;
}

static int take_part(struct reading *in, struct api_call *call, const cJSON *part,
                     struct gd_err *err)
{
    const char *key = part->string ? part->string : "";
    struct api_place place = {.is_input = strncmp(key, "input", 5) == 0,
                              .label = strcmp(key, "input_kwargs") == 0 ? "kwargs" : "",
                              .step = in->where->step,
                              .folder = in->folder,
                              .nan_may_hide = strcmp(in->framework, "mindspore") == 0};

    if (strcmp(key, "parameters") == 0) {
        return take_parameters(in, call->name, part, false, err);
    }
    if (strcmp(key, "is_recompute") == 0 && cJSON_IsTrue(part)) {
        return api_attr_add(in->load, call, "recompute", "true", err);
    }
    if (strcmp(key, "is_nan") == 0 && cJSON_IsTrue(part)) { /* applies to the whole call */
        return api_event_add(in->load, call, in->where->step, "overflow",
                             "msprobe's nan_check: NaN or infinity in its results", err);
    }
    if (!place.is_input && strcmp(key, "output") != 0) {
        return GD_OK;
    }
    return api_elements(in->load, call, part, &place, err);
}

static int take_entry(void *ctx, const char *name, const cJSON *value, struct gd_err *err)
{
    struct reading *in = ctx;
    struct api_call *call;
    const cJSON *part;
    int rc;

    if (strstr(name, ".parameters_grad.")) {
        return take_parameters(in, name, value, true, err);
    }
    rc = api_call_get(in->load, name, &call, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (strcmp(in->task, "overflow_check") == 0) {
        rc = api_event_add(in->load, call, in->where->step, "overflow",
                           "msprobe found an overflow in its results", err);
    }
    if (rc == GD_OK && gd_ends_with(name, ".debug")) { /* the tensor itself, or a container of it */
        struct api_place place = {.label = "",
                                  .step = in->where->step,
                                  .folder = in->folder,
                                  .nan_may_hide = strcmp(in->framework, "mindspore") == 0};

        return api_elements(in->load, call, value, &place, err);
    }
    cJSON_ArrayForEach(part, value)
    {
        rc = rc != GD_OK ? rc : take_part(in, call, part, err);
    }
    return rc;
}

/* ---- stacks and modules ---------------------------------------------------------------------- */

/* New: {"0": [[names], [frames]]}; old: {name: [frames]}. */
static int take_stack(void *ctx, const char *name, const cJSON *value, struct gd_err *err)
{
    struct reading *in = ctx;
    const cJSON *names = cJSON_IsArray(value) ? value->child : NULL;
    const cJSON *frames = names ? names->next : NULL, *item;
    struct api_call shared = {.frames = NULL};
    int rc;

    if (!cJSON_IsArray(names) || !cJSON_IsArray(frames) || frames->next) {
        return api_frames(in->load, api_call_find(in->load, name), value, err);
    }
    rc = api_frames(in->load, &shared, frames, err);
    cJSON_ArrayForEach(item, names)
    {
        struct api_call *call =
            cJSON_IsString(item) ? api_call_find(in->load, item->valuestring) : NULL;

        if (rc == GD_OK && call && !call->frames) {
            call->frames = shared.frames;
            call->frame_count = shared.frame_count;
        }
    }
    return rc;
}

static int take_parent(void *ctx, const char *name, const cJSON *value, struct gd_err *err)
{
    struct reading *in = ctx;
    struct api_call *call = api_call_find(in->load, name);
    const cJSON *parent = cJSON_IsArray(value) ? value->child : value; /* [parent, micro step] */

    if (call && cJSON_IsArray(value) && parent && cJSON_IsNumber(parent->next) &&
        api_attr_add(in->load, call, "micro step", parent->next->valuestring, err) != GD_OK) {
        return GD_ENOMEM;
    }
    if (call && !call->parent && cJSON_IsString(parent) && parent->valuestring[0] &&
        strlen(parent->valuestring) <= API_MAX_NAME) {
        call->parent = api_keep(in->load, parent->valuestring);
        if (!call->parent) {
            return gd_fail_nomem(err);
        }
    }
    return GD_OK;
}

/* ---- a file ---------------------------------------------------------------------------------- */

/* Reads what the root says before its data. */
static void read_root(struct reading *in, const struct gd_file_text *text)
{
    const struct {
        const char *key;
        char *out;
        size_t size;
    } wanted[] = {{"framework", in->framework, sizeof(in->framework)},
                  {"task", in->task, sizeof(in->task)},
                  {"level", in->level, sizeof(in->level)}};
    struct gd_json json = {.text = text->data, .size = text->size, .max_depth = GD_JSON_MAX_DEPTH};
    struct gd_json_token token;
    int rc = gd_json_next(&json, &token, NULL);

    while (rc == GD_OK && gd_json_next(&json, &token, NULL) == GD_OK && token.kind == GD_JSON_KEY &&
           strcmp(token.text, "data") != 0) {
        size_t k = 0;

        while (k < sizeof(wanted) / sizeof(wanted[0]) && strcmp(token.text, wanted[k].key) != 0) {
            k++;
        }
        rc = gd_json_next(&json, &token, NULL);
        if (rc == GD_OK && token.kind == GD_JSON_STRING && k < sizeof(wanted) / sizeof(wanted[0])) {
            snprintf(wanted[k].out, wanted[k].size, "%s", token.text);
        } else if (rc == GD_OK) {
            rc = gd_json_skip(&json, &token, NULL);
        }
    }
    gd_json_deinit(&json);
}

static int tell_facts(struct reading *in, struct gd_err *err)
{
    struct gd_peer *peer = gd_catalog_peer(in->load->catalog);
    bool is_mindspore = strcmp(in->framework, "mindspore") == 0;
    int rc = GD_OK;

    if (peer->framework[0]) {
        return GD_OK;
    }
    snprintf(peer->framework, sizeof(peer->framework), "%s",
             is_mindspore                              ? "MindSpore"
             : strcmp(in->framework, "mindtorch") == 0 ? "MindTorch"
                                                       : "PyTorch");
    if (in->task[0]) {
        rc = gd_catalog_add_fact(in->load->catalog, "msprobe task", in->task, err);
    }
    if (rc == GD_OK && in->level[0]) {
        rc = gd_catalog_add_fact(in->load->catalog, "msprobe level", in->level, err);
    }
    return rc;
}

static int take_dump(struct api_load *load, const char *path, const struct api_where *where,
                     struct gd_err *err)
{
    struct reading in = {.load = load, .where = where};
    int len = (int)(gd_base_name(path) - path);
    char folder[PATH_MAX], beside[PATH_MAX];
    struct gd_file_text text;
    struct gd_err why;
    int rc = gd_file_text_read(path, MAX_FILE, &text, err);

    if (rc != GD_OK) {
        return rc;
    }
    snprintf(folder, sizeof(folder), "%.*sdump_tensor_data", len, path);
    in.folder = folder;
    api_step(load, where->step);
    read_root(&in, &text);
    rc = api_members(&text, path, "data", take_entry, &in, &why);
    free(text.data);
    rc = rc != GD_OK ? api_leave_out(load->dump, path, &why, err)
                     : GD_OK; /* keep what was read before the error */
    rc = rc != GD_OK ? rc : tell_facts(&in, err);
    snprintf(beside, sizeof(beside), "%.*sstack.json", len, path);
    rc = rc != GD_OK ? rc : api_take_members(load, beside, MAX_FILE, take_stack, &in, err);
    snprintf(beside, sizeof(beside), "%.*sconstruct.json", len, path);
    rc = rc != GD_OK ? rc : api_take_members(load, beside, MAX_FILE, take_parent, &in, err);
    return rc != GD_OK ? rc : msprobe_events(load, path, where, err);
}

static const struct api_walk_ops ops = {
    .rule = "dump.json whose root has task, level, data",
    .wants = wants_file,
    .take = take_dump,
};

const struct gd_dump_format gd_msprobe_format = {
    .name = "msprobe",
    .what = "msprobe (mindstudio-probe): calls of PyTorch or MindSpore",
    .detail = &ops,
    .find = api_walk_find,
    .read = api_walk_read,
};
