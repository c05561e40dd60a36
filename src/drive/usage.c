// SPDX-License-Identifier: GPL-3.0-or-later
#include "drive/usage.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORD 160

/* ---- reading the usage line ---- */

struct reader {
    const struct command *command;
    struct usage *usage;
    const char *at;
    int depth;       /* of brackets */
    int values;      /* positional arguments so far */
    bool alternates; /* there are several ways to type it: nothing is required */
    char next[MAX_WORD];
};

/* "[", "]", "|", "\n" or a word, which may contain brackets and bars: "NODE[:SLOT]|EXPR". */
static bool read_token(struct reader *r, char token[MAX_WORD])
{
    int inside = 0;
    size_t len = 0;

    r->at += strspn(r->at, " ");
    if (*r->at == '\0') {
        return false;
    }
    if (strchr("[]|\n", *r->at)) {
        snprintf(token, MAX_WORD, "%c", *r->at++);
        return true;
    }
    for (; r->at[len] != '\0' && !strchr(" \n", r->at[len]); len++) {
        inside += r->at[len] == '[';
        inside -= r->at[len] == ']';
        if (inside < 0) {
            break;
        }
    }
    snprintf(token, MAX_WORD, "%.*s", (int)len, r->at);
    r->at += len;
    return true;
}

static void peek_token(struct reader *r)
{
    const char *at = r->at;

    if (!read_token(r, r->next)) {
        r->next[0] = '\0';
    }
    r->at = at;
}

/* "DEPTH", "N", "NODE[:SLOT]": what stands for a value. */
static bool is_value(const char *token)
{
    return isupper((unsigned char)token[0]) ||
           (token[0] == '"' && isupper((unsigned char)token[1]));
}

static bool is_literal(const char *token)
{
    return islower((unsigned char)token[0]) != 0;
}

static bool is_number(const char *token)
{
    static const char *const names[] = {"N", "K", "COUNT", "DEPTH", "ROWS", "STEP", "STATUS"};
    size_t len = strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i]) == len && strncmp(token, names[i], len) == 0) {
            return token[len] == '\0';
        }
    }
    return false;
}

/* The first word of a token in small letters: "node" of "NODE[:SLOT]|EXPR". */
static void name_value(const char *token, char name[32])
{
    size_t len = 0;

    token += token[0] == '"';
    for (; len < 31 && (isalpha((unsigned char)token[len]) || token[len] == '-'); len++) {
        name[len] = (char)tolower((unsigned char)token[len]);
    }
    name[len] = '\0';
}

static struct usage_item *add_item(struct reader *r, enum usage_kind kind, const char *name)
{
    struct usage *usage = r->usage;

    if (name[0] == '\0' || usage->count >= USAGE_ITEMS) {
        return NULL;
    }
    for (int i = 0; i < usage->count; i++) {
        if (strcmp(usage->item[i].name, name) == 0) {
            usage->item[i].required = false;
            return NULL;
        }
    }
    struct usage_item *item = &usage->item[usage->count++];
    *item = (struct usage_item){.kind = kind};
    snprintf(item->name, sizeof(item->name), "%s", name);
    return item;
}

static enum command_arg arg_at(const struct reader *r)
{
    enum command_arg arg = ARG_NONE;

    for (int i = 0; i < COMMAND_MAX_ARGS && i <= r->values; i++) {
        arg = r->command->args[i] != ARG_NONE ? r->command->args[i] : arg;
    }
    return arg;
}

static void add_value(struct reader *r, const char *token)
{
    static const char *const names[] = {
        [ARG_NODE] = "node", [ARG_TENSOR] = "tensor", [ARG_SELECTOR] = "selector"};
    enum command_arg arg = arg_at(r);
    bool known = arg < sizeof(names) / sizeof(names[0]) && names[arg];
    char name[32];

    name_value(token, name);
    struct usage_item *item = add_item(r, USAGE_VALUE, known && r->values == 0 ? names[arg] : name);
    r->values++;
    if (item) {
        snprintf(item->shown, sizeof(item->shown), "%.95s", token);
        item->required = r->depth == 0 && !r->alternates;
        item->repeats = strstr(token, "...");
        item->number = is_number(token);
        item->file = arg == ARG_FILE;
    }
}

