/* Causal attention summed over heads, and its gradient, in float32.
 *
 *     output_i = sum_h sum_{j <= i} p_hij v_hj,    p_hi = Softmax_{j <= i}(q_hi . k_hj)
 *
 * qkv is (batch, time, columns), its columns [q_1 .. q_H | k_1 .. k_H | v_1 .. v_H]; output and the gradient by it,
 * above, are (batch, time, values); grad, the gradient by qkv, is like qkv.
 *
 * With r (or NULL, and reach -1) the scores are q_hi . k_hj + r_hi[min(i - j, reach)], and u, the attention by these
 * buckets, is given out beside the output. r, u and their gradients are (batch, time, heads * (reach + 1)), each head's
 * buckets by falling offset, reach .. 0, so that those of a row's nearest keys lie in the order of the keys. reach < time.
 *
 * One head of one sequence at a time: its scores stay in the cache from the product that makes them to the last one that
 * uses them, and rows, ROWS at a time, never meet keys that come after the last of them, but for what fills a vector.
 * Nothing of it is kept for the gradient, which makes p again: that takes less time than writing it to memory and reading
 * it back.
 *
 * Vectors are GCC's (Clang has them too). A vector has as many LANES as a register of the target; ROWS x COLUMNS of them
 * are a product's accumulators: many, since a sum waits for its last term, and about as high as wide, since each step
 * loads ROWS + COLUMNS factors for ROWS COLUMNS multiplications, and few enough to leave registers for the factors. A
 * product's second factor is laid out before in panels of PANEL columns, (panel, row, column): it is read from one end to
 * the other, and no two rows of it compete for a line of the cache.
 */
#include <stdlib.h>
#include <string.h>

#if defined(__AVX512F__) /* 32 registers of 16 floats */
#define LANES 16
#define ROWS 12
#elif defined(__AVX__) /* 16 of 8 */
#define LANES 8
#define ROWS 6
#elif defined(__aarch64__) /* 32 of 4 */
#define LANES 4
#define ROWS 12
#else /* SSE: 16 of 4 */
#define LANES 4
#define ROWS 6
#endif
#define COLUMNS 2
#define PANEL (COLUMNS * LANES)
#define LINE 64 /* bytes of the cache */

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int ivec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

static inline vec load(const float *at) { return *(const vec *)at; }
static inline void store(float *at, vec x) { *(vec *)at = x; }
static inline long rounded_up(long n, long to) { return (n + to - 1) / to * to; }
static inline long smaller(long a, long b) { return a < b ? a : b; }

/* The first n entries, the other lanes 0. */
static inline vec load_part(const float *at, long n) {
    if (n >= LANES) return load(at);
    vec x = {0};
    memcpy(&x, at, sizeof(float) * n);
    return x;
}

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

/* C (rows, n) = A B, or C += A B: accumulators in registers. A's entry (i, k) is at A[i * ai + k * ak]; B is a panel, n of
 * its columns in `vectors`. If the last of these is cut off at n, C is copied: no accumulator outlives a call. */
static inline __attribute__((always_inline)) void block(
    int rows, int vectors, long n, long K, const float *A, long ai, long ak, const float *B, float *C, long ldc, int add) {
    vec c[ROWS][COLUMNS];
    float copy[ROWS * PANEL] __attribute__((aligned(LINE)));
    int cut = n < vectors * LANES;
    float *to = cut ? copy : C;
    long ldt = cut ? PANEL : ldc;
    for (int i = 0; cut && add && i < rows; i++) memcpy(copy + i * PANEL, C + i * ldc, sizeof(float) * n);
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) c[i][v] = add ? load(to + i * ldt + v * LANES) : (vec){0};
    for (long k = 0; k < K; k++) {
        vec b[COLUMNS];
        for (int v = 0; v < vectors; v++) b[v] = load(B + k * PANEL + v * LANES);
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vectors; v++) c[i][v] += A[i * ai + k * ak] * b[v];
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) store(to + i * ldt + v * LANES, c[i][v]);
    for (int i = 0; cut && i < rows; i++) memcpy(C + i * ldc, copy + i * PANEL, sizeof(float) * n);
}

/* C (rows, N) = A B, or C += A B, B in panels of `height` rows. */
static inline __attribute__((always_inline)) void strip(
    int rows, long N, long K, const float *A, long ai, long ak, const float *B, long height, float *C, long ldc, int add) {
    for (; N > LANES; N -= PANEL, B += height * PANEL, C += PANEL) block(rows, COLUMNS, N, K, A, ai, ak, B, C, ldc, add);
    if (N > 0) block(rows, 1, N, K, A, ai, ak, B, C, ldc, add);
}

