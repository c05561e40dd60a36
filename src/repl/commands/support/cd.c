// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: cd, pwd */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"

static int show_directory(struct command_call *call, struct gd_err *err)
{
    char *path = getcwd(NULL, 0);

    if (!path) {
        return gd_fail_errno(err, GD_EIO, "cannot find out the working directory");
    }
    cJSON *record = out_record(call->out, "directory");
    out_set(record, OUT_TEXT("path", path));
    out_say(call->out, record, "Working directory {path}.\n");
    free(path);
    return GD_OK;
}

static int run_cd(struct command_call *call, struct gd_err *err)
{
    int rc = repl_check_seal(call->repl, err);
    const char *path = call->argc > 0 && strcmp(call->argv[0], "~") != 0 ? call->argv[0] : "~/";

    if (rc != GD_OK) {
        return rc;
    }
    path = inspect_home_path(call, path);
    if (chdir(path) != 0) {
        return gd_fail_errno(err, GD_EIO, "cannot change to the directory %.400s", path);
    }
    return show_directory(call, err);
}

static int run_pwd(struct command_call *call, struct gd_err *err)
{
    return show_directory(call, err);
}

const struct command cmd_cd = {
    .name = "cd",
    .group = "support",
    .usage = "cd [DIRECTORY]",
    .summary = "Change gradb's working directory",
    .help = "Relative paths of later commands (open, save, source, > FILE) begin there, and a\n"
            "program that run starts begins there. Without an argument, go to the home directory.\n"
            "A training process that runs already keeps its own directory.",
    .examples = "cd /tmp\n"
                "cd ..",
    .args = {ARG_FILE},
    .words = {0, 1, "specify one directory"},
    .run = run_cd,
};

const struct command cmd_pwd = {
    .name = "pwd",
    .group = "support",
    .usage = "pwd",
    .summary = "Show gradb's working directory",
    .help = "Relative paths begin there. \"cd\" changes it.",
    .flags = CMD_SHOWS,
    .run = run_pwd,
};
