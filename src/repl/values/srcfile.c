// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/values/srcfile.h"
#include "repl/core/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "repl/values/inspect.h"
#include "repl/values/srctext.h"

#define LINE_MAX_BYTES 1000 /* of a line shown; the rest is cut */
#define TAB_WIDTH      8

/* Opens a regular file; errno says why not. */
static FILE *open_regular(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return NULL;
    }
    if (!S_ISREG(st.st_mode)) {
        errno = EINVAL;
        return NULL;
    }
    return fopen(path, "re");
}

/* Tries the path, then ever shorter ends of it below the current directory, for a training process
 * on another host. */
static FILE *open_source(const char *file, const char **path)
{
    FILE *stream = open_regular(file);
    *path = file;
    int saved = errno;
    for (const char *p = strchr(file, '/'); !stream && p; p = strchr(p, '/')) {
        p++;
        *path = p;
        stream = *p ? open_regular(p) : NULL;
    }
    if (!stream) {
        *path = file;
        errno = saved;
    }
    return stream;
}

/* Reads a line into `text` (cut at its size), expanding tabs. False: end of file. */
static bool read_line(FILE *stream, char *text, size_t size)
{
    size_t len = 0;
    int c = getc(stream);
    if (c == EOF) {
        return false;
    }
    for (; c != EOF && c != '\n'; c = getc(stream)) {
        size_t blanks = c == '\t' ? TAB_WIDTH - len % TAB_WIDTH : 0;
        for (; blanks > 0 && len + 1 < size; blanks--) {
            text[len++] = ' ';
        }
        if (c != '\t' && c != '\r' && len + 1 < size) {
            text[len++] = c == '\0' ? '?' : (char)c;
        }
    }
    text[len] = '\0';
    return true;
}

static bool skip_line(FILE *stream)
{
    int c = getc(stream);
    if (c == EOF) {
        return false;
    }
    while (c != EOF && c != '\n') {
        c = getc(stream);
    }
    return true;
}

/* Times are whole seconds, and of two clocks if the file is on another host. */
static bool is_newer(const struct gd_session *session, FILE *stream)
{
    struct stat st;

    return session && session->began > 0 && fstat(fileno(stream), &st) == 0 &&
           (double)st.st_mtime > session->began + 2;
}

int srcfile_read(struct command_call *call, const char *file, uint32_t first, uint32_t count,
                 struct srcfile_part *ret, struct gd_err *err)
{
    const char *path = file;
    if (file[0] == '\0') {
        return gd_fail(err, GD_EIO, "the stack names no file");
    }
    int rc = repl_check_seal(call->repl, err);
    if (rc != GD_OK) {
        return rc;
    }
    FILE *stream = open_source(file, &path);
    int saved = errno;
    bool told = stream == NULL;
    if (told) {
        stream = srctext_open(call, file);
    }
    if (!stream && saved == ENOENT && file[0] != '<') {
        return gd_fail(
            err, GD_EIO,
            "cannot read %.300s: it is not on this host; copy it below the current directory",
            out_safe(call, file));
    }
    if (!stream) {
        errno = saved;
        return gd_fail_errno(err, GD_EIO, "cannot read %.300s", out_safe(call, file));
    }
    count = count > SRCFILE_MAX_LINES ? SRCFILE_MAX_LINES : count;
    const char **line = gd_arena_alloc(call->arena, ((size_t)count + 1) * sizeof(*line));
    struct srcfile_part part = {.path = path, .first = first > 0 ? first : 1, .line = line};
    part.newer = !told && call->debugger && is_newer(call->debugger->current, stream);
    bool more = line != NULL;
    for (uint32_t i = 1; more && i < part.first; i++) {
        more = skip_line(stream);
    }
    char text[LINE_MAX_BYTES];
    while (more && part.count < count) {
        more = read_line(stream, text, sizeof(text));
        if (more) {
            line[part.count++] = inspect_printf(call, "%s", out_safe(call, text));
        }
    }
    part.at_end = !more || getc(stream) == EOF;
    fclose(stream);
    *ret = part;
    return line ? GD_OK : gd_fail_nomem(err);
}

bool srcfile_parse_place(struct command_call *call, const char *text, const char **file,
                         uint32_t *line)
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text || colon[1] < '0' || colon[1] > '9') {
        return false;
    }
    char *end = NULL;
    errno = 0;
    unsigned long number = strtoul(colon + 1, &end, 10);
    if (*end != '\0' || errno != 0 || number > INT32_MAX) {
        return false;
    }
    *file = gd_arena_strndup(call->arena, text, (size_t)(colon - text));
    *line = (uint32_t)number;
    return *file != NULL;
}

uint32_t srcfile_lines_wanted(const struct command_call *call)
{
    int lines = call->debugger->settings.list_lines;
    return lines > 0 ? (uint32_t)lines : 10;
}

bool srcfile_path_matches(const char *path, const char *file)
{
    size_t path_len = strlen(path);
    size_t file_len = strlen(file);
    if (file_len > path_len || strcmp(path + path_len - file_len, file) != 0) {
        return false;
    }
    return file_len == path_len || file[0] == '/' || path[path_len - file_len - 1] == '/';
}