/* C (M, N) = A B, or C += A B, B in panels of `height` rows. */
static void product(
    long M, long N, long K, const float *A, long ai, long ak, const float *B, long height, float *C, long ldc, int add) {
    for (long rows; M > 0; M -= rows, A += rows * ai, C += rows * ldc) {
        rows = M >= ROWS ? ROWS : M >= 4 ? 4 : M >= 2 ? 2 : 1;
        if (rows == ROWS) strip(ROWS, N, K, A, ai, ak, B, height, C, ldc, add);
        if (rows == 4) strip(4, N, K, A, ai, ak, B, height, C, ldc, add);
        if (rows == 2) strip(2, N, K, A, ai, ak, B, height, C, ldc, add);
        if (rows == 1) strip(1, N, K, A, ai, ak, B, height, C, ldc, add);
    }
}

/* B (rows, n) in panels, with zeros from n on. */
static void panels(long rows, long n, const float *B, long ldb, float *to) {
    for (long j = 0; j < rows; j++, B += ldb, to += PANEL)
        for (long d = 0; d < n; d += LANES)
            store(to + d / PANEL * PANEL * rows + d % PANEL, load_part(B + d, n - d));
}

/* x and y lane by lane in turn, from the lane `first` on. */
static inline vec interleaved(vec x, vec y, int first) {
    ivec from;
    for (int lane = 0; lane < LANES; lane++) from[lane] = first + lane / 2 + lane % 2 * LANES;
#ifdef __clang__
    vec z;
    for (int lane = 0; lane < LANES; lane++) z[lane] = from[lane] < LANES ? x[from[lane]] : y[from[lane] - LANES];
    return z;
#else
    return __builtin_shuffle(x, y, from);
#endif
}

/* The transpose (n, rows) of B (rows, n) in panels, with zeros from `rows` on: LANES x LANES entries at a time, by
 * interleaving their upper with their lower half until each of the LANES has been first. */
static void transposed_panels(long rows, long n, const float *B, long ldb, float *to) {
    for (long s = 0; s < rows; s += LANES)
        for (long d = 0; d < n; d += LANES) {
            vec x[LANES], y[LANES];
            for (int j = 0; j < LANES; j++) x[j] = s + j < rows ? load_part(B + (s + j) * ldb + d, n - d) : (vec){0};
            for (int turn = 1; turn < LANES; turn *= 2) {
                for (int j = 0; j < LANES; j++) y[j] = interleaved(x[j / 2], x[(j + LANES) / 2], j % 2 * LANES / 2);
                memcpy(x, y, sizeof(x));
            }
            float *at = to + s / PANEL * PANEL * n + d * PANEL + s % PANEL;
            for (int j = 0; j < LANES && d + j < n; j++) store(at + j * PANEL, x[j]);
        }
}

