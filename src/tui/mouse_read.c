// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/mouse_read.h"

#include <stdio.h>

#define BYTES      3  /* button, column, row */
#define BYTE_ZERO  32 /* added to each of them */
#define MODIFIERS  (4 | 8 | 16)
#define WHEEL_UP   64
#define WHEEL_DOWN 65

void mouse_read_begin(struct mouse_read *read, bool numbers)
{
    read->form = numbers ? MOUSE_NUMBERS : MOUSE_BYTES;
    read->len = 0;
}

/* Reports count columns and rows from 1. */
static enum mouse_taken read_event(int button, int col, int row, struct draw_mouse *ret)
{
    if (col < 1 || row < 1) {
        return MOUSE_OTHER;
    }
    ret->col = col - 1;
    ret->row = row - 1;
    switch (button & ~MODIFIERS) {
    case 0: ret->button = DRAW_MOUSE_CLICK; return MOUSE_EVENT;
    case WHEEL_UP: ret->button = DRAW_MOUSE_UP; return MOUSE_EVENT;
    case WHEEL_DOWN: ret->button = DRAW_MOUSE_DOWN; return MOUSE_EVENT;
    default: return MOUSE_OTHER;
    }
}

static enum mouse_taken end_of_numbers(struct mouse_read *read, int byte, struct draw_mouse *ret)
{
    int button, col, row;
    char rest;

    read->form = MOUSE_NO;
    read->text[read->len] = '\0';
    if (byte == 'm' ||
        sscanf((const char *)read->text, "%6d;%6d;%6d%c", &button, &col, &row, &rest) != 3) {
        return MOUSE_OTHER;
    }
    return read_event(button, col, row, ret);
}

enum mouse_taken mouse_read_byte(struct mouse_read *read, int byte, struct draw_mouse *ret)
{
    if (read->form == MOUSE_NUMBERS) {
        if (byte == 'M' || byte == 'm') {
            return end_of_numbers(read, byte, ret);
        }
        if ((byte != ';' && (byte < '0' || byte > '9')) || read->len + 1 == sizeof(read->text)) {
            read->form = MOUSE_NO;
            return MOUSE_BROKEN;
        }
        read->text[read->len++] = (unsigned char)byte;
        return MOUSE_MORE;
    }
    if (byte < BYTE_ZERO || byte > 0xff) {
        read->form = MOUSE_NO;
        return MOUSE_BROKEN;
    }
    read->text[read->len++] = (unsigned char)byte;
    if (read->len < BYTES) {
        return MOUSE_MORE;
    }
    read->form = MOUSE_NO;
    return read_event(read->text[0] - BYTE_ZERO, read->text[1] - BYTE_ZERO,
                      read->text[2] - BYTE_ZERO, ret);
}
