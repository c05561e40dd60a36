// SPDX-License-Identifier: GPL-3.0-or-later
/* What a read-only viewer shows: the image of the panes on a terminal, else the console's lines. */
#ifndef GD_RESIDENT_VIEW_H
#define GD_RESIDENT_VIEW_H

#include <stdbool.h>
#include <stddef.h>

struct resident_view;

struct resident_view *resident_view_new(void); /* NULL: out of memory */
void resident_view_free(struct resident_view *view);
/* Shows a message of the session: RESIDENT_LINES, RESIDENT_BEGIN, RESIDENT_PICTURE or
 * RESIDENT_SHOW. */
void resident_view_take(struct resident_view *view, char kind, const char *bytes, size_t len);
void resident_view_resize(struct resident_view *view);
void resident_view_leave(
    struct resident_view *view); /* back to the plain screen, until the next image */
/* Reads the keys typed while an image is shown: true when the viewer wants to leave (q). */
bool resident_view_keys(struct resident_view *view);

#endif
