// SPDX-License-Identifier: MIT
/*
 * The statistics of a dense tensor on a CUDA device, in one launch: each block writes a row as
 * device_stats._thorough describes it. record_kernel.py compiles this at run time by NVRTC, so it
 * includes nothing. Compiled by another compiler, the threads of a block run one after the other:
 * that is for a test of the arithmetic.
 */
#ifdef __CUDACC_RTC__
#define ON_DEVICE __device__
#else
#define ON_DEVICE static
#endif

enum { THREADS = 128, COLUMNS = 17 };

/* As enum gradb_dtype. */
enum {
    BOOL = 1,
    INT8 = 2,
    INT16 = 3,
    INT32 = 4,
    INT64 = 5,
    UINT8 = 6,
    UINT16 = 7,
    UINT32 = 8,
    UINT64 = 9,
    FLOAT16 = 10,
    FLOAT32 = 11,
    FLOAT64 = 12,
    BFLOAT16 = 14
};

struct half_bits {
    unsigned short bits;
};
struct bfloat_bits {
    unsigned short bits;
};

#define SMALL (1.0 / 18446744073709551616.0) /* 2^-64: sums at this scale do not overflow */
#define MOST  1.7976931348623157e308         /* the largest double */

ON_DEVICE double infinity_of(int sign)
{
    double most = MOST;
    return sign ? -most * 2.0 : most * 2.0;
}

template <typename number> ON_DEVICE double value_of(number x)
{
    return (double)x;
}

ON_DEVICE double value_of_bits(unsigned bits)
{
    union {
        unsigned bits;
        float value;
    } number;
    number.bits = bits;
    return (double)number.value;
}

ON_DEVICE double value_of(struct half_bits x)
{
    unsigned sign = x.bits >> 15, exponent = x.bits >> 10 & 31, fraction = x.bits & 1023;
    if (exponent == 0) { /* a multiple of 2^-24 */
        double size = fraction / 16777216.0;
        return sign ? -size : size;
    }
    return value_of_bits(sign << 31 | (exponent == 31 ? 255 : exponent + 112) << 23 |
                         fraction << 13);
}

ON_DEVICE double value_of(struct bfloat_bits x)
{
    return value_of_bits((unsigned)x.bits << 16);
}

/* The smallest normal number; 0 of integers. */
template <typename number> ON_DEVICE double tiny_of(number)
{
    return 0.0;
}

ON_DEVICE double tiny_of(struct half_bits)
{
    return 1.0 / 16384;
}

ON_DEVICE double tiny_of(struct bfloat_bits)
{
    return 1.1754943508222875e-38;
}

ON_DEVICE double tiny_of(float)
{
    return 1.1754943508222875e-38;
}

ON_DEVICE double tiny_of(double)
{
    return 2.2250738585072014e-308;
}

/* Of some elements. The sums are over the finite ones. */
struct part {
    unsigned long long nan, above, below, zero, negative_zero, negative, denormal, finite;
    double least, greatest, sum, size, small, small_size, squares, mean, spread;
};

ON_DEVICE void clear_part(struct part *p)
{
    p->nan = p->above = p->below = p->zero = p->negative_zero = p->negative = p->denormal = 0;
    p->finite = 0;
    p->least = infinity_of(0);
    p->greatest = infinity_of(1);
    p->sum = p->size = p->small = p->small_size = p->squares = p->mean = p->spread = 0.0;
}

/* Adds an element; *origin is the first finite one, from which the deviations are summed:
 * *deviation and *deviations. */
ON_DEVICE void add_element(struct part *p, double x, double tiny, double *origin, double *deviation,
                           double *deviations)
{
    double size = x < 0 ? -x : x;
    if (x != x) {
        p->nan++;
        return;
    }
    if (size > MOST) {
        *(x > 0 ? &p->above : &p->below) += 1;
        return;
    }
    *origin = p->finite ? *origin : x;
    p->finite++;
    p->zero += size == 0;
    p->negative_zero += size == 0 && 1.0 / x < 0;
    p->negative += x < 0;
    p->denormal += size < tiny && size > 0;
    p->least = x < p->least ? x : p->least;
    p->greatest = x > p->greatest ? x : p->greatest;
    p->sum += x;
    p->size += size;
    p->small += x * SMALL;
    p->small_size += size * SMALL;
    p->squares += x * x;
    *deviation += x - *origin;
    *deviations += (x - *origin) * (x - *origin);
}

/* Mean and sum of squared deviations. */
ON_DEVICE void finish_part(struct part *p, double origin, double deviation, double deviations)
{
    if (p->finite) {
        double count = (double)p->finite, spread = deviations - deviation * (deviation / count);
        p->mean = origin + deviation / count;
        if (!(p->mean >= -MOST && p->mean <= MOST)) {
            p->mean = p->small / count / SMALL;
        }
        p->spread = spread < 0 ? 0.0 : spread;
    }
}

