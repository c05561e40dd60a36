// SPDX-License-Identifier: GPL-3.0-or-later
/* Layered pictures, character by character. */
#include "../../unit.h"
#include "engine/graph/layers.h"

static struct gd_layers layers;
static char shown[1 << 16];

static int set_up(void **state)
{
    memset(&layers, 0, sizeof(layers));
    return 0;
}

static int tear_down(void **state)
{
    gd_layers_deinit(&layers);
    return 0;
}

/* Boxes A, B, ... */
static void make_boxes(int count)
{
    layers.box_count = count;
    for (int i = 0; i < count; i++) {
        layers.box[i].width = 3;
    }
}

static void add_edge(char from, int out, char to)
{
    struct gd_layers_box *a = &layers.box[from - 'A'], *b = &layers.box[to - 'A'];

    a->outs = a->outs > out ? a->outs : out + 1;
    layers.edge[layers.edge_count++] =
        (struct gd_layers_edge){.from = from - 'A', .out = out, .to = to - 'A', .in = b->ins++};
}

static bool is_in_box(int row, int col)
{
    for (int i = 0; i < layers.box_count; i++) {
        const struct gd_layers_box *box = &layers.box[i];
        if (row >= box->row && row < box->row + box->rows && col >= box->col &&
            col < box->col + box->width) {
            return true;
        }
    }
    return false;
}

static char glyph_at(int row, int col)
{
    static const char glyphs[] = " |-`||,+-'-^.+v#";
    const struct gd_layers_cell *cell = gd_layers_at(&layers, row, col);

    for (int i = 0; i < layers.box_count; i++) {
        const struct gd_layers_box *box = &layers.box[i];
        if (row >= box->row && row < box->row + box->rows && col >= box->col &&
            col < box->col + box->width) {
            assert_int_equal(cell->lines, 0); /* no line below a box */
            return col == box->col + 1 && row == box->row + box->frame ? (char)('A' + i)
                   : box->rows > 1                                     ? ':'
                                                                       : ' ';
        }
    }
    return cell->arrow != 0 ? cell->arrow : cell->crossing ? 'x' : glyphs[cell->lines];
}

static const char *draw_layers(void)
{
    size_t used = 0;

    assert_ok(gd_layers_place(&layers, NULL));
    for (int row = 0; row < layers.rows; row++) {
        for (int col = 0; col < layers.cols; col++) {
            shown[used++] = glyph_at(row, col);
        }
        while (used > 0 && shown[used - 1] == ' ') {
            used--;
        }
        shown[used++] = '\n';
    }
    shown[used] = '\0';
    return shown;
}

static void test_diamond(void **state)
{
    make_boxes(4);
    add_edge('A', 0, 'B');
    add_edge('A', 0, 'C');
    add_edge('B', 0, 'D');
    add_edge('C', 0, 'D');
    assert_string_equal(draw_layers(), " A -v> B ->:D:\n"
                                       "    `> C ->:::\n");
}

static void test_long_edge(void **state)
{
    make_boxes(4);
    add_edge('A', 0, 'B');
    add_edge('B', 0, 'C');
    add_edge('C', 0, 'D');
    add_edge('A', 0, 'D');
    assert_string_equal(draw_layers(), " A -v> B -> C ->:D:\n"
                                       "    `---------->:::\n");
}

/* One slot read twice, and two slots. */
static void test_several_edges(void **state)
{
    make_boxes(3);
    add_edge('A', 0, 'B');
    add_edge('A', 0, 'B');
    add_edge('B', 0, 'C');
    add_edge('B', 1, 'C');
    assert_string_equal(draw_layers(), " A -v>:B:->:C:\n"
                                       "    `>:::->:::\n");
}

/* The operands come in the other order: the lines change places in a row of their own. */
static void test_swapped_operands(void **state)
{
    make_boxes(4);
    add_edge('A', 0, 'C');
    add_edge('B', 0, 'C');
    add_edge('B', 0, 'D');
    add_edge('A', 0, 'D');
    assert_string_equal(draw_layers(), "    ,->:C:\n"
                                       " A -+,>:::\n"
                                       " B -x+\n"
                                       "    |`>:D:\n"
                                       "    `->:::\n");
}

static void test_swapped_slots(void **state)
{
    make_boxes(2);
    add_edge('A', 1, 'B');
    add_edge('A', 0, 'B');
    assert_string_equal(draw_layers(), ":A:--.,>:B:\n"
                                       ":::-.`x>:::\n"
                                       "    `-'\n");
}

static void test_feedback(void **state)
{
    make_boxes(3);
    add_edge('A', 0, 'B');
    add_edge('B', 0, 'C');
    add_edge('C', 0, 'A');
    assert_string_equal(draw_layers(), ":A:-> B ->:C:\n"
                                       ":::<------:::\n");
    assert_true(layers.edge[2].back);
}

