// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A command's result: one record, built once, printed as text or as JSON.
 *
 * The command fills its record (a JSON object) with typed fields. out_say() then prints sentences
 * whose {fields} come from the record. In JSON mode only the record is written, as one line
 * {"v":1,"type":TYPE,...}, and out_say() does nothing; in text mode only the sentences are written.
 * Build the record in both modes. The keys are an interface: do not rename them.
 *
 *     cJSON *record = out_record(call->out, "scan");
 *     out_set(record, OUT_INT("values", sum->values), OUT_INT("steps", sum->steps),
 *             OUT_REAL("seconds", seconds), OUT_SOME("file", sum->file));
 *     out_say(call->out, record, "{values|value} of {steps|step} in {seconds:time}[: {file}].\n");
 *
 *     text: 1,200 values of 3 steps in 1.25 s: part.gdscan.
 *     JSON: {"v":1,"type":"scan","values":1200,"steps":3,"seconds":1.25,"file":"part.gdscan"}
 *
 * A table has one list of columns for both modes:
 *
 *     static const struct out_column columns[] = {{"name", "Name", false, ":fit"},
 *                                                 {"hits", "Hits", true, ":n"}};
 *     struct out_table *table = out_table_begin(call->out, "nodes", columns, 2);
 *     out_put(table, OUT_TEXT("name", node->name), OUT_INT("hits", node->hits));
 *     out_table_end(table);
 *
 * Memory: an object belongs to the one it was added to, the record to `out`. Text in fields is
 * copied. When memory is short, a field, a row or a line is missing; nothing fails. One thread.
 */
#ifndef GD_REPL_OUT_H
#define GD_REPL_OUT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct gd_buf;
struct repl_out;

/* ---- records: fields, lists, objects --------------------------------------------------------- */

/* The record, at first an empty object. The first call sets the type. */
cJSON *out_record(struct repl_out *out, const char *type);

enum out_kind {
    OUT_KIND_END = 0,
    OUT_KIND_NOTHING,
    OUT_KIND_TEXT,
    OUT_KIND_INT,
    OUT_KIND_REAL,
    OUT_KIND_NUMERAL,
    OUT_KIND_BOOL,
    OUT_KIND_JSON,
};
struct out_field {
    enum out_kind kind;
    const char *key;
    const char *text;
    int64_t whole;
    double real;
    bool truth;
    cJSON *json;
};
#define OUT_FIELD(k, key_, member, value)                                                          \
    ((struct out_field){.kind = (k), .key = (key_), .member = (value)})
/* Invalid UTF-8 is escaped; NULL becomes null. */
#define OUT_TEXT(key, text_)     OUT_FIELD(OUT_KIND_TEXT, key, text, text_)
#define OUT_INT(key, number)     OUT_FIELD(OUT_KIND_INT, key, whole, (int64_t)(number))
/* Enough digits to read the same double again; "nan", "inf" and "-inf" as text. */
#define OUT_REAL(key, number)    OUT_FIELD(OUT_KIND_REAL, key, real, (double)(number))
/* Formatted digits: a number if the text is one, else text. NULL becomes null. */
#define OUT_NUMERAL(key, digits) OUT_FIELD(OUT_KIND_NUMERAL, key, text, digits)
#define OUT_BOOL(key, yes)       OUT_FIELD(OUT_KIND_BOOL, key, truth, (yes))
#define OUT_JSON(key, object)    OUT_FIELD(OUT_KIND_JSON, key, json, object) /* takes ownership */
#define OUT_NOTHING              ((struct out_field){.kind = OUT_KIND_NOTHING})
/* An optional field. Its value is evaluated only if the condition holds. */
#define OUT_IF(condition, field) ((condition) ? (field) : OUT_NOTHING)
/* Left out when the text is "" (it must not be NULL). */
#define OUT_SOME(key, text)      OUT_IF((text)[0] != '\0', OUT_TEXT(key, text))

