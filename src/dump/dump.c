// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/dump.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dump/detect.h"
#include "dump/dump_target.h"
#include "dump/io/file_name.h"

#define RECORD_FORMAT "history"
#define RECORD_MAGIC  "GRADBHR\n"

/* Recognised by its magic or, if damaged, by its suffix: gradb's own recordings are not a catalog
 * but a session that is over. */
static bool is_record(const char *path)
{
    char start[sizeof(RECORD_MAGIC) - 1] = "";
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is = false;

    if (fd < 0) {
        return false;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        is = gd_ends_with(path, ".gdhist") ||
             (read(fd, start, sizeof(start)) == (ssize_t)sizeof(start) &&
              memcmp(start, RECORD_MAGIC, sizeof(start)) == 0);
    }
    close(fd);
    return is;
}

int gd_dump_open(struct gd_debugger *debugger, const char *path,
                 const struct gd_open_options *options, struct gd_session **ret, struct gd_err *err)
{
    static const struct gd_open_options none = {.format = NULL};
    const struct gd_open_options *wanted = options ? options : &none;
    struct gd_detect_options look = {.format = wanted->format,
                                     .open = wanted,
                                     .max_graph = debugger->settings.max_graph_memory,
                                     .go_on = wanted->go_on,
                                     .ctx = wanted->ctx};
    struct gd_dump *dump;
    int rc;

    if (wanted->format ? strcmp(wanted->format, RECORD_FORMAT) == 0 : is_record(path)) {
        return gd_recorder_open(debugger, path, ret, err);
    }
    rc = gd_detect(path, &look, &dump, err);
    return rc != GD_OK ? rc : gd_dump_sessions(debugger, dump, path, ret, err);
}
