// SPDX-License-Identifier: GPL-3.0-or-later
/* Templates: sentences with fields from a record. Syntax: out.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compare/tool_metrics.h"
#include "engine/format.h"
#include "repl/core/repl_impl.h"

#define MAX_KEY      64
#define MAX_FORM     32
#define MAX_LINE     ((size_t)16 << 20)
#define MAX_WIDTH    512
#define EXACT_DOUBLE 1e15 /* smaller whole numbers are printed in full */
#define READABLE     1e9

/* ---- numbers --------------------------------------------------------------------------------- */

void out_add_number(struct gd_buf *text, uint64_t number)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);

    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) {
            gd_buf_putc(text, ',');
        }
        gd_buf_putc(text, digits[i]);
    }
}

void out_add_duration(struct gd_buf *text, double seconds)
{
    if (!(seconds >= 0)) {
        gd_buf_puts(text, "unknown");
    } else if (seconds < 1e-3) {
        gd_buf_printf(text, "%.0f us", seconds * 1e6);
    } else if (seconds < 1) {
        gd_buf_printf(text, "%.3g ms", seconds * 1e3);
    } else if (seconds < 60) {
        gd_buf_printf(text, "%.3g s", seconds);
    } else {
        unsigned long long whole = (unsigned long long)fmin(seconds, 1e15);
        if (whole < 3600) {
            gd_buf_printf(text, "%llu min %llu s", whole / 60, whole % 60);
        } else {
            gd_buf_printf(text, "%llu h %llu min", whole / 3600, whole / 60 % 60);
        }
    }
}

static void add_date(struct gd_buf *text, double seconds)
{
    time_t when = seconds > 0 && seconds < 1e11 ? (time_t)seconds : 0;
    char date[32] = "unknown";
    struct tm tm;

    if (when && localtime_r(&when, &tm)) {
        strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
    }
    gd_buf_puts(text, date);
}

/* Numbers are doubles, or raw text where a double would be inexact. */
static bool read_number(const cJSON *item, double *ret)
{
    char *end = NULL;

    if (cJSON_IsNumber(item)) {
        *ret = item->valuedouble;
        return true;
    }
    if (!cJSON_IsRaw(item)) {
        return false;
    }
    *ret = strtod(item->valuestring, &end);
    return end != item->valuestring;
}

/* One that a double would round. */
static bool is_long_integer(const cJSON *item)
{
    return cJSON_IsRaw(item) && item->valuestring[strspn(item->valuestring, "-0123456789")] == '\0';
}

static bool is_set(const cJSON *item)
{
    double number = 0;

    if (!item || cJSON_IsNull(item) || cJSON_IsFalse(item)) {
        return false;
    }
    if (cJSON_IsString(item)) {
        return item->valuestring[0] != '\0';
    }
    if (cJSON_IsArray(item)) {
        return item->child != NULL;
    }
    return !read_number(item, &number) || number != 0;
}

/* ---- one field ------------------------------------------------------------------------------- */

struct template
{
    struct repl_out *out;
    const cJSON *extra, *object; /* where fields are looked up, in this order */
    struct gd_buf text;
};

/* The number at the start of a form. Templates are literals, so it is small. */
static int read_digits(const char *text)
{
    long number = strtol(text, NULL, 10);
    return number > -MAX_WIDTH && number < MAX_WIDTH ? (int)number : 0;
}

struct form {
    char name[MAX_FORM]; /* "": the default form */
    char between[8];     /* separator of a list's members */
    const char *noun;    /* not terminated; NULL: none */
    size_t noun_len;
    int width; /* negative: left-aligned; 0: none */
};

/* "a.b" below `object`; "" is the object itself. */
static const cJSON *find_below(const cJSON *object, const char *key)
{
    while (object && *key != '\0') {
        char name[MAX_KEY];
        size_t len = strcspn(key, ".");
        if (len >= sizeof(name)) {
            return NULL;
        }
        memcpy(name, key, len);
        name[len] = '\0';
        object = cJSON_GetObjectItemCaseSensitive(object, name);
        key += len + (key[len] == '.');
    }
    return object;
}

static const cJSON *find_field(const struct template *t, const char *key)
{
    const cJSON *item = key[0] != '\0' ? find_below(t->extra, key) : NULL;
    return item ? item : find_below(t->object, key);
}

/* Columns of the line so far. */
static int used_columns(const struct gd_buf *text)
{
    const char *line = gd_buf_text(text);
    const char *last = strrchr(line, '\n');
    return repl_display_width(last ? last + 1 : line);
}

