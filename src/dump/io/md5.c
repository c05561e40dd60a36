// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/io/md5.h"

#include <math.h>
#include <string.h>

static uint32_t rotate(uint32_t x, unsigned bits)
{
    return x << bits | x >> (32 - bits);
}

static uint32_t word(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

/* One of the 64 steps: its function of b, c and d, and its word of the block. */
static uint32_t mix(int step, uint32_t b, uint32_t c, uint32_t d, int *at)
{
    switch (step / 16) {
    case 0: *at = step; return (b & c) | (~b & d);
    case 1: *at = (5 * step + 1) % 16; return (d & b) | (~d & c);
    case 2: *at = (3 * step + 5) % 16; return b ^ c ^ d;
    default: *at = 7 * step % 16; return c ^ (b | ~d);
    }
}

static void take_block(struct gd_md5 *md5, const unsigned char *block)
{
    static const unsigned shifts[4][4] = {
        {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t a = md5->state[0], b = md5->state[1], c = md5->state[2], d = md5->state[3];

    for (int step = 0; step < 64; step++) {
        /* RFC 1321's constants are sines. */
        uint32_t sine = (uint32_t)(uint64_t)(fabs(sin(step + 1)) * 4294967296.0);
        int at;
        uint32_t f = mix(step, b, c, d, &at) + a + sine + word(block + 4 * at);

        a = d;
        d = c;
        c = b;
        b += rotate(f, shifts[step / 16][step % 4]);
    }
    md5->state[0] += a;
    md5->state[1] += b;
    md5->state[2] += c;
    md5->state[3] += d;
}

void gd_md5_begin(struct gd_md5 *md5)
{
    *md5 = (struct gd_md5){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}};
}

void gd_md5_add(struct gd_md5 *md5, const void *data, size_t size)
{
    const unsigned char *at = data;

    for (; size > 0; size--, at++) {
        md5->block[md5->size++ % 64] = *at;
        if (md5->size % 64 == 0) {
            take_block(md5, md5->block);
        }
    }
}

void gd_md5_end(struct gd_md5 *md5, unsigned char ret[16])
{
    uint64_t bits = md5->size * 8;
    unsigned char length[8];

    for (int i = 0; i < 8; i++) {
        length[i] = (unsigned char)(bits >> 8 * i);
    }
    gd_md5_add(md5, "\x80", 1);
    while (md5->size % 64 != 56) {
        gd_md5_add(md5, "", 1);
    }
    gd_md5_add(md5, length, sizeof(length));
    for (int i = 0; i < 16; i++) {
        ret[i] = (unsigned char)(md5->state[i / 4] >> 8 * (i % 4));
    }
}
