// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/cann/cann_file_name.h"

#include <string.h>

#define LONG_DIGITS 10 /* a time has at least this many digits; other numbers have fewer */
#define MAX_DIGITS  255
#define FFTS_FIELDS 7 /* task, stream, time, type of task, context, thread, device */

struct field {
    const char *text;
    size_t len;
    bool digits;
};

/* Splits off at most `max` fields from the right; *rest is the length of the text before them,
 * without the dot. The first field of the text is always the type and never split off. */
static int split_right(const char *text, struct field *field, int max, size_t *rest)
{
    size_t end = strlen(text);
    int count = 0;

    while (count < max) {
        size_t start = end;
        bool digits = true;

        while (start > 0 && text[start - 1] != '.') {
            start--;
            digits = digits && text[start] >= '0' && text[start] <= '9';
        }
        if (start == 0) {
            break;
        }
        field[count++] = (struct field){text + start, end - start,
                                        digits && end > start && end - start <= MAX_DIGITS};
        end = start - 1;
    }
    *rest = end;
    return count;
}

static uint64_t parse_number(const struct field *field)
{
    uint64_t value = 0;

    for (size_t i = 0; i < field->len; i++) {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(field->text[i] - '0'), &value)) {
            return UINT64_MAX;
        }
    }
    return value;
}

static int64_t parse_id(const struct field *field)
{
    uint64_t value = parse_number(field);

    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static bool all_digits(const struct field *field, int count)
{
    for (int i = 0; i < count; i++) {
        if (!field[i].digits) {
            return false;
        }
    }
    return true;
}

/* The text left of the last `used` fields is TYPE.NAME; `count` fields are known. */
static bool take_names(const char *text, const struct field *field, int used, int count,
                       struct gd_cann_name *ret)
{
    const char *dot = strchr(text, '.');

    if (used >= count || !dot || field[used].text <= dot) {
        return false;
    }
    ret->type = text;
    ret->type_len = (size_t)(dot - text);
    ret->name = dot + 1;
    ret->name_len = (size_t)(field[used].text + field[used].len - ret->name);
    return ret->type_len > 0;
}

static bool take_ffts(const char *text, const struct field *field, int count,
                      struct gd_cann_name *ret)
{
    if (count <= FFTS_FIELDS || !all_digits(field, FFTS_FIELDS)) {
        return false;
    }
    /* If a time follows, these digits are part of the name. */
    if (field[0].len >= LONG_DIGITS && field[4].len < LONG_DIGITS) {
        return false;
    }
    ret->thread = parse_id(&field[1]);
    ret->context = parse_id(&field[2]);
    ret->time = parse_number(&field[4]);
    ret->stream = parse_id(&field[5]);
    ret->task = parse_id(&field[6]);
    ret->ffts = true;
    return take_names(text, field, FFTS_FIELDS, count, ret);
}

static bool take_plain(const char *text, const struct field *field, int count,
                       struct gd_cann_name *ret)
{
    bool stream = count > 3 && all_digits(field, 3);

    if (count < 3 || !all_digits(field, 2)) {
        return false;
    }
    ret->time = parse_number(&field[0]);
    ret->stream = stream ? parse_id(&field[1]) : -1;
    ret->task = parse_id(&field[stream ? 2 : 1]);
    return take_names(text, field, stream ? 3 : 2, count, ret);
}

/* The compiled kernel's name is arbitrary; there is no type. */
static bool take_exception(const char *text, const struct field *field, int count, size_t rest,
                           struct gd_cann_name *ret)
{
    int used;

    ret->kind = GD_CANN_EXCEPTION;
    if (count >= 5 && all_digits(field, 5)) {
        ret->stream = parse_id(&field[4]);
        ret->task = parse_id(&field[3]);
        used = 5;
    } else if (count >= 3 && all_digits(field, 3)) {
        ret->stream = parse_id(&field[2]);
        ret->task = parse_id(&field[1]);
        used = 3;
    } else if (count >= 2 && field[0].digits && field[1].len == 6 &&
               strncmp(field[1].text, "custom", 6) == 0) {
        used = 2;
    } else {
        return false;
    }
    ret->time = parse_number(&field[0]);
    ret->type = "";
    ret->name = text;
    ret->name_len = used < count ? (size_t)(field[used].text + field[used].len - text) : rest;
    return ret->name_len > 0;
}

bool gd_cann_name_parse(const char *text, bool exceptions, struct gd_cann_name *ret)
{
    struct field field[FFTS_FIELDS + 1];
    size_t rest;
    int count = split_right(text, field, FFTS_FIELDS + 1, &rest);

    *ret = (struct gd_cann_name){.task = -1, .stream = -1, .context = -1, .thread = -1};
    if (exceptions || strncmp(text, "exception_info.", 15) == 0) {
        return take_exception(text, field, count, rest, ret);
    }
    if (!take_ffts(text, field, count, ret)) {
        *ret = (struct gd_cann_name){.task = -1, .stream = -1, .context = -1, .thread = -1};
        if (!take_plain(text, field, count, ret)) {
            return false;
        }
    }
    if (ret->type_len == 7 && strncmp(ret->type, "Opdebug", 7) == 0 && ret->name_len >= 12 &&
        strncmp(ret->name, "Node_OpDebug", 12) == 0) {
        ret->kind = GD_CANN_OVERFLOW;
    }
    return true;
}

void gd_cann_name_escape(const char *name, char *out, size_t size)
{
    size_t at = 0;

    for (; name[at] != '\0' && at + 1 < size; at++) {
        out[at] = strchr(" ./\\", name[at]) ? '_' : name[at];
    }
    if (size > 0) {
        out[at] = '\0';
    }
}
