/* What one core can do at most: fused multiply-adds in registers, and numbers to and from memory. Prints operations
   (a fused multiply-add counts two) per second in double and in single precision, and bytes per second of a triad. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef __AVX512F__
#define BYTES 64
#else
#define BYTES 32
#endif
typedef double doubles __attribute__((vector_size(BYTES)));
typedef float floats __attribute__((vector_size(BYTES)));

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

#define PEAK(name, type, number)                                                                  \
    static double name(void) {                                                                    \
        type x[12], a = (type){} + (number)0.999999, b = (type){} + (number)1e-6;                 \
        for (int i = 0; i < 12; ++i) x[i] = (type){} + (number)i;                                 \
        const long rounds = 30000000;                                                             \
        const double started = now();                                                             \
        for (long r = 0; r < rounds; ++r) {                                                       \
            _Pragma("GCC unroll 12") for (int i = 0; i < 12; ++i) x[i] = x[i] * a + b;            \
        }                                                                                         \
        const double took = now() - started;                                                      \
        volatile number kept = 0;                                                                 \
        for (int i = 0; i < 12; ++i) kept += x[i][0];                                             \
        return rounds * 12.0 * 2 * (BYTES / sizeof(number)) / took;                               \
    }
PEAK(peak_of_doubles, doubles, double)
PEAK(peak_of_floats, floats, float)

static double triad(void) {
    const long n = 1 << 24;
    double *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), *c = malloc(n * sizeof *c);
    for (long i = 0; i < n; ++i) a[i] = 0, b[i] = i, c[i] = 1;
    double best = 1e9;
    for (int repeat = 0; repeat < 5; ++repeat) {
        const double started = now();
        for (long i = 0; i < n; ++i) a[i] = b[i] + 3 * c[i];
        const double took = now() - started;
        if (took < best) best = took;
    }
    volatile double kept = a[n / 2];
    (void)kept;
    return 3.0 * n * sizeof *a / best;
}

int main(void) {
    printf("%g %g %g\n", peak_of_doubles(), peak_of_floats(), triad());
    return 0;
}
