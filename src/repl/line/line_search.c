// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Searches the history at the readline prompt: see line_moves.h. While the search text is typed, a
 * separate keymap handles every key, and the shown line is kept.
 */
#include "repl/line/line_moves.h"

#include <ctype.h>
#include <fnmatch.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <readline/history.h>

#define ESCAPE           27
#define BACKSPACE        8
#define DELETE           127
#define CTRL_KEY(letter) ((letter)&0x1f)

#define MOST_WANTED 512 /* bytes of the search text, and a NUL */

enum kind {
    SEARCH_NONE,
    SEARCH_AS_TYPED, /* C-r, C-s: shows the match after each character */
    SEARCH_WHOLE,    /* M-p, M-n, vi's / and ?: after Enter */
};

static struct search {
    enum kind kind;
    int direction; /* -1: towards older lines */
    char wanted[MOST_WANTED];
    size_t len;
    bool failed;
    int from, from_point; /* where the search began */
    int at, at_point;     /* the match */
    const char *prompt;   /* for SEARCH_WHOLE */
    bool pattern;         /* vi: * ? [] as in a shell */
    Keymap keymap;        /* restored at the end */
} search;

static char last_typed[MOST_WANTED]; /* repeated by C-r C-r */
static char last_whole[MOST_WANTED]; /* repeated by vi's n */

/* ---- finding ---- */

static bool is_vi(void)
{
    return rl_editing_mode == 0;
}

/* Searches forward or back from point; -1: not in this line. */
static int find_in(const char *text, const char *wanted, int point, int direction)
{
    int len = (int)strlen(wanted);
    int last = (int)strlen(text) - len;

    point = point > last && direction < 0 ? last : point;
    for (; point >= 0 && point <= last; point += direction) {
        if (strncmp(text + point, wanted, (size_t)len) == 0) {
            return point;
        }
    }
    return -1;
}

/* The next match from this point of the shown line; identical lines do not count again. */
static bool find_next(int point)
{
    const char *shown = line_text_at(search.at);

    for (int at = search.at; at >= 0 && at <= history_length; at += search.direction) {
        const char *text = line_text_at(at);
        if (!text) {
            continue;
        }
        if (at != search.at) {
            point = search.direction < 0 ? (int)strlen(text) : 0;
        }
        if (at != search.at && shown && strcmp(shown, text) == 0) {
            continue;
        }
        int found = find_in(text, search.wanted, point, search.direction);
        if (found >= 0) {
            search.at = at;
            search.at_point = found;
            return true;
        }
    }
    return false;
}

static bool matches_pattern(const char *text, const char *wanted)
{
    char pattern[MOST_WANTED + 2];
    bool begins = wanted[0] == '^';

    snprintf(pattern, sizeof(pattern), "%s%s*", begins ? "" : "*", wanted + begins);
    return fnmatch(pattern, text, 0) == 0;
}

static bool match_line(const char *text, const char *wanted, bool pattern)
{
    if (pattern) {
        return matches_pattern(text, wanted);
    }
    if (wanted[0] == '^') {
        return strncmp(text, wanted + 1, strlen(wanted + 1)) == 0;
    }
    return strstr(text, wanted) != NULL;
}

/* The next matching line, from the kept line up to a line; -1: none. */
static int find_line(const char *wanted, int direction, bool pattern, int newest)
{
    for (int at = where_history() + direction; at >= 0 && at <= newest; at += direction) {
        const char *text = line_text_at(at);
        if (text && match_line(text, wanted, pattern)) {
            return at;
        }
    }
    return -1;
}

static int find_former(const char *wanted, int direction, bool pattern)
{
    return wanted[0] != '\0' ? find_line(wanted, direction, pattern, history_length - 1) : -1;
}

/* ---- while typing ---- */

static void show_search(void)
{
    if (search.kind == SEARCH_WHOLE) {
        rl_replace_line(search.wanted, 0);
        rl_point = rl_end;
        rl_message("%s", search.prompt);
        return;
    }
    const char *text = line_text_at(search.at);
    rl_replace_line(text ? text : "", 0);
    rl_point = search.at_point < rl_end ? search.at_point : rl_end;
    rl_message("(%s%si-search)`%s': ", search.failed ? "failed " : "",
               search.direction < 0 ? "reverse-" : "", search.wanted);
}

void line_search_end(bool at_found)
{
    int at = at_found ? search.at : search.from;
    int point = at_found ? search.at_point : search.from_point;

    if (search.kind == SEARCH_NONE) {
        return;
    }
    if (search.kind == SEARCH_AS_TYPED && search.len > 0) {
        memcpy(last_typed, search.wanted, sizeof(last_typed));
    }
    search.kind = SEARCH_NONE;
    rl_set_keymap(search.keymap);
    line_show(at);
    rl_point = point < rl_end ? point : rl_end;
    rl_restore_prompt();
    rl_clear_message();
}

/* Whether more of a key sequence follows Escape. */
static bool more_waits(void)
{
    struct pollfd input = {.fd = rl_instream ? fileno(rl_instream) : 0, .events = POLLIN};

    if (RL_ISSTATE(RL_STATE_MACROINPUT)) {
        return true;
    }
    if (rl_input_available_hook) {
        return rl_input_available_hook() != 0;
    }
    return poll(&input, 1, 0) == 1;
}

