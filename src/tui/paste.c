// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Pasted text. It may be full of letters that are keys of the lists, so it is collected to its end
 * and inserted into the prompt or the field of a form. Nothing of it runs until the user presses
 * Enter.
 */
#include <limits.h>
#include <string.h>
#include <wchar.h>

#include "tui/tui_impl.h"

#define MOST ((size_t)1 << 20) /* bytes; the rest is dropped */

/* Line ends arrive as carriage returns; other control characters are dropped. */
static void gather_key(struct tui *tui, int key)
{
    char bytes[MB_LEN_MAX];
    mbstate_t state = {0};

    if (key == '\r') {
        key = '\n';
    }
    if ((key < ' ' && key != '\n' && key != '\t') || key == 0x7f || key >= DRAW_KEY_UP) {
        return;
    }
    size_t len = wcrtomb(bytes, (wchar_t)key, &state);
    if (len != (size_t)-1) {
        gd_buf_add(&tui->pasted, bytes, len);
    }
}

/* A field holds one line: the first. */
static void into_form(struct tui *tui, const char *text)
{
    mbstate_t state = {0};
    wchar_t wide;

    for (size_t len; *text != '\0' && *text != '\n'; text += len) {
        len = mbrtowc(&wide, text, strlen(text), &state);
        if (len == 0 || len > MB_LEN_MAX) {
            return;
        }
        if (wide >= L' ') {
            tui_form_key(tui, (int)wide);
        }
    }
}

static void insert_paste(struct tui *tui)
{
    const char *text = gd_buf_text(&tui->pasted);

    if (tui->question || tui->help) {
        return; /* a paste answers neither */
    }
    if (tui->form) {
        into_form(tui, text);
    } else {
        tui_to_prompt(tui);
        tui_prompt_paste(tui, text);
    }
}

bool tui_paste_key(struct tui *tui, int key)
{
    if (key == DRAW_KEY_PASTE) {
        tui_paste_stop(tui);
        gd_buf_init(&tui->pasted, MOST);
        tui->pasting = true;
    } else if (key == DRAW_KEY_PASTE_END) {
        if (tui->pasting) {
            insert_paste(tui);
        }
        tui_paste_stop(tui);
    } else if (tui->pasting) {
        gather_key(tui, key);
    } else {
        return false;
    }
    return true;
}

void tui_paste_stop(struct tui *tui)
{
    gd_buf_deinit(&tui->pasted);
    tui->pasting = false;
}