/* "-d DEPTH", "on SELECTOR", "-a". */
static void add_word(struct reader *r, const char *token)
{
    const char *word = token + strspn(token, "-");
    bool dashes = word != token;
    char name[32];

    peek_token(r);
    bool takes = is_value(r->next);
    if (dashes && takes) {
        if (word[1] != '\0') {
            snprintf(name, sizeof(name), "%.31s", word);
        } else {
            name_value(r->next, name);
        }
    } else {
        snprintf(name, sizeof(name), "%s%.25s", dashes && word[1] == '\0' ? "flag_" : "", word);
    }
    struct usage_item *item = add_item(r, takes ? USAGE_KEYWORD : USAGE_FLAG, name);
    if (takes) {
        read_token(r, r->next);
    }
    if (item) {
        snprintf(item->word, sizeof(item->word), "%.31s", token);
        snprintf(item->shown, sizeof(item->shown), "%.40s%s%.50s", token, takes ? " " : "",
                 takes ? r->next : "");
        item->number = takes && is_number(r->next);
        item->file = takes && strncmp(r->next, "FILE", 4) == 0;
    }
}

static void add_choice(struct reader *r, const char *token)
{
    struct usage_item *item = r->usage->count > 0 ? &r->usage->item[r->usage->count - 1] : NULL;

    if (!item || item->kind != USAGE_CHOICE) {
        item = add_item(r, USAGE_CHOICE, "choice");
    }
    if (item) {
        size_t used = strlen(item->choices);
        snprintf(item->choices + used, sizeof(item->choices) - used, "%s%.100s",
                 used > 0 ? "|" : "", token);
        snprintf(item->shown, sizeof(item->shown), "%.95s", item->choices);
    }
}

static void add_token(struct reader *r, const char *token)
{
    const char *equals = strchr(token, '=');

    if (strcmp(token, "...") == 0 && r->usage->count > 0) {
        r->usage->item[r->usage->count - 1].repeats = true;
    } else if (token[0] == '-' && isalpha((unsigned char)token[strspn(token, "-")])) {
        add_word(r, token);
    } else if (is_literal(token) && equals) {
        char name[32];
        snprintf(name, sizeof(name), "%.*s", (int)(equals - token), token);
        struct usage_item *item = add_item(r, USAGE_ASSIGN, name);
        if (item) {
            snprintf(item->word, sizeof(item->word), "%s", name);
            snprintf(item->shown, sizeof(item->shown), "%.95s", token);
        }
    } else if (is_literal(token)) {
        peek_token(r);
        if (is_value(r->next) && !strchr(token, '|')) {
            add_word(r, token);
        } else {
            add_choice(r, token);
        }
    } else if (is_value(token)) {
        add_value(r, token);
    }
}

void usage_read(const struct command *command, struct usage *ret)
{
    struct reader r = {.command = command, .usage = ret, .at = command->usage};
    char token[MAX_WORD];
    bool begins = true; /* the command's name comes next */

    ret->count = 0;
    r.alternates = strchr(command->usage, '\n') || strstr(command->usage, " | ");
    while (read_token(&r, token)) {
        size_t name = strcspn(token, "[/");
        if (strcmp(token, "[") == 0) {
            r.depth++;
        } else if (strcmp(token, "]") == 0) {
            r.depth--;
        } else if (strcmp(token, "|") == 0 || strcmp(token, "\n") == 0) {
            begins = r.depth <= 0;
            continue;
        } else if (!begins || strlen(command->name) != name ||
                   strncmp(token, command->name, name) != 0) {
            add_token(&r, token);
        }
        begins = false;
    }
}

const struct usage_item *usage_find(const struct usage *usage, const char *name)
{
    for (int i = 0; i < usage->count; i++) {
        if (strcmp(usage->item[i].name, name) == 0) {
            return &usage->item[i];
        }
    }
    return NULL;
}

/* ---- schemas ---- */

static void add_enum(const struct usage_item *item, cJSON *property)
{
    cJSON *list = out_list(property, "enum");
    char words[sizeof(item->choices)], *rest = words;

    snprintf(words, sizeof(words), "%s", item->choices);
    for (char *word = strsep(&rest, "|"); word; word = strsep(&rest, "|")) {
        out_push_text(list, word);
    }
}