static void take_bytes(const char *bytes, size_t len)
{
    if (search.len + len >= sizeof(search.wanted)) {
        rl_ding();
        return;
    }
    memcpy(search.wanted + search.len, bytes, len);
    search.len += len;
    search.wanted[search.len] = '\0';
}

static bool is_inside(char byte) /* a UTF-8 continuation byte */
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Bytes of the last character are missing. */
static bool is_cut(void)
{
    size_t last = search.len;
    mbstate_t state = {0};

    if (last == 0) {
        return false;
    }
    do {
        last--;
    } while (last > 0 && is_inside(search.wanted[last]));
    return mbrlen(search.wanted + last, search.len - last, &state) == (size_t)-2;
}

static void drop_character(void)
{
    while (search.len > 0 && is_inside(search.wanted[search.len - 1])) {
        search.len--;
    }
    search.len -= search.len > 0;
    search.wanted[search.len] = '\0';
}

static void drop_word(void)
{
    while (search.len > 0 && isspace((unsigned char)search.wanted[search.len - 1])) {
        search.len--;
    }
    while (search.len > 0 && !isspace((unsigned char)search.wanted[search.len - 1])) {
        search.len--;
    }
    search.wanted[search.len] = '\0';
}

/* ---- as it is typed ---- */

static void look_from(int point)
{
    if (search.len == 0) {
        search.at = search.from;
        search.at_point = search.from_point;
    }
    search.failed = search.len > 0 && !find_next(point);
    if (search.failed) {
        rl_ding();
    }
}

/* C-r and C-s: the next match, or in the other direction. */
static void look_further(int direction)
{
    int point = search.at_point;

    if (search.len == 0) {
        take_bytes(last_typed, strlen(last_typed));
    } else if (search.direction == direction) {
        point += direction;
    }
    search.direction = direction;
    look_from(point);
}

/* C-w and C-y: takes more of the matched line, up to the end of a word or of the line. */
static void take_from_line(bool word)
{
    const char *text = line_text_at(search.at);
    size_t begin_search = (size_t)search.at_point + (search.failed ? 0 : search.len);
    size_t end = begin_search;

    if (!text || begin_search >= strlen(text)) {
        rl_ding();
        return;
    }
    do {
        end++;
    } while (text[end] != '\0' &&
             (!word || is_inside(text[end]) || isalnum((unsigned char)text[end])));
    take_bytes(text + begin_search, end - begin_search);
    look_from(search.at_point);
}

/* Ends the search before the key's usual action. */
static void leave_for(int key)
{
    line_search_end(true);
    if (key == ESCAPE && !more_waits()) {
        return;
    }
    rl_execute_next(key);
}

static void as_typed_key(int key)
{
    char byte = (char)key;

    switch (key) {
    case CTRL_KEY('R'): look_further(-1); break;
    case CTRL_KEY('S'): look_further(1); break;
    case CTRL_KEY('W'): take_from_line(true); break;
    case CTRL_KEY('Y'): take_from_line(false); break;
    case BACKSPACE:
    case DELETE:
        drop_character();
        look_from(search.at_point);
        break;
    case CTRL_KEY('G'): line_search_end(false); return;
    case CTRL_KEY('J'): line_search_end(true); return;
    default:
        if (key < ' ') {
            leave_for(key);
            return;
        }
        take_bytes(&byte, 1);
        if (is_cut()) {
            return;
        }
        look_from(search.at_point);
    }
    show_search();
}

/* ---- after Enter ---- */

static void run_whole(void)
{
    int at;

    if (search.len > 0) {
        memcpy(last_whole, search.wanted, sizeof(last_whole));
    }
    at = find_former(last_whole, search.direction, search.pattern);
    search.at = at;
    search.at_point = 0;
    line_search_end(at >= 0);
    if (at < 0) {
        rl_ding();
    }
}

static void whole_key(int key)
{
    char byte = (char)key;

    switch (key) {
    case '\r':
    case '\n': run_whole(); return;
    case CTRL_KEY('U'):
        search.len = 0;
        search.wanted[0] = '\0';
        break;
    case CTRL_KEY('W'): drop_word(); break;
    case BACKSPACE:
    case DELETE:
        if (search.len == 0) {
            line_search_end(false);
            return;
        }
        drop_character();
        break;
    case CTRL_KEY('G'): line_search_end(false); return;
    case ESCAPE:
        line_search_end(false);
        if (more_waits()) {
            rl_execute_next(key);
        }
        return;
    default:
        if (key < ' ') {
            rl_ding();
        } else {
            take_bytes(&byte, 1);
        }
    }
    if (!is_cut()) {
        show_search();
    }
}

static int search_key(int count, int key)
{
    (void)count;
    if (search.kind == SEARCH_AS_TYPED) {
        as_typed_key(key);
    } else if (search.kind == SEARCH_WHOLE) {
        whole_key(key);
    }
    return 0;
}

/* The key that ends a search is read twice, and would be recorded twice in a macro: no search
 * starts while one is being defined. */