/* out_set(object, FIELD...) adds the fields in this order. */
#define out_set(object, ...) out_set_fields(object, OUT_FIELDS(__VA_ARGS__))
#define OUT_FIELDS(...)                                                                            \
    ((const struct out_field[]){OUT_NOTHING, ##__VA_ARGS__, {.kind = OUT_KIND_END}})
void out_set_fields(cJSON *object, const struct out_field *fields);

cJSON *out_object(cJSON *object, const char *key); /* object[key] = {} */
cJSON *out_list(cJSON *object, const char *key);   /* object[key] = [] */
cJSON *out_push(cJSON *list);                      /* a new {} at its end */
void out_move(cJSON *object, cJSON *from);         /* moves all members */
void out_push_text(cJSON *list, const char *text);
void out_push_int(cJSON *list, int64_t number);

/* For records from a training process: the member, or "" or 0 if there is none. */
const char *out_text_of(const cJSON *object, const char *key);
double out_number_of(const cJSON *object, const char *key);

/* ---- text ------------------------------------------------------------------------------------ */
/*
 * A template:
 *   {key}      text, escaped; whole numbers in full, others with 6 digits; true or false; the
 *              members of a list, separated by ", "; "?" if there is no such member
 *   {a.b}      member b of object a
 *   {}         the object itself, for out_say_each over a list of texts
 *   {key|noun} "1 node", "12,345 nodes", "2 batches"
 *   {key:FORM} one or several of these forms, separated by ':':
 *     n        12,345
 *     bytes    32 KiB
 *     time     1.25 s (seconds)
 *     date     2026-01-02 03:04:05 (seconds since 1970)
 *     .9       9 significant digits, whole numbers in full
 *     g4       4 significant digits, like %.4g
 *     f1       1 digit after the decimal point
 *     repr     as Python prints a float: 100.0
 *     shape    (64, ?): a list of sizes; negative: unknown
 *     fit      a node's name, without leading scopes if it does not fit a terminal's line; fit40:
 *              the rest of the line needs 40 columns
 *     8, -8    right-aligned or left-aligned in 8 columns
 *     ;        separator of a list's members; starts with ' ', ',' or ';'
 *   [text]     a section: left out unless every field in it is set. Sections nest; each is judged
 *              by its own fields. Not set: no such member, null, "", 0, false, an empty list.
 *   {?key}     prints nothing; its section is left out unless the field is set, whatever its other
 *              fields are: "[{?ranked}, rank {rank}]" prints rank 0, too
 *   {!key}     prints nothing; the same if the field is not set
 *   \\c        the character c
 *
 * FIELD...: fields for the text only (no OUT_JSON); they hide the object's. The object may be NULL.
 */
#define out_say(out, object, template, ...)                                                        \
    out_say_fields(out, object, template, OUT_FIELDS(__VA_ARGS__))
void out_say_fields(struct repl_out *out, const cJSON *object, const char *template,
                    const struct out_field *fields);
/* out_say for each member of the list. */
void out_say_each(struct repl_out *out, const cJSON *list, const char *template);

/* Text that is in no record; nothing in JSON mode. */
void out_printf(struct repl_out *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void out_write(struct repl_out *out, const char *text, size_t len);
bool out_is_json(const struct repl_out *out); /* the record is wanted */
bool out_is_text(const struct repl_out *out); /* the text is wanted; both may be */
/* Redirected to a CSV file: only tables are written, with all digits; text is left out. */
bool out_is_csv(const struct repl_out *out);
bool out_utf8(const struct repl_out *out);
int out_width(const struct repl_out *out); /* columns */
/* The escape sequence of an SGR parameter such as "31"; "" without colour. In the arena. */
const char *out_sgr(const struct repl_out *out, const char *sgr);
#define OUT_RESET "0"

bool out_is_utf8(const char *text);
/* Escapes control characters and invalid UTF-8 (\\x1b); without `utf8`, everything but ASCII. */
void out_add_safe(struct gd_buf *out, const char *text, bool utf8);
/* Writes one line of text into a page of HTML, with all that HTML or the reader would take for
 * something else escaped. */
void out_put_html(FILE *file, const char *text);
/* "12,345"; "1.25 s", "3 min 20 s", "unknown" when it is negative or nan. */
void out_add_number(struct gd_buf *text, uint64_t number);
void out_add_duration(struct gd_buf *text, double seconds);

/* ---- tables ---------------------------------------------------------------------------------- */
/*
 * In text mode columns are aligned under their titles by display width; an empty table prints
 * nothing. In JSON mode rows become objects in record[name], with all their fields, even those
 * without a column. A CSV table has the same columns and rows; its text is not escaped.
 */
struct out_column {
    const char *name;  /* the field shown */
    const char *title; /* "Hits" */
    bool number;       /* right-aligned */
    /* Forms of the field, ":n"; NULL: none. Empty if the field is missing or null.
     * Or a template over the row, "{rank} of {world_size}". */
    const char *cell;
};
struct out_table;
struct out_table *out_table_begin(struct repl_out *out, const char *record_name,
                                  const struct out_column *columns, int count);
/* Writes a CSV file, in every mode. NULL: out of memory. */
struct out_table *out_table_csv(struct repl_out *out, FILE *file, const struct out_column *columns,
                                int count);
/* The next row: an object that the table owns. Fill it before the next call. */
cJSON *out_row(struct out_table *table);
/* out_put(table, FIELD...) adds a row. */
#define out_put(table, ...)      out_set(out_row(table), __VA_ARGS__)
/* out_put_text(table, FIELD...): fields of the current row for its text or CSV; no OUT_JSON. */
#define out_put_text(table, ...) out_put_text_fields(table, OUT_FIELDS(__VA_ARGS__))
void out_put_text_fields(struct out_table *table, const struct out_field *fields);
void out_table_end(struct out_table *table); /* prints; frees */
/* Text mode only: prints the first `most` members of a list in the record as a table. */
void out_table_of(struct repl_out *out, const cJSON *list, size_t most,
                  const struct out_column *columns, int count);

#endif
