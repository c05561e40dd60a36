// SPDX-License-Identifier: GPL-3.0-or-later
#define NCURSES_WIDECHAR 1
#include "tui/draw.h"

#include <curses.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "repl/out/tty.h"
#include "repl/out/tty_out.h"
#include "tui/draw_out.h"
#include "tui/mouse_read.h"
#include "tui/style.h"
#include "tui/tape.h"
#include "tui/text.h"

#include <term.h> /* last: its macros have very common names */

#define ESCAPE_DELAY 25 /* milliseconds to wait for the rest of an escape sequence */

/* Bracketed paste: the terminal marks pasted text, so that it cannot be mistaken for keys. */
#define PASTE_ON    "\033[?2004h"
#define PASTE_OFF   "\033[?2004l"
#define PASTE_BEGIN (KEY_MAX + 101) /* key numbers of our own, outside the terminal's */
#define PASTE_END   (KEY_MAX + 102)

/* A mouse report begins with one of these. */
#define MOUSE_NUMBERS_BEGIN "\033[<"
#define MOUSE_BYTES_BEGIN   "\033[M"
#define MOUSE_KEY           (KEY_MAX + 103)

struct draw {
    SCREEN *screen;
    struct draw_out *out;
    struct termios before; /* the terminal's modes before we changed them */
    bool has_before;
    bool utf8;
    bool second_screen;  /* pictures go to the terminal's alternate screen */
    bool has_started;    /* the terminal's colours are known */
    int colors;          /* available: 0, 8, 16 or 256 */
    draw_spell_fn spell; /* may be NULL */
    void *spell_ctx;
    bool direct; /* takes red, green and blue instead of a colour number */
    enum draw_theme theme;
    int most_colors;
    attr_t attr[DRAW_STYLE_COUNT];
    bool cursor_set;
    int cursor_row, cursor_col;
    char restore[256];
    mbstate_t typed; /* an incomplete multibyte character */
    bool mouse;      /* mouse reports are on */
    struct mouse_read mouse_read;
    struct draw_mouse pressed;
};

/* NULL: the terminal lacks it. */
static char *find_capability(const char *name)
{
    char *text = tigetstr(name);
    return text != (char *)-1 ? text : NULL;
}

/* Appends a capability without its padding. */
static void restore_add(struct draw *draw, const char *text)
{
    size_t len = strlen(draw->restore);

    while (text && *text != '\0' && len + 1 < sizeof(draw->restore)) {
        if (text[0] == '$' && text[1] == '<') {
            const char *end = strchr(text, '>');
            if (end) {
                text = end + 1;
                continue;
            }
        }
        draw->restore[len++] = *text++;
    }
    draw->restore[len] = '\0';
}

/* The sequence that switches mouse reports on or off; in tparm's static buffer. */
static const char *mouse_mode(bool on)
{
    char *mode = find_capability("XM"); /* tparm does not modify it */

    if (mode) {
        return tparm(mode, on ? 1L : 0L);
    }
    return on ? "\033[?1000h" : "\033[?1000l";
}

static void make_restore(struct draw *draw, bool with_mouse)
{
    static const char *const names[] = {"sgr0", "rmkx", "cnorm", "rmcup"};

    draw->restore[0] = '\0';
    restore_add(draw, PASTE_OFF);
    if (with_mouse) {
        restore_add(draw, mouse_mode(false));
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        restore_add(draw, find_capability(names[i]));
    }
}

void draw_restore_foreign(char *out, size_t size)
{
    struct draw draw = {.restore = ""};
    int found = 0;

    if (setupterm(NULL, STDOUT_FILENO, &found) == OK) {
        make_restore(&draw, true);
    }
    snprintf(out, size, "%s", draw.restore);
}

/* ---- styles ---- */

/* Delayed until colours are wanted, because start_color writes to the terminal. */
static void colors_start(struct draw *draw)
{
    if (draw->has_started) {
        return;
    }
    draw->has_started = true;
    if (!has_colors() || start_color() != OK || COLORS < 8 || COLOR_PAIRS <= DRAW_STYLE_COUNT ||
        use_default_colors() != OK) {
        return;
    }
    draw->colors = COLORS >= 256 ? 256 : COLORS >= 16 ? 16 : 8;
    draw->direct = tigetflag("RGB") > 0 || tigetnum("RGB") > 0;
}

/* A colour as this terminal encodes it; with true colours, only eight have numbers. */
static int color_of(const struct draw *draw, int color)
{
    return draw->direct && color >= 8 ? (int)style_rgb(color) : color;
}

