// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/cann/cann_path.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEP_DIGITS 9 /* longer numbers are times or ids */

struct path {
    const char *const *part;
    int count, inside;
};

static const char *part_at(const struct path *path, int i)
{
    return i < path->count ? path->part[i] : "";
}

static bool is_number(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static bool is_time(const char *text)
{
    return strlen(text) == 14 && is_number(text);
}

/* Parses the number after a prefix; false: something else. */
static bool has_number(const char *text, const char *prefix, int64_t *ret)
{
    size_t len = strlen(prefix);

    if (strncmp(text, prefix, len) != 0 || !is_number(text + len)) {
        return false;
    }
    *ret = strtoll(text + len, NULL, 10);
    return true;
}

static bool ends_with(const char *text, const char *between, const char *end)
{
    size_t len = strlen(text), b = strlen(between), e = strlen(end);

    return len > b + e && strcmp(text + len - e, end) == 0 &&
           strncmp(text + len - e - b, between, b) == 0;
}

static void set_rank(struct gd_cann_path *place, int64_t rank)
{
    place->rank = rank >= 0 && rank <= INT_MAX ? (int)rank : 0;
}

static void set_step(struct gd_cann_path *place, const char *text)
{
    place->step = strtoll(text, NULL, 10);
    place->has_step = true;
}

/* Steps and ranks in the directories above the dump's start, as dump tools create them. */
static void look_above(const struct path *path, struct gd_cann_path *place)
{
    const char *above = part_at(path, place->levels), *world;
    int64_t number;

    world = strstr(above, "global_rank");
    if (world && has_number(world, "global_rank", &number)) {
        set_rank(place, number);
        place->levels++;
        return;
    }
    if (has_number(above, "rank", &number)) {
        set_rank(place, number);
        above = part_at(path, ++place->levels);
    }
    if (has_number(above, "step", &number)) {
        place->step = number;
        place->has_step = true;
        place->levels++;
    } else if (is_number(above) && strlen(above) <= MAX_STEP_DIGITS &&
               place->levels < path->inside) {
        set_step(place, above);
        place->levels++;
    }
}

/* [STEP/]YmdHMS/DEVICE[/MODEL/MODEL_ID/INDEX] and similar. */
static bool is_started(const struct path *path, struct gd_cann_path *ret)
{
    const char *p0 = part_at(path, 0), *p1 = part_at(path, 1), *p2 = part_at(path, 2),
               *p3 = part_at(path, 3);

    if (is_number(p0) && is_number(p1) && is_number(p3) && is_time(part_at(path, 4))) {
        *ret = (struct gd_cann_path){.layout = "YmdHMS/DEVICE/MODEL/MODEL_ID/INDEX",
                                     .model = p2,
                                     .graph = p1,
                                     .start = part_at(path, 4),
                                     .levels = 5};
        set_step(ret, p0);
        set_rank(ret, strtoll(p3, NULL, 10));
    } else if (is_number(p0) && is_number(p1) && is_number(p2) && is_time(p3)) {
        *ret = (struct gd_cann_path){.layout = "YmdHMS/DEVICE/MODEL_ID/INDEX",
                                     .model = p1,
                                     .graph = p1,
                                     .start = p3,
                                     .levels = 4};
        set_step(ret, p0);
        set_rank(ret, strtoll(p2, NULL, 10));
    } else if (is_number(p0) && is_number(p1) && is_time(p2)) {
        *ret = (struct gd_cann_path){
            .layout = "YmdHMS/DEVICE/MODEL_ID", .model = p0, .graph = p0, .start = p2, .levels = 3};
        set_rank(ret, strtoll(p1, NULL, 10));
    } else if (is_number(p0) && is_time(p1)) {
        *ret = (struct gd_cann_path){
            .layout = "YmdHMS/DEVICE", .model = "", .graph = "", .start = p1, .levels = 2};
        set_rank(ret, strtoll(p0, NULL, 10));
    } else {
        return false;
    }
    look_above(path, ret);
    return true;
}

/* MindSpore's trees; the oldest have the device at the end of the first name. */
static bool is_mindspore_tree(const struct path *path, struct gd_cann_path *ret)
{
    const char *p0 = part_at(path, 0), *p1 = part_at(path, 1), *p2 = part_at(path, 2),
               *p3 = part_at(path, 3);
    const char *layout, *line = strrchr(p3, '_');
    int64_t rank;

    if (!is_number(p0) || !is_number(p1) || p2[0] == '\0') {
        return false;
    }
    if (has_number(p3, "rank_", &rank)) {
        layout = "rank_R/NET/GRAPH/ITERATION";
    } else if (ends_with(p2, "_graph_", p1) &&
               (has_number(p3, "device_", &rank) || has_number(p3, "", &rank))) {
        layout = "device_D/NET_graph_GRAPH/GRAPH/ITERATION";
    } else if (ends_with(p2, "_", p1) && line && has_number(line, "_", &rank)) { /* "..._7" */
        layout = "PATH_DEVICE/NET_GRAPH/GRAPH/ITERATION";
    } else {
        return false;
    }
    *ret = (struct gd_cann_path){
        .layout = layout, .model = p2, .graph = p1, .start = "", .is_mindspore = true, .levels = 4};
    set_step(ret, p0);
    set_rank(ret, rank);
    return true;
}

/* Overflow records next to the tree, dumps of tools, exception data. */
static bool is_other(const struct path *path, struct gd_cann_path *ret)
{
    const char *p0 = part_at(path, 0), *p1 = part_at(path, 1), *p2 = part_at(path, 2);
    int64_t rank, step;

    *ret = (struct gd_cann_path){.model = "", .graph = "", .start = "", .levels = 3};
    if (is_number(p0) && strcmp(p1, "data-dump") == 0 && strcmp(p2, "extra-info") == 0) {
        ret->layout = "extra-info/data-dump/DEVICE";
        ret->exceptions = true;
        set_rank(ret, strtoll(p0, NULL, 10));
        return true;
    }
    if (is_number(p0) && strcmp(p1, "debug_files") == 0 && has_number(p2, "rank_", &rank)) {
        ret->layout = "rank_R/debug_files/ITERATION";
        ret->is_mindspore = true;
        set_step(ret, p0);
        set_rank(ret, rank);
        return true;
    }
    if (has_number(p0, "step_", &step) && is_time(p1) && has_number(p2, "rank_", &rank)) {
        ret->layout = "rank_R/YmdHMS/step_N";
        ret->is_mindspore = true;
        ret->start = p1;
        ret->step = step;
        ret->has_step = true;
        set_rank(ret, rank);
        return true;
    }
    return false;
}

void gd_cann_path(const char *const *parts, int count, int inside, struct gd_cann_path *ret)
{
    struct path path = {parts, count, inside};

    if (is_other(&path, ret) || is_mindspore_tree(&path, ret) || is_started(&path, ret)) {
        return;
    }
    /* Unknown: the directory is a model, a directory below it with a number as name is a step. */
    *ret = (struct gd_cann_path){.model = "", .graph = "", .start = "", .levels = inside};
    if (count > 0 && is_number(parts[0]) && strlen(parts[0]) <= MAX_STEP_DIGITS) {
        set_step(ret, parts[0]);
        ret->model = inside > 1 ? parts[1] : "";
    } else if (inside > 0) {
        ret->model = parts[0];
    }
}
