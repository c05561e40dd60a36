// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * PyTorch's files. The first byte of the input says what the rest is: a file as it is, or the
 * pickle of the object in a good zip or legacy file, with one storage of 64 bytes.
 */
#include "fuzz_archive.h"

#define MAX_INPUT 4096
#define STORAGE   64

enum { WHOLE, IN_ZIP, IN_LEGACY, KINDS };

struct out {
    unsigned char bytes[MAX_INPUT + 2048];
    size_t len;
};

static void put_bytes(struct out *out, const void *data, size_t size)
{
    FUZZ_CHECK(size <= sizeof(out->bytes) - out->len);
    memcpy(out->bytes + out->len, data, size);
    out->len += size;
}

/* The remaining bytes are 0. */
static void put_number(struct out *out, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++, number >>= 8) {
        unsigned char byte = (unsigned char)number;

        put_bytes(out, &byte, 1);
    }
}

/* What local and central headers have in common: stored, without a checksum. */
static void put_member(struct out *out, const char *name, size_t size)
{
    put_number(out, 0, 2 + 2 + 2 + 2 + 4);
    put_number(out, size, 4);
    put_number(out, size, 4);
    put_number(out, strlen(name), 2);
}

static void put_zip(struct out *out, const uint8_t *program, size_t size)
{
    static const char *const names[] = {"a/data.pkl", "a/data/0"};
    size_t at[2], sizes[2] = {size, STORAGE}, directory;

    for (int i = 0; i < 2; i++) {
        at[i] = out->len;
        put_bytes(out, "PK\3\4\0\0", 6);
        put_member(out, names[i], sizes[i]);
        put_number(out, 0, 2);
        put_bytes(out, names[i], strlen(names[i]));
        if (i == 0) {
            put_bytes(out, program, size);
        } else {
            put_number(out, 0x3f800000, STORAGE);
        }
    }
    directory = out->len;
    for (int i = 0; i < 2; i++) {
        put_bytes(out, "PK\1\2\0\0\0\0", 8);
        put_member(out, names[i], sizes[i]);
        put_number(out, 0, 2 + 2 + 2 + 2 + 4);
        put_number(out, at[i], 4);
        put_bytes(out, names[i], strlen(names[i]));
    }
    size = out->len - directory;
    put_bytes(out, "PK\5\6\0\0\0\0\2\0\2\0", 12);
    put_number(out, size, 4);
    put_number(out, directory, 4);
    put_number(out, 0, 2);
}

static void put_legacy(struct out *out, const uint8_t *program, size_t size)
{
    static const unsigned char head[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
                                        "\x80\x02M\xe9\x03."
                                        "\x80\x02}X\x0d\0\0\0little_endian\x88s.";

    put_bytes(out, head, sizeof(head) - 1);
    put_bytes(out, program, size);
    put_bytes(out,
              "\x80\x02]X\1\0\0\0"
              "0a.",
              11);
    put_number(out, STORAGE / 4, 8);
    put_number(out, 0x3f800000, STORAGE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct out out = {.len = 0};

    if (size < 1 || size > MAX_INPUT) {
        return 0;
    }
    switch (data[0] % KINDS) {
    case IN_ZIP: put_zip(&out, data + 1, size - 1); break;
    case IN_LEGACY: put_legacy(&out, data + 1, size - 1); break;
    default: put_bytes(&out, data + 1, size - 1); break;
    }
    fuzz_archive(out.bytes, out.len, NULL, data[0] & 0x80);
    return 0;
}