/* The colour pair of a style has the style's number plus one. */
static attr_t style_start(const struct draw *draw, int colors, enum draw_style style)
{
    struct style_look look = style_look(draw->theme, colors, style);
    int pair = (int)style + 1;
    attr_t attr = A_NORMAL;

    attr |= (look.marks & STYLE_BOLD) != 0 ? A_BOLD : 0;
    attr |= (look.marks & STYLE_DIM) != 0 ? A_DIM : 0;
    attr |= (look.marks & STYLE_REVERSE) != 0 ? A_REVERSE : 0;
    attr |= (look.marks & STYLE_UNDERLINE) != 0 ? A_UNDERLINE : 0;
    if (colors > 0 && (look.fore >= 0 || look.back >= 0) &&
        init_extended_pair(pair, color_of(draw, look.fore), color_of(draw, look.back)) == OK) {
        attr |= (attr_t)COLOR_PAIR(pair);
    }
    return attr;
}

void draw_set_theme(struct draw *draw, enum draw_theme theme, int most)
{
    if (theme == draw->theme && most == draw->most_colors) {
        return;
    }
    if (most > 0) {
        colors_start(draw);
    }
    draw->theme = theme;
    draw->most_colors = most;
    int colors = most < draw->colors ? most : draw->colors;
    for (int style = 0; style < DRAW_STYLE_COUNT; style++) {
        draw->attr[style] = style_start(draw, colors, (enum draw_style)style);
    }
    draw_forget(draw);
}

int draw_most_colors(const struct draw *draw)
{
    return draw->most_colors;
}

/* ---- start and end ---- */

/* Output that bypasses curses. */
static void write_raw(const char *text)
{
    tty_out_puts(STDOUT_FILENO, text);
}

static void restore_modes(const struct draw *draw)
{
    if (draw->has_before) {
        tcsetattr(STDIN_FILENO, TCSANOW, &draw->before);
    }
}

/* Makes curses restore, when it ends, the modes from before C-s was taken. */
static void keep_modes(const struct draw *draw)
{
    struct termios now;

    if (tcgetattr(STDIN_FILENO, &now) == 0) {
        restore_modes(draw);
        def_shell_mode();
        tcsetattr(STDIN_FILENO, TCSANOW, &now);
    }
}

/* curses has no option for this and keeps its own copy of the capability table. The strings in it
 * are on the heap; an empty one is sent as nothing. */
static void make_empty(const char *capability)
{
    char *text = find_capability(capability);

    if (text) {
        text[0] = '\0';
    }
}

/* Panes on the normal screen, so that what they showed stays in the scroll-back: between newterm
 * and the first picture, keeps curses from switching to the alternate screen, and moves what the
 * normal one shows into the scroll-back. */
static void keep_one_screen(void)
{
    curs_set(0); /* flushes what newterm wrote, including the switch to the alternate screen */
    curs_set(1);
    const char *back = find_capability("rmcup");
    if (back) {
        putp(back);
    }
    for (int i = 0; i < LINES; i++) { /* the first picture would overwrite what is visible */
        putp("\n");
    }
    fflush(stdout);
    make_empty("smcup");
    make_empty("rmcup");
}

/* curses looks for input, and then reads it. If Ctrl-C flushes the input in between, the read must
 * not wait for the next key. */
static void set_reads(void)
{
    struct termios modes;

    if (tcgetattr(STDIN_FILENO, &modes) == 0) {
        modes.c_cc[VMIN] = 0;
        modes.c_cc[VTIME] = 0;
        tcsetattr(STDIN_FILENO, TCSADRAIN, &modes);
        def_prog_mode(); /* curses sets them again after a command that took the terminal */
    }
}

static void set_modes(const struct draw *draw)
{
    keep_modes(draw);
    if (!draw->second_screen) {
        keep_one_screen();
    }
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_reads();
    set_escdelay(ESCAPE_DELAY);
    define_key("\033[200~", PASTE_BEGIN);
    define_key("\033[201~", PASTE_END);
    define_key(MOUSE_NUMBERS_BEGIN, MOUSE_KEY);
    define_key(MOUSE_BYTES_BEGIN, MOUSE_KEY + 1);
    write_raw(PASTE_ON);
}

int draw_open(bool utf8, bool second_screen, struct draw **ret, struct gd_err *err)
{
    struct draw *draw = calloc(1, sizeof(*draw));

    if (!draw) {
        return gd_fail_nomem(err);
    }
    draw->utf8 = utf8;
    draw->second_screen = second_screen;
    int rc = draw_out_open(&draw->out, err);
    if (rc != GD_OK) {
        free(draw);
        return rc;
    }
    draw->has_before = tcgetattr(STDIN_FILENO, &draw->before) == 0;
    tty_flow_take(STDIN_FILENO); /* C-s is a key here, as at the prompt */
    draw->screen = newterm(NULL, draw_out_file(draw->out), stdin);
    if (!draw->screen) {
        restore_modes(draw);
        draw_out_close(draw->out);
        free(draw);
        return gd_fail(err, GD_EUNSUPPORTED,
                       "unknown terminal type; set TERM to one that this machine knows");
    }
    set_term(draw->screen);
    set_modes(draw);
    for (int style = 0; style < DRAW_STYLE_COUNT; style++) {
        draw->attr[style] = style_start(draw, 0, (enum draw_style)style);
    }
    make_restore(draw, false);
    *ret = draw;
    return GD_OK;
}

