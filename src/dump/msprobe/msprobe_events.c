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

/* ---- anomaly_analyze_TIME.json --------------------------------------------------------------- */

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

static int take_analysis(struct reading *in, const char *path, struct gd_err *err)
{
    struct gd_file_text text;
    struct gd_err why;
    int rc = gd_file_text_read(path, MAX_FILE, &text, &why);

    if (rc == GD_OK) {
        rc = api_members(&text, path, "", take_rank, in, &why);
        free(text.data);
    }
    return rc != GD_OK ? api_leave_out(in->load->dump, path, &why, err) : GD_OK;
}

static bool is_analysis(const char *name)
{
    return gd_starts_with(name, "anomaly_analyze_") && gd_ends_with(name, ".json");
}

static int look_into(struct reading *in, const char *folder, struct gd_err *err)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    int rc = GD_OK;

    while (dir && rc == GD_OK && (entry = readdir(dir))) {
        char path[PATH_MAX];

        if (is_analysis(entry->d_name) &&
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) < (int)sizeof(path)) {
            rc = take_analysis(in, path, err);
        }
    }
    if (dir) {
        closedir(dir);
    }
    return rc;
}

/* ---- dump_error_info.log --------------------------------------------------------------------- */

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
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];
    int rc;

    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
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
