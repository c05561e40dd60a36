// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/style.h"

enum { BLACK, RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN, WHITE, BRIGHT = 8 };
enum { ON_8, ON_16, ON_256, DEPTHS };
#define THEMES DRAW_THEME_COUNT

/* The colour of a style; zero: none. */
struct tint {
    short color[DEPTHS];
};

/* Styles below DRAW_HEAT0. The safe theme uses blue and orange only, which people with red-green
 * colour blindness can tell apart, on dark and on light backgrounds. */
static const struct tint tints[THEMES][DRAW_HEAT0] =
    {
        [DRAW_THEME_DARK] =
            {
                [DRAW_ERROR] = {{RED, RED + BRIGHT, 203}},
                [DRAW_MARK] = {{YELLOW, YELLOW + BRIGHT, 221}},
                [DRAW_SCOPE] = {{CYAN, CYAN, 80}},
                [DRAW_HIT] = {{MAGENTA, MAGENTA + BRIGHT, 213}},
                [DRAW_WATCHED] = {{GREEN, GREEN + BRIGHT, 114}},
                [DRAW_GOOD] = {{GREEN, GREEN, 114}},
                [DRAW_CHANGED] = {{YELLOW, YELLOW, 215}},
                [DRAW_MATCH] = {{YELLOW, YELLOW, 221}},
                [DRAW_CURVE0] = {{CYAN, CYAN, 80}},
                [DRAW_CURVE0 + 1] = {{YELLOW, YELLOW, 221}},
                [DRAW_CURVE0 + 2] = {{GREEN, GREEN, 114}},
                [DRAW_CURVE0 + 3] = {{MAGENTA, MAGENTA, 176}},
                [DRAW_CURVE0 + 4] = {{BLUE, BLUE + BRIGHT, 75}},
                [DRAW_CURVE0 + 5] = {{RED, RED + BRIGHT, 209}},
            },
        [DRAW_THEME_LIGHT] =
            {
                [DRAW_ERROR] = {{RED, RED, 160}},
                [DRAW_MARK] = {{BLUE, BLUE, 25}},
                [DRAW_SCOPE] = {{BLUE, BLUE, 24}},
                [DRAW_HIT] = {{MAGENTA, MAGENTA, 127}},
                [DRAW_WATCHED] = {{GREEN, GREEN, 28}},
                [DRAW_GOOD] = {{GREEN, GREEN, 28}},
                [DRAW_CHANGED] = {{RED, RED, 130}},
                [DRAW_MATCH] = {{BLUE, BLUE, 25}},
                [DRAW_CURVE0] = {{BLUE, BLUE, 25}},
                [DRAW_CURVE0 + 1] = {{RED, RED, 130}},
                [DRAW_CURVE0 + 2] = {{GREEN, GREEN, 28}},
                [DRAW_CURVE0 + 3] = {{MAGENTA, MAGENTA, 127}},
                [DRAW_CURVE0 + 4] = {{CYAN, CYAN, 30}},
                [DRAW_CURVE0 + 5] = {{BLACK, BLACK, 240}},
            },
        [DRAW_THEME_SAFE] =
            {
                [DRAW_ERROR] = {{YELLOW, YELLOW, 172}},
                [DRAW_MARK] = {{YELLOW, YELLOW, 172}},
                [DRAW_SCOPE] = {{BLUE, BLUE + BRIGHT, 32}},
                [DRAW_HIT] = {{YELLOW, YELLOW, 172}},
                [DRAW_WATCHED] = {{BLUE, BLUE + BRIGHT, 32}},
                [DRAW_GOOD] = {{BLUE, BLUE + BRIGHT, 32}},
                [DRAW_CHANGED] = {{YELLOW, YELLOW, 172}},
                [DRAW_MATCH] = {{YELLOW, YELLOW, 172}},
                [DRAW_CURVE0] = {{BLUE, BLUE + BRIGHT, 32}},
                [DRAW_CURVE0 + 1] = {{YELLOW, YELLOW, 172}},
                [DRAW_CURVE0 + 2] = {{WHITE, WHITE, 248}},
                [DRAW_CURVE0 + 3] = {{BLUE, BLUE, 25}},
                [DRAW_CURVE0 + 4] = {{YELLOW, YELLOW + BRIGHT, 136}},
                [DRAW_CURVE0 + 5] = {{WHITE, WHITE, 243}},
            },
};