/* Without an output, for a file: the text itself. */
static const char *escape_text(const struct template *t, const char *text)
{
    return t->out ? repl_safe(t->out->repl, t->out->arena, text) : text;
}

static void add_name(struct template *t, const struct form *form, const char *name)
{
    char room[512];
    int used = form->name[3] != '\0' ? read_digits(form->name + 3) : used_columns(&t->text);

    name = escape_text(t, name);
    gd_buf_puts(&t->text, t->out ? repl_fit_name(t->out, name, used, room, sizeof(room)) : name);
}

static void add_double(struct gd_buf *text, const char *form, double number)
{
    char room[40];

    if (strcmp(form, "n") == 0) {
        out_add_number(text, number > 0 ? (uint64_t)number : 0);
    } else if (strcmp(form, "bytes") == 0) {
        gd_buf_puts(text, gd_format_bytes((uint64_t)fmax(number, 0), room, sizeof(room)));
    } else if (strcmp(form, "time") == 0) {
        out_add_duration(text, number);
    } else if (strcmp(form, "date") == 0) {
        add_date(text, number);
    } else if (strcmp(form, "repr") == 0) {
        gd_buf_puts(text, gd_tool_number(number, room, sizeof(room)));
    } else if (form[0] == 'f') {
        gd_buf_printf(text, "%.*f", read_digits(form + 1), number);
    } else if (strcmp(form, "g3") == 0 && fabs(number) >= 100 && fabs(number) < READABLE) {
        gd_buf_printf(text, "%.0f", number); /* 3754, not 3.75e+03 */
    } else if (form[0] == 'g') {
        gd_buf_printf(text, "%.*g", read_digits(form + 1), number);
    } else if (number == trunc(number) && fabs(number) < EXACT_DOUBLE) {
        gd_buf_printf(text, "%.0f", number);
    } else {
        gd_buf_printf(text, "%.*g", form[0] == '.' ? read_digits(form + 1) : 6, number);
    }
}

static void add_shape(struct gd_buf *text, const cJSON *dims)
{
    const cJSON *dim;

    gd_buf_putc(text, '(');
    cJSON_ArrayForEach(dim, dims)
    {
        gd_buf_puts(text, dim != dims->child ? ", " : "");
        if (dim->valuedouble < 0) {
            gd_buf_putc(text, '?');
        } else {
            gd_buf_printf(text, "%.0f", dim->valuedouble);
        }
    }
    gd_buf_puts(text, dims->child && !dims->child->next ? ",)" : ")");
}

/* "nodes", but "batches" and "classes". */
static const char *plural_of(const char *noun, size_t len)
{
    char last = len > 0 ? noun[len - 1] : '\0', before = len > 1 ? noun[len - 2] : '\0';
    bool hisses = last == 's' || last == 'x' || (last == 'h' && (before == 'c' || before == 's'));

    return hisses ? "es" : "s";
}

static void add_item(struct template *t, const struct form *form, const cJSON *item)
{
    double number = 0;

    if (!item) {
        gd_buf_putc(&t->text, '?');
    } else if (read_number(item, &number)) {
        if (form->noun) {
            out_add_number(&t->text, number > 0 ? (uint64_t)number : 0);
            gd_buf_printf(&t->text, " %.*s%s", (int)form->noun_len, form->noun,
                          number == 1 ? "" : plural_of(form->noun, form->noun_len));
        } else if (is_long_integer(item) && form->name[0] == '\0') {
            gd_buf_puts(&t->text, item->valuestring);
        } else {
            add_double(&t->text, form->name, number);
        }
    } else if (cJSON_IsArray(item) && strcmp(form->name, "shape") == 0) {
        add_shape(&t->text, item);
    } else if (cJSON_IsArray(item)) {
        const cJSON *member;
        cJSON_ArrayForEach(member, item)
        {
            gd_buf_puts(&t->text, member != item->child ? form->between : "");
            add_item(t, form, member);
        }
    } else if (cJSON_IsString(item) && strncmp(form->name, "fit", 3) == 0) {
        add_name(t, form, item->valuestring);
    } else if (cJSON_IsString(item)) {
        gd_buf_puts(&t->text, escape_text(t, item->valuestring));
    } else if (cJSON_IsBool(item)) {
        gd_buf_puts(&t->text, cJSON_IsTrue(item) ? "true" : "false");
    }
}

