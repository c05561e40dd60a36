// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/values/srctext.h"
#include "repl/core/command.h"

#include <stdlib.h>
#include <string.h>

#define COMMAND   "source"
#define MAX_FILES 256
#define MAX_BYTES ((size_t)16 << 20) /* of all texts; beyond it all are dropped */

struct text {
    struct text *next;
    struct texts *owner; /* NULL: the repl is gone; the reply frees this */
    int session;
    char *file;
    char *text; /* NULL: none, or not yet */
    bool asked; /* a request is pending */
};
struct texts {
    struct text *first;
    size_t count, bytes;
    void (*fn)(void *ctx);
    void *ctx;
};

static void text_free(struct text *text)
{
    free(text->file);
    free(text->text);
    free(text);
}

/* Replies free pending requests. */
static void forget_text(struct texts *texts)
{
    struct text *next;
    for (struct text *text = texts->first; text; text = next) {
        next = text->next;
        text->owner = NULL;
        if (!text->asked) {
            text_free(text);
        }
    }
    texts->first = NULL;
    texts->count = texts->bytes = 0;
}

static void texts_free(void *data)
{
    forget_text(data);
    free(data);
}

static struct texts *texts_of(struct repl *repl)
{
    return repl_make_slot(repl, REPL_SLOT_SOURCE, sizeof(struct texts), texts_free);
}

static struct text *find_text(const struct texts *texts, int session, const char *file)
{
    struct text *text = texts->first;
    while (text && (text->session != session || strcmp(text->file, file) != 0)) {
        text = text->next;
    }
    return text;
}

static struct text *add_text(struct texts *texts, int session, const char *file)
{
    if (texts->count >= MAX_FILES || texts->bytes >= MAX_BYTES) {
        forget_text(texts);
    }
    struct text *text = calloc(1, sizeof(*text));
    char *name = strdup(file);
    if (!text || !name) {
        free(text);
        free(name);
        return NULL;
    }
    *text = (struct text){.next = texts->first, .owner = texts, .session = session, .file = name};
    texts->first = text;
    texts->count++;
    return text;
}

static void keep_text(struct text *text, const char *words)
{
    text->text = words && words[0] != '\0' ? strdup(words) : NULL;
    text->owner->bytes += text->text ? strlen(text->text) : 0;
}

static void drop_texts(struct text *text)
{
    struct text **link = &text->owner->first;
    while (*link != text) {
        link = &(*link)->next;
    }
    *link = text->next;
    text->owner->count--;
    text_free(text);
}

/* An error is not final: the training may have moved on before it got the request. */
static void on_text(void *ctx, const char *words, const struct gd_err *err)
{
    struct text *text = ctx;
    struct texts *texts = text->owner;
    text->asked = false;
    if (!texts) {
        text_free(text);
    } else if (err) {
        drop_texts(text);
    } else {
        keep_text(text, words);
        if (texts->fn) {
            texts->fn(texts->ctx);
        }
    }
}

static void ask_text(struct text *text, struct gd_session *session)
{
    text->asked = true;
    if (gd_target_command(session->target, COMMAND, text->file, GD_NO_NODE, on_text, text, NULL) !=
        GD_OK) {
        drop_texts(text); /* a later call asks again */
    }
}

/* A command's own request; an abandoned wait is not an answer. */
static struct text *wait_for(struct command_call *call, struct texts *texts, const char *file)
{
    const char *words = NULL;
    struct gd_err err = {.code = GD_OK};
    int session = call->session->number;
    int rc = repl_command(call, COMMAND, file, GD_NO_NODE, &words, &err);
    if (rc == GD_EINTR) {
        return NULL;
    }
    struct text *text = find_text(texts, session, file);
    text = text ? text : add_text(texts, session, file);
    if (text && !text->asked && !text->text) {
        keep_text(text, rc == GD_OK ? words : NULL);
    }
    return text;
}

FILE *srctext_open(struct command_call *call, const char *file)
{
    struct gd_session *session = call->session;
    if (!session && call->debugger) {
        session = call->debugger->current;
    }
    struct texts *texts = session ? texts_of(call->repl) : NULL;
    struct text *text = texts ? find_text(texts, session->number, file) : NULL;
    bool can = texts && session->target && session->state == GD_STOPPED &&
               (session->target->capabilities & GD_CAN_COMMAND);
    if (can && call->session && call->out && (!text || text->asked)) {
        text = wait_for(call, texts, file);
    } else if (can && !text) {
        text = add_text(texts, session->number, file);
        if (text) {
            ask_text(text, session);
            text = NULL;
        }
    }
    return text && text->text ? fmemopen(text->text, strlen(text->text), "r") : NULL;
}

void srctext_tell(struct repl *repl, void (*fn)(void *ctx), void *ctx)
{
    struct texts *texts = texts_of(repl);
    if (texts) {
        texts->fn = fn;
        texts->ctx = ctx;
    }
}
