// SPDX-License-Identifier: GPL-3.0-or-later
#include "drive/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repl/out/out.h"

#define KEPT        8
#define MOST_KEPT   ((size_t)64 << 20) /* bytes of a text that is kept */
#define MOST_DEPTH  8
#define MOST_STRING 400 /* bytes of a text in a record that is too large */

struct kept {
    unsigned number; /* 0: free */
    struct gd_buf text;
    cJSON *record;
    bool failed;
};

struct pages {
    struct kept kept[KEPT];
    unsigned last;
};

/* ---- sizes ---- */

static size_t size_of(const cJSON *item)
{
    char *text = cJSON_PrintUnformatted(item);
    size_t size =
        text ? strlen(text) + (item->string ? strlen(item->string) + 4 : 1) : SIZE_MAX / 4;

    free(text);
    return size;
}

/* The list that takes most room, in the record or in an object of it. Remembers its place. */
struct largest {
    cJSON *list, *parent;
    size_t size;
};

static void find_largest(cJSON *object, int depth, struct largest *ret)
{
    for (cJSON *item = object->child; item; item = item->next) {
        if (cJSON_IsObject(item) && depth < MOST_DEPTH) {
            find_largest(item, depth + 1, ret);
        } else if (cJSON_IsArray(item) && item->child) {
            size_t size = size_of(item);
            if (size > ret->size) {
                *ret = (struct largest){.list = item, .parent = object, .size = size};
            }
        }
    }
}

/* Where to cut, at or before `at`: not inside a character. Invalid UTF-8 is cut anywhere. */
static size_t place_to_cut(const char *text, size_t at)
{
    for (size_t back = 0; back < 4 && back < at; back++) {
        if (((unsigned char)text[at - back] & 0xc0) != 0x80) {
            return at - back;
        }
    }
    return at;
}

/* Shortens long texts, also in lists. */
static void shorten_texts(cJSON *item)
{
    if (cJSON_IsString(item) && strlen(item->valuestring) > MOST_STRING) {
        memcpy(item->valuestring + place_to_cut(item->valuestring, MOST_STRING - 3), "...", 4);
    }
    for (cJSON *child = (item->type & (cJSON_Array | cJSON_Object)) ? item->child : NULL; child;
         child = child->next) {
        shorten_texts(child);
    }
}

static bool has_inside(const cJSON *item, const cJSON *wanted)
{
    bool found = item == wanted;

    for (const cJSON *child = item->child; child && wanted && !found; child = child->next) {
        found = has_inside(child, wanted);
    }
    return found;
}

/* Makes the object fit by dropping what is largest. keep: an empty list that stays; NULL: none. */
static void drop_largest(cJSON *object, const cJSON *keep, size_t budget)
{
    while (size_of(object) > budget) {
        struct largest largest = {.list = NULL};
        find_largest(object, 0, &largest);
        cJSON *gone = largest.list;
        for (cJSON *item = object->child; !gone && item; item = item->next) {
            bool stays = strcmp(item->string, "type") == 0 || strcmp(item->string, "command") == 0;
            gone = stays || has_inside(item, keep) ? NULL : item;
            largest.parent = object;
        }
        if (!gone) {
            return;
        }
        cJSON *left = cJSON_GetObjectItemCaseSensitive(object, "left_out");
        left = left ? left : out_object(object, "left_out");
        if (gone == left) {
            return;
        }
        out_set(left, OUT_TEXT(gone->string, "too large for max_bytes"));
        cJSON_Delete(cJSON_DetachItemViaPointer(largest.parent, gone));
    }
}

/* ---- the pieces of a record ---- */

/* Fills *list of `to` with the members of `from` after the first `at`. Returns the next `at`; 0:
 * all fit. */
static size_t add_members(cJSON *to, const cJSON *from, size_t at, size_t room)
{
    const cJSON *member = from->child;
    size_t index = 0;

    for (; member && index < at; index++) {
        member = member->next;
    }
    for (; member; member = member->next, index++) {
        cJSON *copy = cJSON_Duplicate(member, true);
        if (copy && size_of(copy) > room && index == at) {
            shorten_texts(copy);
            if (cJSON_IsObject(copy)) {
                drop_largest(copy, NULL, room);
            } else if (size_of(copy) > room) {
                cJSON_Delete(copy);
                copy = cJSON_CreateString("too large for max_bytes");
            }
        }
        size_t size = copy ? size_of(copy) : 0;
        if (!copy || (size > room && index > at)) {
            cJSON_Delete(copy);
            return index;
        }
        room -= size < room ? size : room;
        cJSON_AddItemToArray(to, copy);
    }
    return 0;
}

/* *next: where the rest of its largest list begins; 0: all of it is there. */
static cJSON *cut_record(cJSON *whole, size_t budget, size_t at, size_t *next)
{
    cJSON *record = cJSON_Duplicate(whole, true);
    struct largest from = {.list = NULL}, to = {.list = NULL};

    *next = 0;
    if (!record || (at == 0 && size_of(record) <= budget)) {
        return record;
    }
    find_largest(whole, 0, &from);
    find_largest(record, 0, &to); /* the same one: the records are equal */
    if (!from.list || !to.list) {
        shorten_texts(record);
        drop_largest(record, NULL, budget);
        return record;
    }
    size_t count = (size_t)cJSON_GetArraySize(from.list);
    while (to.list->child) {
        cJSON_DeleteItemFromArray(to.list, 0);
    }
    if (size_of(record) > budget / 2) {
        shorten_texts(record);
        drop_largest(record, to.list, budget / 2);
    }
    size_t frame = size_of(record);
    *next = add_members(to.list, from.list, at, frame < budget ? budget - frame : 0);
    if (at > 0 || *next > 0) {
        size_t shown = (size_t)cJSON_GetArraySize(to.list);
        cJSON *left = cJSON_GetObjectItemCaseSensitive(record, "left_out");
        left = left ? left : out_object(record, "left_out");
        out_set(left, OUT_TEXT("list", from.list->string), OUT_INT("from", at),
                OUT_INT("shown", shown), OUT_INT("of", count));
    }
    return record;
}

