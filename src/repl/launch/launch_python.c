// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/launch/launch_python.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY   "libgradb.so.1"
#define BOOT      "gradb/_boot"
/* Relative to this program's folder: in an installation, in a virtual environment with a wheel, and
 * in the package itself. */
#define INSTALLED "../" GRADB_DATADIR "/gradb/python/"
#define PACKAGES  "../lib*/python3*/*-packages/"
#define INSIDE    "../../"

/* ---- places ---- */

bool launch_own_folder(char ret[PATH_MAX])
{
    ssize_t len = readlink("/proc/self/exe", ret, PATH_MAX - 1);
    if (len <= 0) {
        return false;
    }
    ret[len] = '\0';
    char *slash = strrchr(ret, '/');
    if (!slash) {
        return false;
    }
    *slash = '\0';
    return true;
}

/* folder/rest as a real path if it is readable, else NULL. */
static const char *find_existing(struct gd_arena *arena, const char *folder, const char *rest)
{
    char path[2 * PATH_MAX];
    char real[PATH_MAX];

    int len = snprintf(path, sizeof(path), "%s/%s", folder, rest);
    if (len < 0 || (size_t)len >= sizeof(path) || access(path, R_OK) != 0 ||
        !realpath(path, real)) {
        return NULL;
    }
    return gd_arena_strdup(arena, real);
}

/* The first match of a pattern below the folder. */
static const char *find_matching(struct gd_arena *arena, const char *folder, const char *pattern)
{
    char text[2 * PATH_MAX];
    glob_t found;
    const char *path = NULL;

    int len = snprintf(text, sizeof(text), "%s/%s", folder, pattern);
    if (len < 0 || (size_t)len >= sizeof(text) || glob(text, 0, NULL, &found) != 0) {
        return NULL;
    }
    for (size_t i = 0; i < found.gl_pathc && !path; i++) {
        path = find_existing(arena, found.gl_pathv[i], ".");
    }
    globfree(&found);
    return path;
}

/* Next to this program, in a build tree, or where it was installed. */
static const char *find_library(struct gd_arena *arena, const char *own)
{
    static const char tree[] = "agent/" LIBRARY;
    static const char installed[] = "../" GRADB_LIBDIR "/" LIBRARY;
    static const char *const places[] = {LIBRARY, tree, installed, "../lib/" LIBRARY,
                                         INSIDE "gradb/" LIBRARY};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *path = find_existing(arena, own, places[i]);
        if (path) {
            return path;
        }
    }
    return find_matching(arena, own, PACKAGES "gradb*/" LIBRARY);
}

/* In a build tree, a file names the source folder. */
static const char *find_boot(struct gd_arena *arena, const char *own)
{
    const char *boot = find_existing(arena, own, INSTALLED BOOT);
    const char *tree = find_existing(arena, own, "../python/tree");
    char line[PATH_MAX];

    if (!boot) {
        boot = find_existing(arena, own, INSIDE BOOT);
    }
    if (!boot && !tree) {
        boot = find_matching(arena, own, PACKAGES BOOT);
    }
    if (boot || !tree) {
        return boot;
    }
    FILE *file = fopen(tree, "re");
    if (!file) {
        return NULL;
    }
    if (fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        boot = find_existing(arena, line, BOOT);
    }
    fclose(file);
    return boot;
}

/* An empty part of PYTHONPATH would mean the current folder: an empty variable adds none. */
static const char *in_front(struct gd_arena *arena, const char *boot)
{
    const char *old = getenv("PYTHONPATH");
    if (!old || old[0] == '\0') {
        return boot;
    }
    size_t size = strlen(boot) + strlen(old) + 2;
    char *path = gd_arena_alloc(arena, size);
    if (path) {
        snprintf(path, size, "%s:%s", boot, old);
    }
    return path;
}

void launch_python_find(struct gd_arena *arena, struct launch_python *ret)
{
    char own[PATH_MAX];
    const char *given = getenv("GRADB_LIBRARY");

    *ret = (struct launch_python){NULL, NULL};
    if (!launch_own_folder(own)) {
        return;
    }
    const char *boot = find_boot(arena, own);
    if (boot) {
        ret->path = in_front(arena, boot);
    }
    if (!given || given[0] == '\0') {
        ret->library = find_library(arena, own);
    }
}

/* ---- hints ---- */

static bool is_python(const char *program)
{
    const char *slash = strrchr(program, '/');
    const char *name = slash ? slash + 1 : program;
    size_t len = strlen(name);

    return strncmp(name, "python", 6) == 0 || strcmp(name, "torchrun") == 0 ||
           (len > 3 && strcmp(name + len - 3, ".py") == 0);
}

/* Whether an interpreter option disables PYTHONPATH or sitecustomize. */
static bool is_isolated(char *const argv[])
{
    for (size_t i = 1; argv[i] && argv[i][0] == '-' && argv[i][1] != '-'; i++) {
        for (const char *p = argv[i] + 1; *p != '\0'; p++) {
            if (*p == 'c' || *p == 'm') {
                return false; /* the rest is the script's */
            }
            if (*p == 'W' || *p == 'X') {
                i += p[1] == '\0' && argv[i + 1] ? 1 : 0;
                break;
            }
            if (*p == 'I' || *p == 'E' || *p == 'S') {
                return true;
            }
        }
    }
    return false;
}

/* Says that the agent is missing and where it was expected; NULL: it exists. */
static const char *missing_agent(struct gd_arena *arena)
{
    static const char form[] =
        "gradb's Python agent was not found in %s/" INSTALLED ", %s/" PACKAGES " or %s/" INSIDE
        ": install it with \"pip install\"";
    char own[PATH_MAX];
    char text[4 * PATH_MAX];

    if (!launch_own_folder(own) || find_boot(arena, own)) {
        return NULL;
    }
    snprintf(text, sizeof(text), form, own, own, own);
    return gd_arena_strdup(arena, text);
}

const char *launch_python_hint(struct gd_arena *arena, char *const argv[], bool went_well)
{
    if (!argv || !argv[0] || !is_python(argv[0])) {
        return NULL;
    }
    const char *missing = missing_agent(arena);
    if (missing) {
        return missing;
    }
    if (is_isolated(argv)) {
        return "with -I, -E or -S, Python does not load gradb's agent: \"pip install ./python\", "
               "then "
               "start the script with \"python -m gradb SCRIPT\"";
    }
    if (went_well) {
        return "gradb attaches when a script creates an optimizer of PyTorch or MindSpore; with "
               "PyTorch also when it calls a module in training mode or runs backward()";
    }
    return NULL;
}