/* The first value of a command with subcommands is one of them. */
static void add_subs(const struct command *command, cJSON *property)
{
    cJSON *list = out_list(property, "enum");

    for (const struct command *sub = command->sub; sub->name; sub++) {
        out_push_text(list, sub->name);
    }
}

void usage_add_schema(const struct usage *usage, const struct command *command, cJSON *properties,
                      cJSON *required)
{
    bool subs = command->sub != NULL;

    for (int i = 0; i < usage->count; i++) {
        const struct usage_item *item = &usage->item[i];
        cJSON *property = out_object(properties, item->name);
        const char *type = item->kind == USAGE_FLAG ? "boolean"
                           : item->repeats          ? "array"
                           : item->number           ? "integer"
                                                    : "string";
        out_set(property, OUT_TEXT("type", type), OUT_TEXT("description", item->shown));
        if (item->repeats && item->kind != USAGE_FLAG) {
            out_set(out_object(property, "items"), OUT_TEXT("type", "string"));
        }
        if (item->kind == USAGE_CHOICE) {
            add_enum(item, property);
        } else if (item->kind == USAGE_VALUE && subs && !item->repeats) {
            add_subs(command, property);
            subs = false;
        }
        if (item->required) {
            out_push_text(required, item->name);
        }
    }
}

/* ---- lines ---- */

static int add_text(const struct usage_item *item, const cJSON *value, struct gd_buf *line,
                    struct gd_err *err)
{
    const char *text = cJSON_IsString(value) ? value->valuestring : NULL;

    if (cJSON_IsNumber(value)) {
        gd_buf_puts(line, value->valuestring ? value->valuestring : "0");
        return GD_OK;
    }
    if (!text || item->number) {
        return gd_fail(err, GD_EINVAL, "the argument \"%s\" is %s", item->name,
                       item->number    ? "a whole number"
                       : item->repeats ? "a list of strings"
                                       : "text");
    }
    if (item->file) {
        gd_buf_put_quoted(line, text);
    } else {
        gd_buf_puts(line, text);
    }
    return GD_OK;
}

static bool is_choice(const struct usage_item *item, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = item->choices; at; at = strchr(at, '|'), at += at != NULL) {
        if (strncmp(at, word, len) == 0 && (at[len] == '|' || at[len] == '\0') && len > 0) {
            return true;
        }
    }
    return false;
}

static int add_one(const struct usage_item *item, const cJSON *value, struct gd_buf *line,
                   struct gd_err *err)
{
    switch (item->kind) {
    case USAGE_FLAG:
        if (!cJSON_IsBool(value)) {
            return gd_fail(err, GD_EINVAL, "the argument \"%s\" is true or false", item->name);
        }
        gd_buf_printf(line, "%s%s", cJSON_IsTrue(value) ? " " : "",
                      cJSON_IsTrue(value) ? item->word : "");
        return GD_OK;
    case USAGE_CHOICE:
        if (!cJSON_IsString(value) || !is_choice(item, value->valuestring)) {
            return gd_fail(err, GD_EINVAL, "the argument \"%s\" is one of %s", item->name,
                           item->choices);
        }
        gd_buf_printf(line, " %s", value->valuestring);
        return GD_OK;
    case USAGE_KEYWORD: gd_buf_printf(line, " %s ", item->word); break;
    case USAGE_ASSIGN: gd_buf_printf(line, " %s=", item->word); break;
    default: gd_buf_putc(line, ' '); break;
    }
    return add_text(item, value, line, err);
}

int usage_add_line(const struct usage *usage, const cJSON *arguments, struct gd_buf *line,
                   struct gd_err *err)
{
    int rc = GD_OK;

    for (int i = 0; rc == GD_OK && i < usage->count; i++) {
        const struct usage_item *item = &usage->item[i];
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(arguments, item->name);
        const cJSON *one;
        if (!value || cJSON_IsNull(value)) {
            rc = item->required
                     ? gd_fail(err, GD_EINVAL, "the argument \"%s\" is missing", item->name)
                     : GD_OK;
            continue;
        }
        if (!item->repeats || !cJSON_IsArray(value)) {
            rc = add_one(item, value, line, err);
            continue;
        }
        for (one = value->child; rc == GD_OK && one; one = one->next) {
            rc = add_one(item, one, line, err);
        }
    }
    return rc;
}
