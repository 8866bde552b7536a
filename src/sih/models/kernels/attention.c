/* Causal attention summed over heads, and its gradient, in float32.
 *
 *     output_i = sum_h sum_{j <= i} p_hij v_hj,    p_hi = Softmax_{j <= i}(q_hi . k_hj)
 *
 * qkv is (batch, time, columns), its columns [q_1 .. q_H | k_1 .. k_H | v_1 .. v_H]; output and the gradient by it,
 * above, are (batch, time, values); grad, the gradient by qkv, is like qkv.
 *
 * One head of one sequence at a time: its scores stay in the cache from the product that makes them to the last one that
 * uses them, and rows in tiles of TILE never meet the keys that come after their tile. Nothing of it is kept for the
 * gradient, which makes p again: that takes less time than writing it to memory and reading it back.
 *
 * Vectors are GCC's (Clang has them too). A vector has as many LANES as a register of the target; ROWS x COLUMNS of them
 * are a product's accumulators, as many as leave registers for its factors.
 */
#include <stdlib.h>
#include <string.h>

#define TILE 16
#define ROWS 8
#if defined(__AVX512F__) /* 32 registers of 16 floats */
#define LANES 16
#define COLUMNS 2
#elif defined(__AVX__) /* 16 of 8 */
#define LANES 8
#define COLUMNS 1
#elif defined(__aarch64__) /* 32 of 4 */
#define LANES 4
#define COLUMNS 2
#else /* SSE: 16 of 4 */
#define LANES 4
#define COLUMNS 1
#endif

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int ivec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

static inline vec load(const float *at) { return *(const vec *)at; }
static inline void store(float *at, vec x) { *(vec *)at = x; }
static inline long rounded_up(long n) { return (n + TILE - 1) / TILE * TILE; }
static inline long smaller(long a, long b) { return a < b ? a : b; }

static inline float sum(vec x) {
    float total = 0;
    for (int lane = 0; lane < LANES; lane++) total += x[lane];
    return total;
}

/* The larger of each pair; y where they do not compare, so that a NaN in y is kept. */
static inline vec larger(vec x, vec y) {
    ivec first = x > y;
    return (vec)((first & (ivec)x) | (~first & (ivec)y));
}

/* C (rows, n LANES) = A B, or C += A B: accumulators in registers. A's entry (i, k) is at A[i * ai + k * ak]. */
static inline __attribute__((always_inline)) void block(
    int rows, int n, long K, const float *A, long ai, long ak, const float *B, long ldb, float *C, long ldc, int add) {
    vec c[ROWS][COLUMNS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < n; v++) c[i][v] = add ? load(C + i * ldc + v * LANES) : (vec){0};
    for (long k = 0; k < K; k++) {
        vec b[COLUMNS];
        for (int v = 0; v < n; v++) b[v] = load(B + k * ldb + v * LANES);
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < n; v++) c[i][v] += A[i * ai + k * ak] * b[v];
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < n; v++) store(C + i * ldc + v * LANES, c[i][v]);
}

/* C (M, N) = A B, or C += A B; N is a multiple of TILE. */
static void product(
    long M, long N, long K, const float *A, long ai, long ak, const float *B, long ldb, float *C, long ldc, int add) {
    for (long i = 0, rows; i < M; i += rows) {
        long j = 0;
        rows = M - i >= ROWS ? ROWS : 1;
        if (rows == ROWS) {
            for (; j + COLUMNS * LANES <= N; j += COLUMNS * LANES)
                block(ROWS, COLUMNS, K, A + i * ai, ai, ak, B + j, ldb, C + i * ldc + j, ldc, add);
            if (j < N) block(ROWS, 1, K, A + i * ai, ai, ak, B + j, ldb, C + i * ldc + j, ldc, add);
        } else {
            for (; j < N; j += LANES) block(1, 1, K, A + i * ai, ai, ak, B + j, ldb, C + i * ldc + j, ldc, add);
        }
    }
}

/* (rows, n) to (n, stride), with zeros from `rows` to `stride`, a multiple of TILE. */
static void transposed(long rows, long n, const float *B, long ldb, float *to, long stride) {
    for (long s = 0; s < stride; s += TILE)
        for (long d = 0; d < n; d++)
            for (long j = s; j < s + TILE; j++) to[d * stride + j] = j < rows ? B[j * ldb + d] : 0.f;
}

/* (rows, n) to (rows, stride), with zeros from n on. */
static void widened(long rows, long n, const float *B, long ldb, float *to, long stride) {
    for (long j = 0; j < rows; j++) {
        memcpy(to + j * stride, B + j * ldb, sizeof(float) * n);
        memset(to + j * stride + n, 0, sizeof(float) * (stride - n));
    }
}

/* exp(x) for x <= 0, to 2 units in the last place: 2^n e^r with |r| <= log(2) / 2 (Cephes' polynomial); 1e-38 below -87. */
static inline vec exponential(vec x) {
    const float whole = 12582912.f; /* 1.5 * 2^23: what is added to it is rounded to a whole number */
    x = larger((vec){0} - 87.f, x);
    vec n = x * 1.44269504f + whole - whole;
    vec r = x - n * .693359375f + n * 2.12194440e-4f;
    vec e = r * 1.9875691e-4f + 1.3981999e-3f;
    e = e * r + 8.3334519e-3f;
    e = e * r + 4.1665795e-2f;
    e = e * r + 1.6666665e-1f;
    e = e * r + .5f;
    e = e * r * r + r + 1.f;
    return e * (vec)((__builtin_convertvector(n, ivec) + 127) << 23);
}