static void begin_search(enum kind kind, int direction, const char *prompt)
{
    static KEYMAP_ENTRY_ARRAY keymap;

    if (RL_ISSTATE(RL_STATE_MACRODEF)) {
        rl_ding();
        return;
    }
    for (int key = 0; key < ANYOTHERKEY; key++) {
        keymap[key] = (KEYMAP_ENTRY){.type = ISFUNC, .function = search_key};
    }
    search = (struct search){.kind = kind, .direction = direction, .prompt = prompt};
    search.pattern = is_vi();
    search.from = where_history();
    search.from_point = rl_point;
    search.at = search.from;
    search.at_point = rl_point;
    search.keymap = rl_get_keymap();
    line_keep();
    rl_set_keymap(keymap);
    rl_save_prompt();
    show_search();
}

static int backward_key(int count, int key)
{
    (void)key;
    begin_search(SEARCH_AS_TYPED, count < 0 ? 1 : -1, "");
    return 0;
}

static int forward_key(int count, int key)
{
    (void)key;
    begin_search(SEARCH_AS_TYPED, count < 0 ? -1 : 1, "");
    return 0;
}

static int whole_backward_key(int count, int key)
{
    (void)count;
    begin_search(SEARCH_WHOLE, -1, key == '/' ? "/" : ":");
    return 0;
}

static int whole_forward_key(int count, int key)
{
    (void)count;
    begin_search(SEARCH_WHOLE, 1, key == '?' ? "?" : ":");
    return 0;
}

static int vi_search_key(int count, int key)
{
    return key == '?' ? whole_forward_key(count, key) : whole_backward_key(count, key);
}

/* ---- without a question ---- */

/* After line_keep: shows the line; -1: the kept line, with the bell. */
static void show_found(int at, int point)
{
    line_show(at >= 0 ? at : where_history());
    rl_point = point < rl_end ? point : rl_end;
    if (at < 0) {
        rl_ding();
    }
}

static int search_again(int direction)
{
    int point = rl_point;

    line_keep();
    int at = find_former(last_whole, direction, is_vi());
    show_found(at, at >= 0 ? 0 : point);
    return 0;
}

static int again_backward_key(int count, int key)
{
    (void)count;
    (void)key;
    return search_again(-1);
}

static int again_forward_key(int count, int key)
{
    (void)count;
    (void)key;
    return search_again(1);
}

static int vi_again_key(int count, int key)
{
    (void)count;
    return search_again(key == 'N' ? 1 : -1);
}

/* ---- text before the cursor ---- */

static int begin_older_key(int count, int key);
static int begin_newer_key(int count, int key);
static int part_older_key(int count, int key);
static int part_newer_key(int count, int key);

/* Repeated keys continue with the text before the cursor at the first one. */
static const char *before_cursor(bool at_begin)
{
    static char wanted[MOST_WANTED];
    static bool was_at_begin;
    bool goes_on = rl_last_func == begin_older_key || rl_last_func == begin_newer_key ||
                   rl_last_func == part_older_key || rl_last_func == part_newer_key;

    if (!goes_on || was_at_begin != at_begin) {
        snprintf(wanted, sizeof(wanted), "%s%.*s", at_begin ? "^" : "", rl_point, rl_line_buffer);
        was_at_begin = at_begin;
    }
    return wanted;
}

static int search_before_cursor(int count, bool at_begin)
{
    const char *wanted = before_cursor(at_begin);
    int direction = count < 0 ? 1 : -1;

    if (wanted[at_begin] == '\0') {
        line_move(count);
        return 0;
    }
    int point = at_begin ? (int)strlen(wanted + 1) : rl_point;
    int at = 0;
    for (; count != 0 && at >= 0; count += direction) {
        line_keep();
        at = find_line(wanted, direction, false, history_length);
        show_found(at, point);
    }
    return 0;
}

static int begin_older_key(int count, int key)
{
    (void)key;
    return search_before_cursor(count, true);
}

static int begin_newer_key(int count, int key)
{
    (void)key;
    return search_before_cursor(-count, true);
}

static int part_older_key(int count, int key)
{
    (void)key;
    return search_before_cursor(count, false);
}

static int part_newer_key(int count, int key)
{
    (void)key;
    return search_before_cursor(-count, false);
}

rl_command_func_t *line_search_instead(rl_command_func_t *theirs)
{
    const struct line_key all[] = {
        {rl_reverse_search_history, backward_key},
        {rl_forward_search_history, forward_key},
        {rl_noninc_reverse_search, whole_backward_key},
        {rl_noninc_forward_search, whole_forward_key},
        {rl_noninc_reverse_search_again, again_backward_key},
        {rl_noninc_forward_search_again, again_forward_key},
        {rl_vi_search, vi_search_key},
        {rl_vi_search_again, vi_again_key},
        {rl_history_search_backward, begin_older_key},
        {rl_history_search_forward, begin_newer_key},
        {rl_history_substr_search_backward, part_older_key},
        {rl_history_substr_search_forward, part_newer_key},
    };

    return line_key_find(all, sizeof(all) / sizeof(all[0]), theirs);
}