cJSON *page_record(const cJSON *record, size_t budget)
{
    cJSON *whole = cJSON_Duplicate(record, true);
    size_t next = 0;
    cJSON *cut = whole ? cut_record(whole, budget, 0, &next) : NULL;

    cJSON_Delete(whole);
    return cut;
}

/* ---- the pieces of a text ---- */

/* Adds at most `budget` bytes, whole lines if there are some. Returns where the rest begins; 0: it
 * is all there. */
static size_t cut_text(const struct gd_buf *whole, size_t budget, size_t at, struct gd_buf *ret)
{
    const char *text = gd_buf_text(whole) + at;
    size_t len = whole->len - at;

    if (len > budget) {
        len = budget;
        while (len > 0 && text[len - 1] != '\n') {
            len--;
        }
        if (len < budget / 2) { /* one long line */
            len = place_to_cut(text, budget);
        }
    }
    gd_buf_add(ret, text, len);
    return at + len < whole->len ? at + len : 0;
}

/* ---- kept answers ---- */

int pages_create(struct pages **ret, struct gd_err *err)
{
    *ret = calloc(1, sizeof(**ret));
    return *ret ? GD_OK : gd_fail_nomem(err);
}

static void forget_answer(struct kept *kept)
{
    cJSON_Delete(kept->record);
    gd_buf_deinit(&kept->text);
    *kept = (struct kept){.number = 0};
}

void pages_destroy(struct pages *pages)
{
    for (int i = 0; pages && i < KEPT; i++) {
        forget_answer(&pages->kept[i]);
    }
    free(pages);
}

void page_free(struct page *page)
{
    gd_buf_deinit(&page->text);
    cJSON_Delete(page->record);
}

/* What is left of a record whose lists are all shown. */
static cJSON *stub_record(const cJSON *record)
{
    cJSON *stub = cJSON_CreateObject();

    out_set(stub, OUT_TEXT("type", out_text_of(record, "type")),
            OUT_TEXT("command", out_text_of(record, "command")));
    return stub;
}

static void make_page(struct kept *kept, size_t text_at, size_t list_at, bool first, size_t budget,
                      struct page *ret)
{
    size_t text_next = 0, list_next = 0;

    *ret = (struct page){.failed = kept->failed, .wordless = kept->text.len == 0};
    gd_buf_init(&ret->text, SIZE_MAX);
    ret->record = first || list_at > 0 ? cut_record(kept->record, budget, list_at, &list_next)
                                       : stub_record(kept->record);
    if (text_at < kept->text.len) {
        text_next = cut_text(&kept->text, budget, text_at, &ret->text);
    }
    if (text_next == 0 && list_next == 0) {
        return;
    }
    bool more_text = text_next > 0;
    snprintf(ret->cursor, sizeof(ret->cursor), "%u.%zu.%zu", kept->number,
             more_text ? text_next : kept->text.len, list_next);
    cJSON *left = cJSON_GetObjectItemCaseSensitive(ret->record, "left_out");
    left = left ? left : out_object(ret->record, "left_out");
    out_set(left, OUT_IF(more_text, OUT_INT("text_bytes", kept->text.len - text_next)),
            OUT_TEXT("cursor", ret->cursor));
}

void page_first(struct pages *pages, struct gd_buf *text, cJSON *record, bool failed, size_t budget,
                struct page *ret)
{
    unsigned number = ++pages->last ? pages->last : ++pages->last;
    struct kept *kept = &pages->kept[number % KEPT];

    forget_answer(kept);
    *kept = (struct kept){.number = number, .text = *text, .record = record, .failed = failed};
    gd_buf_init(text, text->max);
    make_page(kept, 0, 0, true, budget, ret);
    if (ret->cursor[0] == '\0' || kept->text.len > MOST_KEPT) {
        forget_answer(kept);
    }
}

int page_next(struct pages *pages, const char *cursor, size_t budget, struct page *ret,
              struct gd_err *err)
{
    unsigned number = 0;
    size_t text_at = 0, list_at = 0;
    int used = 0;

    if (strlen(cursor) >= PAGE_CURSOR ||
        sscanf(cursor, "%9u.%18zu.%18zu%n", &number, &text_at, &list_at, &used) != 3 ||
        cursor[used] != '\0') {
        return gd_fail(err, GD_EINVAL, "not a cursor that an answer gave: \"%.40s\"", cursor);
    }
    struct kept *kept = &pages->kept[number % KEPT];
    if (number == 0 || kept->number != number || text_at > kept->text.len) {
        return gd_fail(err, GD_ENOTFOUND,
                       "the answer of the cursor \"%.40s\" is no longer kept: call the tool again",
                       cursor);
    }
    make_page(kept, text_at, list_at, false, budget, ret);
    return GD_OK;
}