/* Softmax of the first `count` of `width` entries, the others 0. */
static void softmax(float *row, long count, long width) {
    for (long j = count; j < width; j++) row[j] = row[0];
    vec most = load(row), total = {0};
    for (long j = LANES; j < width; j += LANES) most = larger(most, load(row + j));
    float top = most[0];
    for (int lane = 1; lane < LANES; lane++) top = most[lane] > top ? most[lane] : top;
    ivec index;
    for (int lane = 0; lane < LANES; lane++) index[lane] = lane;
    for (long j = 0; j < width; j += LANES) {
        vec e = exponential(load(row + j) - top);
        if (j + LANES > count) e = (vec)((ivec)e & (index < (int)(count - j)));
        total += e;
        store(row + j, e);
    }
    float scale = 1 / sum(total);
    for (long j = 0; j < width; j += LANES) store(row + j, load(row + j) * scale);
}

/* The attention p of the rows s .. s + rows - 1, from their queries and the transposed keys. */
static void attend(long s, long rows, long qk, const float *q, long ldq, const float *kt, float *p, long T) {
    product(rows, s + TILE, qk, q, ldq, 1, kt, T, p, T, 0);
    for (long i = 0; i < rows; i++) softmax(p + i * T, s + i + 1, s + TILE);
}

/* 0, or 1 if there is no memory. */
int attention_forward(const float *qkv, float *output, long batch, long time, long heads, long qk, long values) {
    long columns = heads * (2 * qk + values), T = rounded_up(time), W = rounded_up(values);
    float *room = malloc(sizeof(float) * (qk * T + TILE * T + 2 * time * W));
    if (!room) return 1;
    float *kt = room, *p = kt + qk * T, *v = p + TILE * T, *out = v + time * W;
    for (long b = 0; b < batch; b++, qkv += time * columns, output += time * values) {
        memset(out, 0, sizeof(float) * time * W);
        for (long h = 0; h < heads; h++) {
            transposed(time, qk, qkv + (heads + h) * qk, columns, kt, T);
            widened(time, values, qkv + 2 * heads * qk + h * values, columns, v, W);
            for (long s = 0; s < time; s += TILE) {
                long rows = smaller(TILE, time - s);
                attend(s, rows, qk, qkv + s * columns + h * qk, columns, kt, p, T);
                product(rows, W, s + rows, p, T, 1, v, W, out + s * W, W, 1);
            }
        }
        for (long i = 0; i < time; i++) memcpy(output + i * values, out + i * W, sizeof(float) * values);
    }
    free(room);
    return 0;
}

/* The gradient by qkv, given the one by the output. 0, or 1 if there is no memory. */
int attention_backward(
    const float *qkv, const float *above, float *grad, long batch, long time, long heads, long qk, long values) {
    long columns = heads * (2 * qk + values), T = rounded_up(time), W = rounded_up(values), D = rounded_up(qk);
    float *room = malloc(sizeof(float) * ((qk + values + 2 * time) * T + time * (2 * W + 3 * D)));
    if (!room) return 1;
    float *kt = room, *vt = kt + qk * T, *p = vt + values * T, *ds = p + time * T, *g = ds + time * T, *dv = g + time * W;
    float *q = dv + time * W, *k = q + time * D, *d = k + time * D;
    for (long b = 0; b < batch; b++, qkv += time * columns, grad += time * columns, above += time * values) {
        widened(time, values, above, values, g, W);
        for (long h = 0; h < heads; h++) {
            long to_q = h * qk, to_k = (heads + h) * qk, to_v = 2 * heads * qk + h * values;
            widened(time, qk, qkv + to_q, columns, q, D);
            widened(time, qk, qkv + to_k, columns, k, D);
            transposed(time, qk, qkv + to_k, columns, kt, T);
            transposed(time, values, qkv + to_v, columns, vt, T);
            for (long s = 0; s < time; s += TILE) { /* rows s .. s + TILE - 1 */
                long rows = smaller(TILE, time - s), seen = s + TILE;
                attend(s, rows, qk, q + s * D, D, kt, p + s * T, T);
                product(rows, seen, values, g + s * W, W, 1, vt, T, ds + s * T, T, 0);
                for (long i = s; i < s + rows; i++) { /* ds = p (dp - sum p dp) */
                    float *row = ds + i * T;
                    vec total = {0};
                    for (long j = 0; j < seen; j += LANES) total += load(p + i * T + j) * load(row + j);
                    float mean = sum(total);
                    for (long j = 0; j < seen; j += LANES) store(row + j, load(p + i * T + j) * (load(row + j) - mean));
                }
                product(rows, D, s + rows, ds + s * T, T, 1, k, D, d + s * D, D, 0);
            }
            for (long i = 0; i < time; i++) memcpy(grad + i * columns + to_q, d + i * D, sizeof(float) * qk);
            for (long s = 0; s < time; s += TILE) { /* keys s .. s + TILE - 1, which rows from s on see */
                long keys = smaller(TILE, time - s);
                product(keys, D, time - s, ds + s * T + s, 1, T, q + s * D, D, d + s * D, D, 0);
                product(keys, W, time - s, p + s * T + s, 1, T, g + s * W, W, dv + s * W, W, 0);
            }
            for (long j = 0; j < time; j++) {
                memcpy(grad + j * columns + to_k, d + j * D, sizeof(float) * qk);
                memcpy(grad + j * columns + to_v, dv + j * W, sizeof(float) * values);
            }
        }
    }
    free(room);
    return 0;
}
