// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Answers in pieces of a limited size. The last answers are kept, so that a cursor can ask for what
 * was left out of one. One thread.
 */
#ifndef GD_DRIVE_PAGE_H
#define GD_DRIVE_PAGE_H

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/error.h"

#define PAGE_LEAST   1000
#define PAGE_DEFAULT 20000
#define PAGE_MOST    1000000
#define PAGE_CURSOR  64

struct pages;

struct page {
    struct gd_buf text;       /* at most the budget */
    cJSON *record;            /* the same; owned */
    char cursor[PAGE_CURSOR]; /* of the next piece; "": nothing is left out */
    bool failed;              /* the answer is an error */
    bool wordless;            /* the answer has only a record */
};

int pages_create(struct pages **ret, struct gd_err *err);
void pages_destroy(struct pages *pages);
/* Takes over text (then empty) and record, and gives their first piece. */
void page_first(struct pages *pages, struct gd_buf *text, cJSON *record, bool failed, size_t budget,
                struct page *ret);
/* The piece at a cursor. GD_EINVAL: not a cursor; GD_ENOTFOUND: its answer was dropped. */
int page_next(struct pages *pages, const char *cursor, size_t budget, struct page *ret,
              struct gd_err *err);
void page_free(struct page *page);
/* A copy of the record within the budget, without cursor. */
cJSON *page_record(const cJSON *record, size_t budget);

#endif
