// SPDX-License-Identifier: GPL-3.0-or-later
/* What somebody who looks on sees: the panes' picture on a terminal, else the console's lines. */
#ifndef GD_RESIDENT_VIEW_H
#define GD_RESIDENT_VIEW_H

#include <stdbool.h>
#include <stddef.h>

struct resident_view;

struct resident_view *resident_view_new(void); /* NULL: no memory */
void resident_view_free(struct resident_view *view);
/* A message of the session: RESIDENT_LINES, RESIDENT_BEGIN, RESIDENT_PICTURE, RESIDENT_SHOW. */
void resident_view_take(struct resident_view *view, char kind, const char *bytes, size_t len);
void resident_view_resize(struct resident_view *view);
void resident_view_leave(
    struct resident_view *view); /* the plain screen; the next picture is back */
/* What was typed while the picture is shown: true when it says that it is enough (q). */
bool resident_view_keys(struct resident_view *view);

#endif
