// SPDX-License-Identifier: GPL-3.0-or-later
/* Examining the values of a pickle, and printing them. */
#include <string.h>

#include "dump/torch/pickle.h"
#include "engine/format.h"

#define MAX_NESTING 6 /* levels of containers that are printed */

bool gd_pickle_is_text(const struct gd_pickle_value *value, const char *text)
{
    return value && value->kind == GD_PICKLE_TEXT && value->count == strlen(text) &&
           memcmp(value->text, text, value->count) == 0;
}

bool gd_pickle_is_global(const struct gd_pickle_value *value, const char *module, const char *name)
{
    return value && value->kind == GD_PICKLE_GLOBAL && strcmp(value->global->name, name) == 0 &&
           strcmp(value->global->module, module) == 0;
}

bool gd_pickle_is_call(const struct gd_pickle_value *value, const char *module, const char *name)
{
    return value && value->kind == GD_PICKLE_OBJECT &&
           gd_pickle_is_global(value->object->callee, module, name);
}

bool gd_pickle_get_int(const struct gd_pickle_value *value, int64_t *ret)
{
    if (!value || value->kind != GD_PICKLE_INT) {
        return false;
    }
    *ret = value->integer;
    return true;
}

struct gd_pickle_value *gd_pickle_item(const struct gd_pickle_value *value, size_t index)
{
    if (!value || index >= value->count ||
        (value->kind != GD_PICKLE_LIST && value->kind != GD_PICKLE_TUPLE &&
         value->kind != GD_PICKLE_SET)) {
        return NULL;
    }
    return value->item[index];
}

const struct gd_pickle_value *gd_pickle_dict(const struct gd_pickle_value *value)
{
    static const struct gd_pickle_value empty = {.kind = GD_PICKLE_DICT};

    if (!value || value->kind == GD_PICKLE_DICT) {
        return value;
    }
    if (value->kind != GD_PICKLE_OBJECT) {
        return NULL;
    }
    if (value->object->dict) {
        return value->object->dict;
    }
    return gd_pickle_is_call(value, "collections", "OrderedDict") ||
                   gd_pickle_is_call(value, "collections", "defaultdict")
               ? &empty
               : NULL;
}

struct gd_pickle_value *gd_pickle_get(const struct gd_pickle_value *value, const char *key)
{
    const struct gd_pickle_value *dict = gd_pickle_dict(value);

    for (uint32_t i = dict ? dict->count : 0; i-- > 0;) {
        if (gd_pickle_is_text(dict->item[(size_t)i * 2], key)) {
            return dict->item[(size_t)i * 2 + 1];
        }
    }
    return NULL;
}

/* The letter to print after a backslash; '\0': print the character itself. */
static char escape_of(unsigned char c)
{
    switch (c) {
    case '\n': return 'n';
    case '\t': return 't';
    case '\r': return 'r';
    case '\'':
    case '\\': return (char)c;
    default: return '\0';
    }
}

static void print_text(const char *text, uint32_t count, size_t max, struct gd_buf *out)
{
    gd_buf_putc(out, '\'');
    for (uint32_t i = 0; i < count; i++) {
        unsigned char c = (unsigned char)text[i];
        char escape = escape_of(c);

        if (out->len >= max) {
            gd_buf_puts(out, "...");
            break;
        }
        if (escape) {
            gd_buf_printf(out, "\\%c", escape);
        } else if (c < 0x20 || c == 0x7f) {
            gd_buf_printf(out, "\\x%02x", c);
        } else {
            gd_buf_putc(out, (char)c);
        }
    }
    gd_buf_putc(out, '\'');
}

/* The class of an object, also if copyreg creates it. */
static const struct gd_pickle_global *class_of(const struct gd_pickle_value *value)
{
    const struct gd_pickle_value *callee = value->object->callee;
    const struct gd_pickle_value *first = gd_pickle_item(value->object->args, 0);

    if ((gd_pickle_is_global(callee, "copyreg", "_reconstructor") ||
         gd_pickle_is_global(callee, "copy_reg", "_reconstructor")) &&
        first && first->kind == GD_PICKLE_GLOBAL) {
        return first->global;
    }
    return callee->kind == GD_PICKLE_GLOBAL ? callee->global : NULL;
}

