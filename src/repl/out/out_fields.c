// SPDX-License-Identifier: GPL-3.0-or-later
/* Fields: from C values to JSON and back. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "engine/utf8.h"
#include "repl/out/out.h"

#define EXACT_DOUBLE 1e15 /* cJSON prints smaller whole numbers in full */

bool out_is_utf8(const char *text)
{
    uint32_t code;

    while (*text != '\0') {
        size_t len = gd_utf8_decode(text, &code);
        if (len == 0) {
            return false;
        }
        text += len;
    }
    return true;
}

/* out_safe for UTF-8. */
static char *escape_text(const char *text)
{
    struct gd_buf out = GD_BUF_INIT(SIZE_MAX);

    out_add_safe(&out, text, true);
    return gd_buf_take(&out);
}

static cJSON *text_item(const char *text)
{
    if (!text) {
        return cJSON_CreateNull();
    }
    if (out_is_utf8(text)) {
        return cJSON_CreateString(text);
    }
    char *escaped = escape_text(text);
    cJSON *item = cJSON_CreateString(escaped ? escaped : "?");
    free(escaped);
    return item;
}

static cJSON *int_item(int64_t number)
{
    char text[24];

    if (fabs((double)number) < EXACT_DOUBLE) {
        return cJSON_CreateNumber((double)number);
    }
    snprintf(text, sizeof(text), "%lld", (long long)number);
    return cJSON_CreateRaw(text);
}

/* The shortest text that reads back as the same number; cJSON's own is inexact. */
static cJSON *real_item(double number)
{
    char text[40];

    if (!isfinite(number)) {
        return cJSON_CreateString(isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, number);
        if (strtod(text, NULL) == number) {
            break;
        }
    }
    return cJSON_CreateRaw(text);
}

static cJSON *numeral_item(const char *digits)
{
    char *end = NULL;
    double number = digits ? strtod(digits, &end) : 0;
    bool is_number = digits && end != digits && *end == '\0' && isfinite(number);
    return is_number ? cJSON_CreateNumber(number) : text_item(digits);
}

static void add_item(cJSON *object, const char *key, cJSON *item)
{
    if (!cJSON_AddItemToObject(object, key, item)) {
        cJSON_Delete(item);
    }
}

void out_set_fields(cJSON *object, const struct out_field *field)
{
    for (; field->kind != OUT_KIND_END; field++) {
        switch (field->kind) {
        case OUT_KIND_TEXT: add_item(object, field->key, text_item(field->text)); break;
        case OUT_KIND_INT: add_item(object, field->key, int_item(field->whole)); break;
        case OUT_KIND_REAL: add_item(object, field->key, real_item(field->real)); break;
        case OUT_KIND_NUMERAL: add_item(object, field->key, numeral_item(field->text)); break;
        case OUT_KIND_BOOL: add_item(object, field->key, cJSON_CreateBool(field->truth)); break;
        case OUT_KIND_JSON: add_item(object, field->key, field->json); break;
        default: break;
        }
    }
}

cJSON *out_object(cJSON *object, const char *key)
{
    return cJSON_AddObjectToObject(object, key);
}

cJSON *out_list(cJSON *object, const char *key)
{
    return cJSON_AddArrayToObject(object, key);
}

static cJSON *push_item(cJSON *list, cJSON *item)
{
    if (!cJSON_AddItemToArray(list, item)) {
        cJSON_Delete(item);
        return NULL;
    }
    return item;
}

cJSON *out_push(cJSON *list)
{
    return push_item(list, cJSON_CreateObject());
}

void out_move(cJSON *object, cJSON *from)
{
    while (from && from->child) {
        cJSON *item = cJSON_DetachItemViaPointer(from, from->child);
        out_set(object, OUT_JSON(item->string, item));
    }
}

void out_push_text(cJSON *list, const char *text)
{
    push_item(list, text_item(text));
}

void out_push_int(cJSON *list, int64_t number)
{
    push_item(list, int_item(number));
}

const char *out_text_of(const cJSON *object, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return text ? text : "";
}

double out_number_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble
           : cJSON_IsRaw(item)  ? strtod(item->valuestring, NULL)
                                : 0;
}
