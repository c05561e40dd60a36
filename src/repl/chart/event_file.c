// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/chart/event_file.h"

#include <string.h>

#include "repl/chart/chart.h"

#define VERSION   "brain.Event:2"
#define MOST_NAME 1000
#define MASK      0xa282ead8u
#define CRC_32C   0x82f63b78u /* its polynomial, reversed */

/* Keys of protobuf's fields: number and wire type. */
enum {
    WALL_TIME = 1 << 3 | 1,
    STEP = 2 << 3,
    FILE_VERSION = 3 << 3 | 2,
    SUMMARY = 5 << 3 | 2,
    SUMMARY_VALUE = 1 << 3 | 2,
    TAG = 1 << 3 | 2,
    SIMPLE_VALUE = 2 << 3 | 5, /* TensorBoard */
    SCALAR_VALUE = 3 << 3 | 5, /* MindInsight */
    HISTOGRAM = 5 << 3 | 2,
    HISTOGRAM_MIN = 1 << 3 | 1,
    HISTOGRAM_MAX = 2 << 3 | 1,
    HISTOGRAM_COUNT = 3 << 3 | 1,
    HISTOGRAM_SUM = 4 << 3 | 1,
    HISTOGRAM_SQUARES = 5 << 3 | 1,
    HISTOGRAM_LIMITS = 6 << 3 | 2, /* upper ends of the bins */
    HISTOGRAM_COUNTS = 7 << 3 | 2,
};

struct message {
    unsigned char bytes[MOST_NAME + 256 + 16 * CHART_BINS];
    size_t len;
};

uint32_t event_file_checksum(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? CRC_32C : 0);
        }
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + MASK;
}

static void put_little(unsigned char *to, uint64_t value, int size)
{
    for (int i = 0; i < size; i++) {
        to[i] = (unsigned char)(value >> 8 * i);
    }
}

static void write_record(FILE *file, const struct message *message)
{
    unsigned char head[12], tail[4];

    put_little(head, message->len, 8);
    put_little(head + 8, event_file_checksum(head, 8), 4);
    put_little(tail, event_file_checksum(message->bytes, message->len), 4);
    fwrite(head, 1, sizeof(head), file);
    fwrite(message->bytes, 1, message->len, file);
    fwrite(tail, 1, sizeof(tail), file);
}

static void add_varint(struct message *message, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        message->bytes[message->len++] = (unsigned char)(value | 0x80);
    }
    message->bytes[message->len++] = (unsigned char)value;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static void add_double(struct message *message, int key, double value)
{
    add_varint(message, (uint64_t)key);
    put_little(message->bytes + message->len, bits_of(value), 8);
    message->len += 8;
}

static void add_float(struct message *message, int key, double value)
{
    float narrow = (float)value;
    uint32_t bits;

    memcpy(&bits, &narrow, sizeof(bits));
    add_varint(message, (uint64_t)key);
    put_little(message->bytes + message->len, bits, 4);
    message->len += 4;
}

static void add_bytes(struct message *message, int key, const void *bytes, size_t len)
{
    add_varint(message, (uint64_t)key);
    add_varint(message, len);
    memcpy(message->bytes + message->len, bytes, len);
    message->len += len;
}

void event_file_begin(FILE *file, double wall_time)
{
    struct message event = {.len = 0};

    add_double(&event, WALL_TIME, wall_time);
    add_bytes(&event, FILE_VERSION, VERSION, strlen(VERSION));
    write_record(file, &event);
}

static void add_name(struct message *message, const char *name)
{
    size_t len = strnlen(name, MOST_NAME);

    while (len == MOST_NAME && len > 0 && ((unsigned char)name[len] & 0xc0) == 0x80) {
        len--; /* not inside a character */
    }
    add_bytes(message, TAG, name, len);
}

static void write_value(FILE *file, double wall_time, int64_t step, const struct message *value)
{
    struct message summary = {.len = 0}, event = {.len = 0};

    add_bytes(&summary, SUMMARY_VALUE, value->bytes, value->len);
    add_double(&event, WALL_TIME, wall_time);
    add_varint(&event, STEP);
    add_varint(&event, (uint64_t)step);
    add_bytes(&event, SUMMARY, summary.bytes, summary.len);
    write_record(file, &event);
}

void event_file_scalar(FILE *file, double wall_time, int64_t step, const char *name, double value)
{
    struct message inner = {.len = 0};

    add_name(&inner, name);
    add_float(&inner, SIMPLE_VALUE, value);
    add_float(&inner, SCALAR_VALUE, value);
    write_value(file, wall_time, step, &inner);
}

void event_file_histogram(FILE *file, double wall_time, int64_t step, const char *name,
                          const struct chart_bins *bins)
{
    struct message inner = {.len = 0}, histogram = {.len = 0};
    unsigned char limits[8 * CHART_BINS], counts[8 * CHART_BINS];
    bool any = bins->low <= bins->high;
    double count = 0, sum = 0, squares = 0;

    for (int i = 0; i < CHART_BINS; i++) {
        double here = (double)bins->bin[i];
        double middle = any ? chart_bins_edge(bins, i + 0.5) : 0,
               end = any ? chart_bins_edge(bins, i + 1) : 0;
        count += here;
        sum += here * middle;
        squares += here * middle * middle;
        put_little(&limits[8 * i], bits_of(end), 8);
        put_little(&counts[8 * i], bits_of(here), 8);
    }
    add_double(&histogram, HISTOGRAM_MIN, any ? bins->low : 0);
    add_double(&histogram, HISTOGRAM_MAX, any ? bins->high : 0);
    add_double(&histogram, HISTOGRAM_COUNT, count);
    add_double(&histogram, HISTOGRAM_SUM, sum);
    add_double(&histogram, HISTOGRAM_SQUARES, squares);
    add_bytes(&histogram, HISTOGRAM_LIMITS, limits, sizeof(limits));
    add_bytes(&histogram, HISTOGRAM_COUNTS, counts, sizeof(counts));
    add_name(&inner, name);
    add_bytes(&inner, HISTOGRAM, histogram.bytes, histogram.len);
    write_value(file, wall_time, step, &inner);
}