/* The terminal accepts no bytes, and every write would block forever. Restoring its modes needs
 * none. */
static void give_up_terminal(const struct draw *draw)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    restore_modes(draw);
    for (int fd = STDOUT_FILENO; nowhere >= 0 && fd <= STDERR_FILENO; fd++) {
        if (isatty(fd)) {
            dup2(nowhere, fd);
        }
    }
    if (nowhere >= 0) {
        close(nowhere);
    }
}

static void leave_curses(struct draw *draw, int most_ms)
{
    tape_close();
    if (!draw_out_release(draw->out, most_ms)) {
        give_up_terminal(draw);
    }
    write_raw(PASTE_OFF);
    if (draw->mouse) {
        write_raw(mouse_mode(false));
    }
    curs_set(1);
    endwin();
    if (!draw->second_screen) {
        write_raw("\n"); /* below the last picture */
    }
}

void draw_close(struct draw *draw)
{
    if (!draw) {
        return;
    }
    leave_curses(draw, TTY_STUCK_MS);
    delscreen(draw->screen);
    draw_out_close(draw->out);
    free(draw);
}

void draw_leave(struct draw *draw)
{
    leave_curses(draw, -1);
}

void draw_enter(struct draw *draw)
{
    tty_flow_take(STDIN_FILENO); /* C-s may have stopped the terminal in the meantime */
    write_raw(PASTE_ON);
    if (draw->mouse) {
        write_raw(mouse_mode(true));
    }
    draw_resize(draw);
    draw_forget(draw);
}

void draw_resize(struct draw *draw)
{
    struct winsize size;

    (void)draw;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
        resizeterm(size.ws_row, size.ws_col);
    }
}

void draw_size(const struct draw *draw, int *rows, int *cols)
{
    (void)draw;
    getmaxyx(stdscr, *rows, *cols);
}

const char *draw_restore_text(const struct draw *draw)
{
    return draw->restore;
}

void draw_begin(struct draw *draw)
{
    draw->cursor_set = false;
    tape_begin();
    tape_add(TAPE_THEME, 0, 0, (int)draw->theme, DRAW_PLAIN, NULL, 0);
    erase();
}

void draw_end(struct draw *draw)
{
    if (draw->cursor_set) {
        move(draw->cursor_row, draw->cursor_col);
    }
    tape_end();
    curs_set(draw->cursor_set ? 1 : 0);
    refresh();
    /* the first picture is not caught, because it sets the terminal's modes */
    draw_out_catch(draw->out);
    draw_out_send(draw->out);
}

bool draw_send(struct draw *draw)
{
    return draw_out_send(draw->out);
}

void draw_forget(struct draw *draw)
{
    (void)draw;
    clearok(stdscr, TRUE);
}

int draw_text(struct draw *draw, int row, int col, int cols, enum draw_style style,
              const char *text)
{
    return draw_text_len(draw, row, col, cols, style, text, strlen(text));
}

void draw_set_spelling(struct draw *draw, draw_spell_fn fn, void *ctx)
{
    draw->spell = fn;
    draw->spell_ctx = ctx;
}

int draw_text_len(struct draw *draw, int row, int col, int cols, enum draw_style style,
                  const char *text, size_t len)
{
    int used = 0;
    char spelled[2048];

    if (draw->spell && len < sizeof(spelled) && memchr(text, '/', len)) {
        memcpy(spelled, text, len);
        spelled[len] = '\0';
        draw->spell(draw->spell_ctx, spelled, len);
        text = spelled;
    }
    tape_add(TAPE_TEXT, row, col, cols, style, text, len);
    attrset((int)draw->attr[style]);
    for (size_t at = 0; at < len;) {
        struct tui_glyph glyph;
        at += tui_glyph(text + at, draw->utf8, &glyph);
        if (used + glyph.width > cols) {
            break;
        }
        if (used > 0 || glyph.width > 0) { /* a lone accent would combine with the previous cell */
            mvaddstr(row, col + used, glyph.text);
        }
        used += glyph.width;
    }
    attrset(A_NORMAL);
    return used;
}

void draw_fill(struct draw *draw, int row, int col, int cols, enum draw_style style)
{
    tape_add(TAPE_FILL, row, col, cols, style, NULL, 0);
    attrset((int)draw->attr[style]);
    for (int i = 0; i < cols; i++) {
        mvaddstr(row, col + i, " ");
    }
    attrset(A_NORMAL);
}

