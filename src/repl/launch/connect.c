// SPDX-License-Identifier: GPL-3.0-or-later
/* Instructions for connecting a training process to gradb. */
#include "base/owner.h"
#include "repl/commands/support/support.h"
#include "repl/core/command.h"
#include "repl/core/repl_impl.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define UNFOLDED  10000 /* columns: no line is folded */
#define MIN_WIDTH 24
#define PYTORCH   "python3 -m gradb train.py" /* see README: the package is installed */

struct connect_text {
    struct gd_buf *out;
    int width;
};

/* Folds at blanks. Lines after the first are indented by `indent`; a line that continues ends with
 * `more`. A word wider than the line is not broken, so that it can be copied. */
static void add_folded(struct connect_text *text, const char *words, int first, int indent,
                       const char *more)
{
    int room = text->width - (int)strlen(more);
    int used = first;

    gd_buf_fill(text->out, ' ', (size_t)first);
    for (const char *word = words; *word != '\0';) {
        int len = (int)strcspn(word, " ");
        bool last = word[len] == '\0';
        if (word > words && used + 1 + len > (last ? text->width : room)) {
            gd_buf_printf(text->out, "%s\n", more);
            gd_buf_fill(text->out, ' ', (size_t)indent);
            used = indent;
        } else if (word > words) {
            gd_buf_putc(text->out, ' ');
            used++;
        }
        gd_buf_add(text->out, word, (size_t)len);
        used += len;
        word += len + (last ? 0 : 1);
    }
    gd_buf_putc(text->out, '\n');
}

static void add_sentence(struct connect_text *text, const char *sentence)
{
    add_folded(text, sentence, 0, 0, "");
}

/* For a shell: a continued line ends with a backslash. */
static void add_shell(struct connect_text *text, const char *line)
{
    add_folded(text, line, 2, 4, " \\");
}

/* All addresses of this host: other hosts use its name. */
static bool is_any(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "[::]") == 0 || strcmp(host, "::") == 0;
}

/* Where gradb listens. */
struct place {
    char host[128];
    const char *port;   /* NULL: not on TCP */
    const char *socket; /* "unix:PATH"; NULL: none */
    const char *token;  /* "": not needed */
};

/* `address` NULL: the program's default. */
static void add_agent(struct connect_text *text, const struct place *place, const char *address,
                      const char *program)
{
    bool token = place->token[0] != '\0';
    char line[1024];

    snprintf(line, sizeof(line), "%s%s%s%s%s%s%s", address ? "GRADB_ADDRESS=" : "",
             address ? address : "", address ? " " : "", token ? "GRADB_TOKEN=" : "", place->token,
             token ? " " : "", program);
    add_shell(text, line);
}

static bool is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "[::1]") == 0 ||
           strcmp(host, "localhost") == 0;
}

/* The address for a program on this host; NULL: the program's default. */
static const char *near_address(const struct place *place, char *out, size_t size)
{
    char directory[GD_SOCKET_PATH];
    const char *path = gd_unix_path(place->socket);

    if (!path) {
        snprintf(out, size, "%s:%s", is_any(place->host) ? "127.0.0.1" : place->host, place->port);
        return out;
    }
    if (gd_own_directory(directory, sizeof(directory), NULL) == GD_OK) {
        snprintf(out, size, "%s/" GD_MEETING_POINT, directory);
    }
    return strcmp(out, path) == 0 ? NULL : place->socket;
}

static void add_near(struct connect_text *text, const struct place *place, const char *program)
{
    char address[256] = "";

    add_agent(text, place, near_address(place, address, sizeof(address)), program);
}

static void add_mindspore(struct connect_text *text, const struct place *place)
{
    char line[512];

    snprintf(line, sizeof(line),
             "ENABLE_MS_DEBUGGER=1 MS_DEBUGGER_HOST=%s MS_DEBUGGER_PORT=%s python3 train.py",
             is_any(place->host) ? "127.0.0.1" : place->host, place->port);
    add_shell(text, line);
}