static void test_thirty_consumers(void **state)
{
    make_boxes(31);
    for (int i = 1; i <= 30; i++) {
        add_edge('A', 0, (char)('A' + i));
    }
    draw_layers();
    assert_int_equal(layers.rows, 30);
    assert_string_equal(shown, "    ,> B\n"
                               "    +> C\n"
                               "    +> D\n"
                               "    +> E\n"
                               "    +> F\n"
                               "    +> G\n"
                               "    +> H\n"
                               "    +> I\n"
                               "    +> J\n"
                               "    +> K\n"
                               "    +> L\n"
                               "    +> M\n"
                               "    +> N\n"
                               "    +> O\n"
                               " A -#> P\n"
                               "    +> Q\n"
                               "    +> R\n"
                               "    +> S\n"
                               "    +> T\n"
                               "    +> U\n"
                               "    +> V\n"
                               "    +> W\n"
                               "    +> X\n"
                               "    +> Y\n"
                               "    +> Z\n"
                               "    +> [\n"
                               "    +> \\\n"
                               "    +> ]\n"
                               "    +> ^\n"
                               "    `> _\n");
}

static void test_crossing(void **state)
{
    make_boxes(6);
    add_edge('A', 0, 'D');
    add_edge('A', 0, 'E');
    add_edge('A', 0, 'F');
    add_edge('B', 0, 'D');
    add_edge('B', 0, 'E');
    add_edge('B', 0, 'F');
    add_edge('C', 0, 'E');
    assert_string_equal(draw_layers(), "    ,->:D:\n"
                                       "    |,>:::\n"
                                       "    ||\n"
                                       " A -#x>:F:\n"
                                       " B -x#>:::\n"
                                       "    ||\n"
                                       "    `x>:E:\n"
                                       "     `>:::\n"
                                       " C --->:::\n");
}

static void test_nothing_and_one(void **state)
{
    assert_string_equal(draw_layers(), "");
    make_boxes(1);
    assert_string_equal(draw_layers(), " A\n");
}

/* Each line continues in the next cell, as part of the same producer's edges or across another
 * one's, or ends at a box. */
static void check_cell(int row, int col, const struct gd_layers_cell *cell)
{
    static const struct {
        int lines, back, row, col;
    } ways[] = {{GD_LAYERS_N, GD_LAYERS_S, -1, 0},
                {GD_LAYERS_E, GD_LAYERS_W, 0, 1},
                {GD_LAYERS_S, GD_LAYERS_N, 1, 0},
                {GD_LAYERS_W, GD_LAYERS_E, 0, -1}};

    for (int i = 0; i < 4; i++) {
        int next_row = row + ways[i].row, next_col = col + ways[i].col;
        const struct gd_layers_cell *next = gd_layers_at(&layers, next_row, next_col);
        if ((cell->lines & ways[i].lines) == 0) {
            continue;
        }
        if (is_in_box(next_row, next_col)) {
            assert_int_equal(ways[i].row, 0);
            continue;
        }
        assert_non_null(next);
        assert_int_equal(next->lines & ways[i].back, ways[i].back);
        assert_true(cell->crossing || next->crossing || cell->source == next->source);
    }
    assert_true(!cell->crossing || (cell->lines == 15 && cell->arrow == 0));
}

static void test_lines_of_any_graph(void **state)
{
    unsigned random = 1;

    for (int round = 0; round < 300; round++) {
        memset(&layers, 0, sizeof(layers));
        int count = 2 + round % 14;
        make_boxes(count);
        for (int i = 0; i < 2 * count; i++) {
            random = random * 1103515245 + 12345;
            int a = (int)(random >> 16) % count, b = (int)(random >> 8 & 0xff) % count;
            if (a != b) {
                add_edge((char)('A' + a), (int)(random >> 4 & 1), (char)('A' + b));
            }
        }
        draw_layers();
        int arrows = 0;
        for (int row = 0; row < layers.rows; row++) {
            for (int col = 0; col < layers.cols; col++) {
                const struct gd_layers_cell *cell = gd_layers_at(&layers, row, col);
                check_cell(row, col, cell);
                arrows += cell->arrow != 0;
            }
        }
        assert_int_equal(arrows, layers.edge_count); /* each edge ends at a place of its own */
        gd_layers_deinit(&layers);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(test_diamond),          TEST(test_long_edge),
    TEST(test_several_edges),    TEST(test_swapped_operands),
    TEST(test_swapped_slots),    TEST(test_feedback),
    TEST(test_thirty_consumers), TEST(test_crossing),
    TEST(test_nothing_and_one),  TEST(test_lines_of_any_graph),
};

RUN_TESTS()
