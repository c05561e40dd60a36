// SPDX-License-Identifier: GPL-3.0-or-later
/* Files of API dumps: JSON that may be truncated, and directories named after step and rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/msprobe/api_load.h"

/* All members of the object that began with the last token. */
static int each_member(struct gd_json *json, api_member_fn fn, void *ctx, struct gd_err *err)
{
    struct gd_json_options options = {.max_depth = GD_JSON_MAX_DEPTH, .what = json->what};
    struct gd_json_token token;
    int rc;

    for (;;) {
        GD_CLEANUP(gd_cleanup_free) char *name = NULL;
        cJSON *tree = NULL;
        size_t begin;

        rc = gd_json_next(json, &token, err);
        if (rc != GD_OK || token.kind == GD_JSON_OBJECT_END) {
            return rc;
        }
        name = strdup(token.text);
        if (!name) {
            return gd_fail_nomem(err);
        }
        rc = gd_json_next(json, &token, err);
        begin = token.at;
        rc = rc != GD_OK ? rc : gd_json_skip(json, &token, err);
        rc = rc != GD_OK
                 ? rc
                 : gd_json_parse(json->text + begin, json->at - begin, &options, &tree, err);
        rc = rc != GD_OK ? rc : fn(ctx, name, tree, err);
        cJSON_Delete(tree);
        if (rc != GD_OK) {
            return rc;
        }
    }
}

static int find_member(struct gd_json *json, const char *member, api_member_fn fn, void *ctx,
                       struct gd_err *err)
{
    struct gd_json_token token;
    int rc = gd_json_next(json, &token, err);

    if (rc == GD_OK && token.kind != GD_JSON_OBJECT) {
        return gd_json_fail(json, token.at, GD_EPROTO, err, "expected an object");
    }
    if (rc == GD_OK && !member[0]) {
        return each_member(json, fn, ctx, err);
    }
    while (rc == GD_OK) {
        bool wanted;

        rc = gd_json_next(json, &token, err);
        if (rc != GD_OK || token.kind == GD_JSON_OBJECT_END) {
            return rc;
        }
        wanted = strcmp(token.text, member) == 0;
        rc = gd_json_next(json, &token, err);
        if (rc == GD_OK && wanted && token.kind == GD_JSON_OBJECT) {
            rc = each_member(json, fn, ctx, err);
        } else if (rc == GD_OK && wanted) {
            rc = gd_json_fail(json, token.at, GD_EPROTO, err, "\"%s\" is not an object", member);
        } else if (rc == GD_OK) {
            rc = gd_json_skip(json, &token, err);
        }
    }
    return rc;
}

int api_members(const struct gd_file_text *text, const char *what, const char *member,
                api_member_fn fn, void *ctx, struct gd_err *err)
{
    struct gd_json json = {
        .text = text->data, .size = text->size, .max_depth = GD_JSON_MAX_DEPTH, .what = what};
    int rc = find_member(&json, member, fn, ctx, err);

    gd_json_deinit(&json);
    return rc;
}

/* The number in "stepN" or "step_N"; -1: another name. */
static int64_t number_behind(const char *name, size_t len, const char *word)
{
    size_t at = strlen(word);
    int64_t number = 0;

    if (len <= at || strncmp(name, word, at) != 0) {
        return -1;
    }
    at += name[at] == '_';
    if (at == len) {
        return -1;
    }
    for (; at < len; at++) {
        if (name[at] < '0' || name[at] > '9' || number > INT32_MAX / 10 - 1) {
            return -1;
        }
        number = number * 10 + (name[at] - '0');
    }
    return number;
}

/* ptdbg_ascend's "TAG_v4.0". */
static bool is_version(const char *name, size_t len)
{
    size_t at = len;

    while (at > 0 && (name[at - 1] == '.' || name[at - 1] == 'T' ||
                      (name[at - 1] >= '0' && name[at - 1] <= '9'))) {
        at--;
    }
    return at < len && at >= 3 && name[at - 1] == 'v' && name[at - 2] == '_';
}

/* "Nov22_08-41-10-rank3-de30794b" of msprobe's monitor: a separate run, and its rank. */
static bool is_run(const char *name, size_t len, int *rank)
{
    const char *at = len > 24 && name[5] == '_' ? strstr(name + 14, "-rank") : NULL;
    int64_t number =
        at == name + 14 ? number_behind(at + 1, 4 + strspn(at + 5, "0123456789"), "rank") : -1;

    if (number < 0) {
        return false;
    }
    *rank = (int)number;
    return true;
}

/* A directory above the steps in MindSpore's mixed mode; both modes belong to one training. */
static bool is_mode(const char *name, size_t len)
{
    return (len == 5 && strncmp(name, "graph", 5) == 0) ||
           (len == 8 && strncmp(name, "pynative", 8) == 0);
}

/* Whether the directory's name gives a step or rank and so is not part of the root. */
static bool take_component(const char *name, size_t len, struct api_where *ret, int64_t *process)
{
    int64_t step = number_behind(name, len, "step"), rank = number_behind(name, len, "rank");
    int64_t id = number_behind(name, len, "proc");

    if (step >= 0 && !ret->has_step) {
        ret->step = step;
        ret->has_step = true;
    } else if (rank >= 0 && !ret->has_rank && *process < 0) {
        ret->rank = (int)rank;
        ret->has_rank = true;
    } else if (id >= 0 && !ret->has_rank && *process < 0) {
        *process = id;
    } else if (!ret->has_rank && *process < 0 && is_run(name, len, &ret->rank)) {
        ret->has_rank = true;
        return false;
    } else {
        return (len == 4 && strncmp(name, "rank", 4) == 0) || is_version(name, len) ||
               (ret->has_step && is_mode(name, len));
    }
    return true;
}

void api_where_of(const char *path, struct api_where *ret)
{
    const char *slash = strrchr(path, '/');
    size_t end = slash ? (size_t)(slash - path) : 0;
    int64_t process = -1;

    *ret = (struct api_where){.above = 0};
    while (end > 0) {
        size_t begin = end;

        while (begin > 0 && path[begin - 1] != '/') {
            begin--;
        }
        if (!take_component(path + begin, end - begin, ret, &process)) {
            break;
        }
        ret->above++;
        end = begin > 0 ? begin - 1 : 0;
    }
    if (process >= 0) {
        snprintf(ret->root, sizeof(ret->root), "%.*s/proc%lld", (int)(end > 3900 ? 3900 : end),
                 path, (long long)process);
    } else {
        snprintf(ret->root, sizeof(ret->root), "%.*s", (int)(end > 4000 ? 4000 : end), path);
    }
    if (!ret->root[0]) {
        snprintf(ret->root, sizeof(ret->root), "%s", path[0] == '/' ? "/" : ".");
    }
}