/* For other hosts: a tunnel to a loopback address, else this host's name or address. */
static void add_other_hosts(struct connect_text *text, const struct place *place)
{
    char here[256] = "this-host";
    char line[512];

    if (is_any(place->host)) {
        if (gethostname(here, sizeof(here)) == 0) {
            here[sizeof(here) - 1] = '\0';
        }
        add_sentence(text, "On another host:");
        snprintf(line, sizeof(line), "%s:%s", here, place->port);
        add_agent(text, place, line, PYTORCH);
        return;
    }
    bool loopback = is_loopback(place->host);
    bool same = loopback && !place->socket; /* the lines above also work there */
    add_sentence(text, same ? "On another host, type the same after this command here:"
                       : loopback
                           ? "On another host, after this command here:"
                           : "On another host, type the same; through a firewall, type here:");
    snprintf(line, sizeof(line), "ssh -R %s:%s:%s USER@HOST", place->port, place->host,
             place->port);
    add_shell(text, line);
    if (same) {
        return;
    }
    if (!loopback) {
        add_sentence(text, "and there:");
    }
    snprintf(line, sizeof(line), "127.0.0.1:%s", place->port);
    add_agent(text, place, line, PYTORCH);
}

static void add_lines(struct connect_text *text, const struct place *place)
{
    add_sentence(text, "PyTorch, MindSpore 2.7 and later:");
    add_near(text, place, PYTORCH);
    add_sentence(text, "A training program in C or another language, with libgradb:");
    add_near(text, place, "./train");
    if (place->port) {
        add_sentence(text, "MindSpore 1.1 to 2.3:");
        add_mindspore(text, place);
        add_other_hosts(text, place);
    }
}

/* False: gradb does not listen. "[::1]:50051" is cut at its last colon. */
static bool find_place(const struct gd_debugger *debugger, struct place *ret)
{
    const struct gd_server_ops *server = debugger->server;
    const char *address = server ? server->address(debugger->server_ctx) : NULL;
    const char *colon = address ? strrchr(address, ':') : NULL;

    if (!colon) {
        return false;
    }
    *ret = (struct place){.token = debugger->settings.token,
                          .socket = server->socket(debugger->server_ctx)};
    if (!gd_unix_path(address)) {
        snprintf(ret->host, sizeof(ret->host), "%.*s", (int)(colon - address), address);
        ret->port = colon + 1;
    }
    return true;
}

void repl_connect_text(const struct gd_debugger *debugger, int width, struct gd_buf *out)
{
    struct connect_text text = {.out = out, .width = width < MIN_WIDTH ? MIN_WIDTH : width};
    struct place place;

    if (find_place(debugger, &place)) {
        add_lines(&text, &place);
    } else {
        add_sentence(&text,
                     "gradb is not listening, so no training process can connect. In gradb, type:");
        add_shell(&text, "listen");
    }
    add_sentence(&text, "Or let gradb start the training, here or from the shell:");
    add_shell(&text, "run -- python3 train.py");
    add_shell(&text, "gradb run -- python3 train.py");
}

void repl_connect_short(const struct gd_debugger *debugger, int width, struct gd_buf *out)
{
    struct connect_text text = {.out = out, .width = width < MIN_WIDTH ? MIN_WIDTH : width};
    struct place place;

    if (find_place(debugger, &place)) {
        add_sentence(&text, "Connect a training process with one of these (see help connect):");
        add_near(&text, &place, PYTORCH);
        if (place.port) {
            add_mindspore(&text, &place);
        }
    }
}

/* One line of text each, without the indentation. */
static void push_lines(cJSON *list, const char *text)
{
    for (const char *line = text; *line != '\0';) {
        char copy[1024];
        size_t len = strcspn(line, "\n");
        snprintf(copy, sizeof(copy), "%.*s", (int)len, line);
        out_push_text(list, copy);
        line += len + (line[len] == '\n' ? 1 : 0);
    }
}

int help_connect(struct command_call *call)
{
    struct gd_debugger *debugger = call->debugger;
    const char *address = debugger->server ? debugger->server->address(debugger->server_ctx) : NULL;
    struct gd_buf text = GD_BUF_INIT(16384);
    cJSON *record = out_record(call->out, "help_connect");

    repl_connect_text(debugger, out_is_json(call->out) ? UNFOLDED : out_width(call->out), &text);
    out_set(record, OUT_TEXT("address", address ? address : ""));
    push_lines(out_list(record, "lines"), gd_buf_text(&text));
    out_printf(call->out, "%s", gd_buf_text(&text));
    gd_buf_deinit(&text);
    return GD_OK;
}
