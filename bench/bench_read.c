// SPDX-License-Identifier: GPL-3.0-or-later
/* A plain vector read: the reference for statistics. */
#include "bench.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>

static __attribute__((target("avx512f"))) uint64_t read_avx512(const unsigned char *p, size_t size)
{
    __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;

    for (size_t i = 0; i < size; i += 256) {
        a = _mm512_add_epi64(a, _mm512_loadu_si512(p + i));
        b = _mm512_add_epi64(b, _mm512_loadu_si512(p + i + 64));
        c = _mm512_add_epi64(c, _mm512_loadu_si512(p + i + 128));
        d = _mm512_add_epi64(d, _mm512_loadu_si512(p + i + 192));
    }
    a = _mm512_add_epi64(_mm512_add_epi64(a, b), _mm512_add_epi64(c, d));
    return (uint64_t)_mm512_reduce_add_epi64(a);
}

static __attribute__((target("avx2"))) __m256i load_avx2(const unsigned char *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

static __attribute__((target("avx2"))) uint64_t read_avx2(const unsigned char *p, size_t size)
{
    __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;

    for (size_t i = 0; i < size; i += 128) {
        a = _mm256_add_epi64(a, load_avx2(p + i));
        b = _mm256_add_epi64(b, load_avx2(p + i + 32));
        c = _mm256_add_epi64(c, load_avx2(p + i + 64));
        d = _mm256_add_epi64(d, load_avx2(p + i + 96));
    }
    a = _mm256_add_epi64(_mm256_add_epi64(a, b), _mm256_add_epi64(c, d));
    return (uint64_t)(_mm256_extract_epi64(a, 0) + _mm256_extract_epi64(a, 1) +
                      _mm256_extract_epi64(a, 2) + _mm256_extract_epi64(a, 3));
}
#endif

/* With vectors that every processor has, or that the compiler emulates. */
static uint64_t read_plain(const unsigned char *p, size_t size)
{
    typedef uint64_t pair __attribute__((vector_size(16)));
    pair a = {0}, b = a, c = a, d = a, v[4];

    for (size_t i = 0; i < size; i += sizeof(v)) {
        memcpy(v, p + i, sizeof(v));
        a += v[0];
        b += v[1];
        c += v[2];
        d += v[3];
    }
    a += b + c + d;
    return a[0] + a[1];
}

uint64_t bench_read(const void *data, size_t size)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) {
        return read_avx512(data, size);
    }
    if (__builtin_cpu_supports("avx2")) {
        return read_avx2(data, size);
    }
#endif
    return read_plain(data, size);
}