void draw_hline(struct draw *draw, int row, int col, int cols)
{
    tape_add(TAPE_HLINE, row, col, cols, DRAW_PLAIN, NULL, 0);
    for (int i = 0; i < cols; i++) {
        mvaddstr(row, col + i, draw->utf8 ? "\u2500" : "-");
    }
}

void draw_vline(struct draw *draw, int row, int col, int rows)
{
    tape_add(TAPE_VLINE, row, col, rows, DRAW_PLAIN, NULL, 0);
    for (int i = 0; i < rows; i++) {
        mvaddstr(row + i, col, draw->utf8 ? "\u2502" : "|");
    }
}

void draw_cursor(struct draw *draw, int row, int col)
{
    tape_add(TAPE_CURSOR, row, col, 0, DRAW_PLAIN, NULL, 0);
    draw->cursor_set = true;
    draw->cursor_row = row;
    draw->cursor_col = col;
}

static int special_key(int key)
{
    switch (key) {
    case KEY_UP: return DRAW_KEY_UP;
    case KEY_DOWN: return DRAW_KEY_DOWN;
    case KEY_LEFT: return DRAW_KEY_LEFT;
    case KEY_RIGHT: return DRAW_KEY_RIGHT;
    case KEY_HOME: return DRAW_KEY_HOME;
    case KEY_END: return DRAW_KEY_END;
    case KEY_PPAGE: return DRAW_KEY_PAGE_UP;
    case KEY_NPAGE: return DRAW_KEY_PAGE_DOWN;
    case KEY_DC: return DRAW_KEY_DELETE;
    case KEY_BACKSPACE: return DRAW_KEY_BACKSPACE;
    case KEY_BTAB: return DRAW_KEY_BACKTAB;
    case KEY_ENTER: return '\r';
    case PASTE_BEGIN: return DRAW_KEY_PASTE;
    case PASTE_END: return DRAW_KEY_PASTE_END;
    default: break;
    }
    return key >= KEY_F(1) && key <= KEY_F(12) ? DRAW_KEY_F1 + key - KEY_F(1) : DRAW_KEY_OTHER;
}

/* The character completed by this byte; -1: none (yet). Invalid sequences are dropped, but the byte
 * that reveals them is kept: it begins the next character. */
static int take_byte(struct draw *draw, char byte)
{
    bool inside = mbsinit(&draw->typed) == 0;
    wchar_t wide = 0;
    size_t rc = mbrtowc(&wide, &byte, 1, &draw->typed);

    if (rc == (size_t)-1) {
        memset(&draw->typed, 0, sizeof(draw->typed));
        return inside ? take_byte(draw, byte) : -1;
    }
    return rc == (size_t)-2 ? -1 : (int)wide;
}

/* true: the byte belongs to a mouse report and is not a key. */
static bool take_mouse(struct draw *draw, int key, enum mouse_taken *taken)
{
    *taken = MOUSE_MORE;
    if (draw->mouse_read.form != MOUSE_NO) {
        /* curses has turned a column of 0x7f into this key */
        int byte = key == KEY_BACKSPACE ? 0x7f : key;
        *taken = mouse_read_byte(&draw->mouse_read, byte, &draw->pressed);
        return *taken != MOUSE_BROKEN;
    }
    if (key != MOUSE_KEY && key != MOUSE_KEY + 1) {
        return false;
    }
    mouse_read_begin(&draw->mouse_read, key == MOUSE_KEY);
    return true;
}

/* Not get_wch: after an invalid byte it swallows the keys that follow. */
int draw_key(struct draw *draw)
{
    enum mouse_taken taken;

    for (;;) {
        int key = getch();
        if (key == ERR) {
            return -1;
        }
        if (take_mouse(draw, key, &taken)) {
            if (taken == MOUSE_EVENT) {
                return DRAW_KEY_MOUSE;
            }
            continue;
        }
        if (key > 0xff) {
            return special_key(key);
        }
        key = take_byte(draw, (char)key);
        if (key >= 0) {
            return key;
        }
    }
}

/* ---- the mouse ---- */

bool draw_set_mouse(struct draw *draw, bool on)
{
    const char *begins = find_capability("kmous");
    bool known = begins && (strcmp(begins, MOUSE_NUMBERS_BEGIN) == 0 ||
                            strcmp(begins, MOUSE_BYTES_BEGIN) == 0);

    if (known && on != draw->mouse) {
        draw->mouse = on;
        fputs(mouse_mode(on), draw_out_file(draw->out)); /* through the same stream as curses */
        fflush(draw_out_file(draw->out));
        make_restore(draw, on);
    }
    return !on || known;
}

void draw_mouse(const struct draw *draw, struct draw_mouse *ret)
{
    *ret = draw->pressed;
}
