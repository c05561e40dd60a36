// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/io/file_name.h"
#include "dump/mindspore/ms_dirs.h"
#include "dump/msprobe/msprobe.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/msprobe/api_walk.h"

#define MAX_FILE (UINT64_C(64) << 20)

struct reading {
    struct api_load *load;
    const struct api_where *where;
};

/* "rank_R": [{"op_name": ...}]: calls with finite inputs and non-finite results. */
static int take_rank(void *ctx, const char *name, const cJSON *value, struct gd_err *err)
{
    struct reading *in = ctx;
    const cJSON *item;
    int rc = GD_OK;

    if (strncmp(name, "rank_", 5) != 0 || ms_rank_of(name) != in->where->rank) {
        return GD_OK;
    }
    cJSON_ArrayForEach(item, value)
    {
        const char *op = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "op_name"));
        struct api_call *call = op ? api_call_find(in->load, op) : NULL;

        if (rc == GD_OK && call) {
            rc = api_event_add(in->load, call, in->where->step, "anomaly",
                               "msprobe's analysis: NaN or infinity begins here", err);
        }
    }
    return rc;
}

static int look_into(struct reading *in, const char *folder, struct gd_err *err)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    int rc = GD_OK;

    while (dir && rc == GD_OK && (entry = readdir(dir))) {
        char path[PATH_MAX];

        if (gd_starts_with(entry->d_name, "anomaly_analyze_") &&
            gd_ends_with(entry->d_name, ".json") &&
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) < (int)sizeof(path)) {
            rc = api_take_members(in->load, path, MAX_FILE, take_rank, in, err);
        }
    }
    if (dir) {
        closedir(dir);
    }
    return rc;
}

static int tell_errors(struct api_load *load, const char *folder, struct gd_err *err)
{
    char path[PATH_MAX], line[400];
    struct gd_file_text text;
    size_t lines = 0;

    if (snprintf(path, sizeof(path), "%s/dump_error_info.log", folder) >= (int)sizeof(path) ||
        gd_file_text_read(path, MAX_FILE, &text, NULL) != GD_OK) {
        return GD_OK;
    }
    for (size_t i = 0; i < text.size; i++) {
        lines += text.data[i] == '\n' || i + 1 == text.size;
    }
    snprintf(line, sizeof(line), "msprobe logged errors, %zu lines: %.*s", lines,
             (int)(strcspn(text.data, "\n") < 250 ? strcspn(text.data, "\n") : 250), text.data);
    free(text.data);
    return lines ? gd_dump_left_out(load->dump, path, line, err) : GD_OK;
}

int msprobe_events(struct api_load *load, const char *path, const struct api_where *where,
                   struct gd_err *err)
{
    struct reading in = {.load = load, .where = where};
    char folder[PATH_MAX];
    int rc;

    gd_folder_of(path, folder, sizeof(folder));
    rc = tell_errors(load, folder, err);
    for (uint32_t up = 0; rc == GD_OK && up < where->above && up < 2; up++) {
        char *end = strrchr(folder, '/');

        rc = look_into(&in, folder, err);
        if (!end || end == folder) {
            break;
        }
        *end = '\0';
    }
    return rc;
}