template <typename number>
ON_DEVICE void fill_part(struct part *p, const number *data, long long count, long long first,
                         long long every)
{
    double origin = 0.0, deviation = 0.0, deviations = 0.0;
    clear_part(p);
    for (long long i = first; i < count; i += every) {
        add_element(p, value_of(data[i]), tiny_of(data[i]), &origin, &deviation, &deviations);
    }
    finish_part(p, origin, deviation, deviations);
}

/* Of the elements first, first + every, ... */
ON_DEVICE void fill_part_as(struct part *p, const void *data, int type, long long count,
                            long long first, long long every)
{
    switch (type) {
    case BOOL:
    case UINT8: fill_part(p, (const unsigned char *)data, count, first, every); break;
    case INT8: fill_part(p, (const signed char *)data, count, first, every); break;
    case INT16: fill_part(p, (const short *)data, count, first, every); break;
    case INT32: fill_part(p, (const int *)data, count, first, every); break;
    case INT64: fill_part(p, (const long long *)data, count, first, every); break;
    case UINT16: fill_part(p, (const unsigned short *)data, count, first, every); break;
    case UINT32: fill_part(p, (const unsigned *)data, count, first, every); break;
    case UINT64: fill_part(p, (const unsigned long long *)data, count, first, every); break;
    case FLOAT16: fill_part(p, (const struct half_bits *)data, count, first, every); break;
    case FLOAT32: fill_part(p, (const float *)data, count, first, every); break;
    case FLOAT64: fill_part(p, (const double *)data, count, first, every); break;
    case BFLOAT16: fill_part(p, (const struct bfloat_bits *)data, count, first, every); break;
    default: clear_part(p); break;
    }
}

/* Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
 * variances", 1979. */
ON_DEVICE void join_parts(struct part *p, const struct part *other)
{
    double count = (double)p->finite, more = (double)other->finite;
    if (other->finite) {
        double apart = other->mean - p->mean, both = count + more;
        p->spread += other->spread + apart * (apart * (count * more / both));
        p->mean += apart * (more / both);
    }
    p->nan += other->nan;
    p->above += other->above;
    p->below += other->below;
    p->zero += other->zero;
    p->negative_zero += other->negative_zero;
    p->negative += other->negative;
    p->denormal += other->denormal;
    p->finite += other->finite;
    p->least = other->least < p->least ? other->least : p->least;
    p->greatest = other->greatest > p->greatest ? other->greatest : p->greatest;
    p->sum += other->sum;
    p->size += other->size;
    p->small += other->small;
    p->small_size += other->small_size;
    p->squares += other->squares;
}

ON_DEVICE void write_row(const struct part *p, double *row)
{
    int overflows = !(p->sum >= -MOST && p->sum <= MOST);
    const double columns[COLUMNS] = {
        (double)p->nan,
        (double)p->above,
        (double)p->below,
        (double)p->zero,
        (double)p->negative_zero,
        (double)p->negative,
        (double)p->denormal,
        (double)p->finite,
        p->least,
        p->greatest,
        p->sum,
        p->size,
        p->small,
        p->small_size,
        p->squares,
        p->mean,
        overflows ? infinity_of(0)
                  : p->spread}; /* as of operators, whose deviations overflow then */
    for (int i = 0; i < COLUMNS; i++) {
        row[i] = columns[i];
    }
}

#ifdef __CUDACC_RTC__
/* rows: COLUMNS of each block. */
extern "C" __global__ void gradb_record(const void *data, int type, long long count, double *rows)
{
    __shared__ struct part parts[THREADS];
    int thread = (int)threadIdx.x;
    fill_part_as(&parts[thread], data, type, count, (long long)blockIdx.x * THREADS + thread,
                 (long long)gridDim.x * THREADS);
    for (int width = THREADS / 2; width > 0; width /= 2) {
        __syncthreads();
        if (thread < width) {
            join_parts(&parts[thread], &parts[thread + width]);
        }
    }
    if (thread == 0) {
        write_row(&parts[0], rows + (long long)blockIdx.x * COLUMNS);
    }
}
#else
extern "C" void gradb_record_on_cpu(const void *data, int type, long long count, double *rows,
                                    int blocks)
{
    static struct part parts[THREADS];
    for (int block = 0; block < blocks; block++) {
        for (int thread = 0; thread < THREADS; thread++) {
            fill_part_as(&parts[thread], data, type, count, (long long)block * THREADS + thread,
                         (long long)blocks * THREADS);
        }
        for (int width = THREADS / 2; width > 0; width /= 2) {
            for (int thread = 0; thread < width; thread++) {
                join_parts(&parts[thread], &parts[thread + width]);
            }
        }
        write_row(&parts[0], rows + (long long)block * COLUMNS);
    }
}
#endif