/* exp(x) for x <= 0, to 2 units in the last place: 2^n e^r with |r| <= log(2) / 2 (Cephes' polynomial); 1e-38 below -87. */
static inline vec exponential(vec x) {
    const float whole = 12582912.f; /* 1.5 * 2^23: what is added to it is rounded to a whole number */
    x = larger((vec){0} - 87.f, x);
    vec shifted = x * 1.44269504f + whole, n = shifted - whole;
    vec r = x - n * .693359375f + n * 2.12194440e-4f;
    vec e = r * 1.9875691e-4f + 1.3981999e-3f;
    e = e * r + 8.3334519e-3f;
    e = e * r + 4.1665795e-2f;
    e = e * r + 1.6666665e-1f;
    e = e * r + .5f;
    e = e * r * r + r + 1.f;
    return e * (vec)(((ivec)shifted + 127) << 23); /* 2^n: the last bits of `shifted` are n */
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

/* row[j] += r[bucket] - r[far] for the keys j <= i that are nearer than `reach`. The keys of the far bucket take nothing: a
 * constant of the row does not count, in a softmax or in its gradient. */
static void add_buckets(float *row, long i, const float *r, long reach) {
    long n = smaller(reach, i + 1);
    const float *from = r + reach + 1 - n;
    float *to = row + i + 1 - n, far = r[0];
    for (long m = 0; m < n; m++) to[m] += from[m] - far;
}

/* u[bucket] = the sum of row[j] over its keys j <= i, 0 where there are none. */
static void sum_buckets(const float *row, long i, float *u, long reach) {
    long n = smaller(reach, i + 1);
    float far = 0;
    for (long j = 0; j <= i - n; j++) far += row[j];
    for (long m = 0; m <= reach - n; m++) u[m] = 0;
    u[0] = far;
    memcpy(u + reach + 1 - n, row + i + 1 - n, sizeof(float) * n);
}

/* The attention p of the rows s .. s + rows - 1, from their queries, the transposed keys' panels, and r if there is one. */
static void attend(
    long s, long rows, long qk, const float *q, long ldq, const float *kt, const float *r, long ldr, long reach, float *p,
    long ldp) {
    long seen = rounded_up(s + rows, LANES);
    product(rows, seen, qk, q, ldq, 1, kt, qk, p, ldp, 0);
    for (long i = 0; r && i < rows; i++) add_buckets(p + i * ldp, s + i, r + i * ldr, reach);
    for (long i = 0; i < rows; i++) softmax(p + i * ldp, s + i + 1, seen);
}

static float *memory(long floats) { return aligned_alloc(LINE, rounded_up(sizeof(float) * floats, LINE)); }

/* 0, or 1 if there is no memory. */
int attention_forward(
    const float *qkv, const float *r, float *output, float *u, long batch, long time, long heads, long qk, long values,
    long reach) {
    long columns = heads * (2 * qk + values), T = rounded_up(time, PANEL), W = rounded_up(values, PANEL);
    long buckets = reach + 1, ldr = heads * buckets;
    float *room = memory((qk + ROWS) * T + time * W);
    if (!room) return 1;
    float *kt = room, *v = kt + qk * T, *p = v + time * W;
    for (long b = 0; b < batch; b++, qkv += time * columns, output += time * values) {
        for (long h = 0; h < heads; h++) {
            const float *bias = r ? r + b * time * ldr + h * buckets : NULL;
            transposed_panels(time, qk, qkv + (heads + h) * qk, columns, kt);
            panels(time, values, qkv + 2 * heads * qk + h * values, columns, v);
            for (long s = 0; s < time; s += ROWS) {
                long rows = smaller(ROWS, time - s);
                const float *at = r ? bias + s * ldr : NULL;
                attend(s, rows, qk, qkv + s * columns + h * qk, columns, kt, at, ldr, reach, p, T);
                for (long i = 0; r && i < rows; i++)
                    sum_buckets(p + i * T, s + i, u + (b * time + s + i) * ldr + h * buckets, reach);
                product(rows, values, s + rows, p, T, 1, v, time, output + s * values, values, h > 0);
            }
        }
    }
    free(room);
    return 0;
}

/* The gradients by qkv and r, given those by the output and u. 0, or 1 if there is no memory. */
int attention_backward(
    const float *qkv, const float *r, const float *above, const float *above_u, float *grad, float *grad_r, long batch,
    long time, long heads, long qk, long values, long reach) {
    long columns = heads * (2 * qk + values), T = rounded_up(time, PANEL), ld = T + LINE / sizeof(float);
    long W = rounded_up(values, PANEL), D = rounded_up(qk, PANEL); /* ld: no power of 2, see above about lines */
    float *room = memory((qk + values) * T + 2 * time * ld + time * (W + 2 * D));
    if (!room) return 1;
    float *p = room, *ds = p + time * ld, *kt = ds + time * ld, *vt = kt + qk * T;
    float *g = vt + values * T, *q = g + time * W, *k = q + time * D;
    long buckets = reach + 1, ldr = heads * buckets;
    for (long b = 0; b < batch; b++, qkv += time * columns, grad += time * columns, above += time * values) {
        panels(time, values, above, values, g);
        for (long h = 0; h < heads; h++) {
            long to_q = h * qk, to_k = (heads + h) * qk, to_v = 2 * heads * qk + h * values;
            panels(time, qk, qkv + to_q, columns, q);
            panels(time, qk, qkv + to_k, columns, k);
            transposed_panels(time, qk, qkv + to_k, columns, kt);
            transposed_panels(time, values, qkv + to_v, columns, vt);
            for (long s = 0; s < time; s += ROWS) { /* rows s .. s + ROWS - 1 */
                long rows = smaller(ROWS, time - s), seen = rounded_up(s + rows, LANES);
                long at = (b * time + s) * ldr + h * buckets; /* in r, above_u and grad_r */
                attend(s, rows, qk, qkv + s * columns + to_q, columns, kt, r ? r + at : NULL, ldr, reach, p + s * ld, ld);
                product(rows, seen, values, above + s * values, values, 1, vt, values, ds + s * ld, ld, 0);
                for (long i = s; i < s + rows; i++) { /* ds = p (dp - sum p dp) */
                    float *row = ds + i * ld;
                    if (r) add_buckets(row, i, above_u + at + (i - s) * ldr, reach);
                    vec total = {0};
                    for (long j = 0; j < seen; j += LANES) total += load(p + i * ld + j) * load(row + j);
                    float mean = sum(total);
                    for (long j = 0; j < seen; j += LANES) store(row + j, load(p + i * ld + j) * (load(row + j) - mean));
                    if (r) sum_buckets(row, i, grad_r + at + (i - s) * ldr, reach);
                }
                product(rows, qk, s + rows, ds + s * ld, ld, 1, k, time, grad + s * columns + to_q, columns, 0);
            }
            for (long s = 0; s < time; s += ROWS) { /* keys s .. s + ROWS - 1, which rows from s on see */
                long keys = smaller(ROWS, time - s), from = s * ld + s;
                float *to = grad + s * columns;
                product(keys, qk, time - s, ds + from, 1, ld, q + s * PANEL, time, to + to_k, columns, 0);
                product(keys, values, time - s, p + from, 1, ld, g + s * PANEL, time, to + to_v, columns, 0);
            }
        }
    }
    free(room);
    return 0;
}

/* Products with a table W (heads, buckets, n). A row of buckets is by falling offset: row i of a sequence has keys in the
 * buckets from first_bucket(i) on, and what the others hold is never read, or 0. So half of a product is left out where
 * buckets == time. x is (batch, time, ldx); a head's n columns in it are `step` after those of the one before: n, or 0
 * where all heads have the same. */
static long first_bucket(long i, long buckets) { return buckets - 1 - smaller(i, buckets - 1); }

/* r_ih = W_h x_ih, (batch, time, heads * buckets). 0, or 1 if there is no memory. */
int bucket_scores(
    const float *x, const float *W, float *r, long batch, long time, long heads, long buckets, long n, long ldx, long step) {
    long size = n * rounded_up(buckets, PANEL), ldr = heads * buckets;
    float *room = memory(heads * size);
    if (!room) return 1;
    for (long h = 0; h < heads; h++) transposed_panels(buckets, n, W + h * buckets * n, n, room + h * size);
    for (long b = 0; b < batch; b++, x += time * ldx, r += time * ldr)
        for (long s = 0; s < time; s += ROWS)
            for (long h = 0; h < heads; h++) {
                long rows = smaller(ROWS, time - s), from = first_bucket(s + rows - 1, buckets) / PANEL * PANEL;
                float *to = r + s * ldr + h * buckets;
                const float *table = room + h * size + from * n;
                for (long i = 0; i < rows; i++) memset(to + i * ldr, 0, sizeof(float) * from);
                product(rows, buckets - from, n, x + s * ldx + h * step, ldx, 1, table, n, to + from, ldr, 0);
            }
    free(room);
    return 0;
}

/* x_ih = u_ih W_h, summed over the heads that share their columns of x. 0, or 1 if there is no memory. */
int bucket_values(
    const float *u, const float *W, float *x, long batch, long time, long heads, long buckets, long n, long ldx, long step) {
    long size = buckets * rounded_up(n, PANEL), ldr = heads * buckets;
    float *room = memory(heads * size);
    if (!room) return 1;
    for (long h = 0; h < heads; h++) panels(buckets, n, W + h * buckets * n, n, room + h * size);
    for (long b = 0; b < batch; b++, x += time * ldx, u += time * ldr)
        for (long s = 0; s < time; s += ROWS)
            for (long h = 0; h < heads; h++) {
                long rows = smaller(ROWS, time - s), from = first_bucket(s + rows - 1, buckets);
                const float *of = u + s * ldr + h * buckets + from, *table = room + h * size + from * PANEL;
                float *to = x + s * ldx + h * step;
                product(rows, n, buckets - from, of, ldr, 1, table, buckets, to, ldx, h > 0 && step == 0);
            }
    free(room);
    return 0;
}

/* grad_h = sum of u_ih x_ih^T over all rows, (heads, buckets, n). 0, or 1 if there is no memory. */
int bucket_gradient(
    const float *u, const float *x, float *grad, long batch, long time, long heads, long buckets, long n, long ldx,
    long step) {
    long ldr = heads * buckets;
    float *room = memory(time * rounded_up(n, PANEL));
    if (!room) return 1;
    for (long b = 0; b < batch; b++, x += time * ldx, u += time * ldr)
        for (long h = 0; h < heads; h++) {
            if (h == 0 || step) panels(time, n, x + h * step, ldx, room);
            for (long m = 0; m < buckets; m += ROWS) {
                long count = smaller(ROWS, buckets - m), first = buckets - m - count; /* the first row with a key in them */
                const float *of = u + first * ldr + h * buckets + m;
                float *to = grad + (h * buckets + m) * n;
                product(count, n, time - first, of, 1, ldr, room + first * PANEL, time, to, n, b > 0);
            }
        }
    free(room);
    return 0;
}