/* Pads what was added since `start`. */
static void align_field(struct gd_buf *text, size_t start, int width)
{
    int columns = abs(width), used = repl_display_width(gd_buf_text(text) + start);
    size_t pad = columns > used && columns <= MAX_WIDTH ? (size_t)(columns - used) : 0;
    size_t len = text->len - start;

    if (pad == 0 || gd_buf_fill(text, ' ', pad) != GD_OK || width < 0) {
        return;
    }
    memmove(text->data + start + pad, text->data + start, len);
    memset(text->data + start, ' ', pad);
}

/* Parses ":n:8" or "|noun" up to the closing brace. */
static const char *parse_forms(const char *at, struct form *form)
{
    *form = (struct form){.between = ", "};
    if (*at == '|') {
        form->noun = ++at;
        form->noun_len = strcspn(at, ":}");
        at += form->noun_len;
    }
    while (*at == ':') {
        size_t len = strcspn(++at, ":}");
        if ((*at >= '0' && *at <= '9') || *at == '-') {
            form->width = read_digits(at);
        } else if (*at == ' ' || *at == ',' || *at == ';') {
            snprintf(form->between, sizeof(form->between), "%.*s", (int)len, at);
        } else {
            snprintf(form->name, sizeof(form->name), "%.*s", (int)len, at);
        }
        at += len;
    }
    return at + strcspn(at, "}");
}

/* Adds the field at *at, after its brace. False: it is not set, or its condition does not hold. */
static bool add_field(struct template *t, const char **at, bool *is_condition)
{
    char key[MAX_KEY];
    struct form form;
    char condition = **at == '?' || **at == '!' ? *(*at)++ : '\0';
    *is_condition = condition != '\0';
    size_t len = strcspn(*at, "|:}");

    snprintf(key, sizeof(key), "%.*s", (int)len, *at);
    *at = parse_forms(*at + len, &form);
    *at += **at == '}';
    const cJSON *item = find_field(t, key);
    if (condition) {
        return is_set(item) == (condition == '?');
    }
    size_t start = t->text.len;
    add_item(t, &form, item);
    if (form.width != 0) {
        align_field(&t->text, start, form.width);
    }
    return is_set(item);
}

/* Adds text up to the end, or up to the bracket that closes a section. False: leave it out. */
static bool add_text(struct template *t, const char **at, bool is_section)
{
    bool all_set = true, has_condition = false, holds = true, is_condition;

    while (**at != '\0') {
        char c = *(*at)++;
        if (c == '{') {
            bool is_good = add_field(t, at, &is_condition);
            has_condition = has_condition || is_condition;
            *(is_condition ? &holds : &all_set) &= is_good;
        } else if (c == '[') {
            size_t start = t->text.len;
            if (!add_text(t, at, true) && t->text.len > start) {
                t->text.len = start;
                t->text.data[start] = '\0';
            }
        } else if (c == ']' && is_section) {
            break;
        } else {
            c = c == '\\' && **at != '\0' ? *(*at)++ : c;
            gd_buf_putc(&t->text, c);
        }
    }
    return has_condition ? holds : all_set;
}

/* ---- sentences ------------------------------------------------------------------------------- */

void out_render(struct repl_out *out, const cJSON *object, const char *template,
                const struct out_field *fields, struct gd_buf *text)
{
    cJSON *extra = cJSON_CreateObject();
    struct template t = {.out = out, .extra = extra, .object = object, .text = *text};

    if (fields) {
        out_set_fields(extra, fields);
    }
    add_text(&t, &template, false);
    *text = t.text;
    cJSON_Delete(extra);
}

void out_render_both(struct repl_out *out, const cJSON *object, const cJSON *extra,
                     const char *template, struct gd_buf *text)
{
    struct template t = {.out = out, .extra = extra, .object = object, .text = *text};

    add_text(&t, &template, false);
    *text = t.text;
}

void out_render_item(struct repl_out *out, const cJSON *item, const char *forms,
                     struct gd_buf *text)
{
    struct template t = {.out = out, .text = *text};
    struct form form;

    parse_forms(forms, &form);
    add_item(&t, &form, item);
    *text = t.text;
}

void out_say_fields(struct repl_out *out, const cJSON *object, const char *template,
                    const struct out_field *fields)
{
    struct gd_buf text = GD_BUF_INIT(MAX_LINE);

    if (out_is_text(out)) {
        out_render(out, object, template, fields, &text);
        out_write(out, gd_buf_text(&text), text.len);
    }
    gd_buf_deinit(&text);
}

void out_say_each(struct repl_out *out, const cJSON *list, const char *template)
{
    const cJSON *member;

    cJSON_ArrayForEach(member, list)
    {
        out_say_fields(out, member, template, NULL);
    }
}