static const unsigned marks[DRAW_HEAT0] = {
    [DRAW_BOLD] = STYLE_BOLD,         [DRAW_DIM] = STYLE_DIM,       [DRAW_REVERSE] = STYLE_REVERSE,
    [DRAW_ERROR] = STYLE_BOLD,        [DRAW_MARK] = STYLE_BOLD,     [DRAW_HIT] = STYLE_BOLD,
    [DRAW_CHANGED] = STYLE_UNDERLINE, [DRAW_MATCH] = STYLE_REVERSE,
};

/* From low to high: dark to bright (bright to dark on a light background), so that the order is
 * visible without colour. */
static const unsigned char heat_256[THEMES][DRAW_HEATS] = {
    [DRAW_THEME_DARK] = {17, 18, 19, 25, 31, 37, 36, 35, 71, 107, 143, 179, 214, 220, 226, 229},
    [DRAW_THEME_LIGHT] = {231, 230, 229, 228, 222, 221, 215, 214, 208, 202, 196, 160, 124, 88, 52,
                          16},
    [DRAW_THEME_SAFE] = {17, 18, 19, 24, 60, 61, 102, 103, 144, 143, 179, 178, 214, 220, 221, 228},
};

#define NAMED_HEATS 5
static const unsigned char heat_8[THEMES][NAMED_HEATS] = {
    [DRAW_THEME_DARK] = {BLUE, CYAN, GREEN, YELLOW, WHITE},
    [DRAW_THEME_LIGHT] = {WHITE, YELLOW, RED, MAGENTA, BLACK},
    [DRAW_THEME_SAFE] = {BLUE, BLUE, CYAN, WHITE, YELLOW},
};
static const unsigned char heat_16[THEMES][NAMED_HEATS] = {
    [DRAW_THEME_DARK] = {BLUE, CYAN, GREEN, YELLOW, YELLOW + BRIGHT},
    [DRAW_THEME_LIGHT] = {WHITE + BRIGHT, YELLOW + BRIGHT, YELLOW, RED, MAGENTA},
    [DRAW_THEME_SAFE] = {BLUE, BLUE + BRIGHT, WHITE, YELLOW, YELLOW + BRIGHT},
};

/* Whether black text is more readable on it than white text. */
static bool is_bright(int color)
{
    if (color < 16) {
        return color != BLACK && color != BLUE && color != RED && color != MAGENTA;
    }
    int cube = color - 16;
    int light = 3 * (cube / 36) + 6 * (cube / 6 % 6) + cube % 6;
    return light > 24; /* of 50 */
}

static struct style_look heat_look(enum draw_theme theme, int colors, int level)
{
    static const unsigned without[] = {STYLE_DIM, 0, STYLE_BOLD, STYLE_REVERSE};
    int named = level * NAMED_HEATS / DRAW_HEATS;
    struct style_look look = {.fore = -1, .back = -1};

    if (colors == 0) {
        look.marks = without[level * 4 / DRAW_HEATS];
        return look;
    }
    look.back = colors >= 256  ? heat_256[theme][level]
                : colors >= 16 ? heat_16[theme][named]
                               : heat_8[theme][named];
    bool bright = is_bright(look.back);
    if (colors >= 256) {
        look.fore = bright ? 16 : 231; /* from the colour cube: users redefine the named colours */
    } else {
        look.fore = bright ? BLACK : WHITE;
    }
    return look;
}

/* One step of the colour cube; the first is larger than the others. */
static unsigned cube_step(int number)
{
    return number > 0 ? 55 + 40 * (unsigned)number : 0;
}

unsigned style_rgb(int color)
{
    static const unsigned bright[] = {0x7f7f7f, 0xff5f5f, 0x5fff5f, 0xffff5f,
                                      0x5f87ff, 0xff5fff, 0x5fffff, 0xffffff};
    if (color < 16) {
        return bright[color & 7];
    }
    if (color >= 232) { /* greys */
        return (8 + 10 * ((unsigned)color - 232)) * 0x010101;
    }
    int cube = color - 16;
    return cube_step(cube / 36) << 16 | cube_step(cube / 6 % 6) << 8 | cube_step(cube % 6);
}

struct style_look style_look(enum draw_theme theme, int colors, enum draw_style style)
{
    struct style_look look = {.fore = -1, .back = -1};

    if (style >= DRAW_HEAT0) {
        return heat_look(theme, colors, (int)style - DRAW_HEAT0);
    }
    look.marks = marks[style];
    if (colors > 0) {
        short color = tints[theme][style].color[colors >= 256  ? ON_256
                                                : colors >= 16 ? ON_16
                                                               : ON_8];
        look.fore = color != 0 ? color : -1;
    }
    return look;
}