static void print_single(const struct gd_pickle_value *value, size_t max, struct gd_buf *out)
{
    const struct gd_pickle_global *class;

    switch ((enum gd_pickle_kind)value->kind) {
    case GD_PICKLE_NONE: gd_buf_puts(out, "None"); break;
    case GD_PICKLE_BOOL: gd_buf_puts(out, value->truth ? "True" : "False"); break;
    case GD_PICKLE_INT: gd_buf_printf(out, "%lld", (long long)value->integer); break;
    case GD_PICKLE_BIG: gd_buf_puts(out, "<an integer beyond 64 bits>"); break;
    case GD_PICKLE_FLOAT: gd_format_scalar(GD_FLOAT64, &value->real, out); break;
    case GD_PICKLE_TEXT: print_text(value->text, value->count, max, out); break;
    case GD_PICKLE_BYTES: gd_buf_printf(out, "<%u bytes>", value->count); break;
    case GD_PICKLE_GLOBAL:
        gd_buf_printf(out, "%s.%s", value->global->module, value->global->name);
        break;
    case GD_PICKLE_OBJECT:
        class = class_of(value);
        if (class) {
            gd_buf_printf(out, "<%s.%s object>", class->module, class->name);
        } else {
            gd_buf_puts(out, "<object>");
        }
        break;
    default: gd_buf_puts(out, "<stored elsewhere>"); break;
    }
}

struct level { /* a container being printed */
    const struct gd_pickle_value *value;
    size_t next; /* index of the next item */
};

static size_t item_count(const struct gd_pickle_value *value)
{
    switch ((enum gd_pickle_kind)value->kind) {
    case GD_PICKLE_LIST:
    case GD_PICKLE_TUPLE:
    case GD_PICKLE_SET: return value->count;
    case GD_PICKLE_DICT: return (size_t)value->count * 2;
    default: return 0;
    }
}

static bool is_container(const struct gd_pickle_value *value)
{
    return value->kind >= GD_PICKLE_LIST && value->kind <= GD_PICKLE_DICT;
}

static char bracket_char(const struct gd_pickle_value *value, bool open)
{
    switch ((enum gd_pickle_kind)value->kind) {
    case GD_PICKLE_LIST: return open ? '[' : ']';
    case GD_PICKLE_TUPLE: return open ? '(' : ')';
    default: return open ? '{' : '}';
    }
}

static void print_end(const struct level *level, struct gd_buf *out)
{
    if (level->value->kind == GD_PICKLE_TUPLE && level->value->count == 1) {
        gd_buf_putc(out, ',');
    }
    gd_buf_putc(out, bracket_char(level->value, false));
}

void gd_pickle_print(const struct gd_pickle_value *value, size_t max, struct gd_buf *out)
{
    struct level stack[MAX_NESTING];
    int depth = 0;

    max += out->len;
    for (;;) {
        struct level *level;

        if (is_container(value) && depth < MAX_NESTING) {
            gd_buf_putc(out, bracket_char(value, true));
            stack[depth++] = (struct level){.value = value};
        } else if (is_container(value)) {
            gd_buf_printf(out, "%c...%c", bracket_char(value, true), bracket_char(value, false));
        } else {
            print_single(value, max, out);
        }
        while (depth && stack[depth - 1].next == item_count(stack[depth - 1].value)) {
            print_end(&stack[--depth], out);
        }
        if (!depth) {
            return;
        }
        level = &stack[depth - 1];
        if (level->next) {
            gd_buf_puts(out, level->value->kind == GD_PICKLE_DICT && level->next % 2 ? ": " : ", ");
        }
        if (out->len >= max) {
            gd_buf_puts(out, "...");
            while (depth) {
                gd_buf_putc(out, bracket_char(stack[--depth].value, false));
            }
            return;
        }
        value = level->value->item[level->next++];
    }
}
