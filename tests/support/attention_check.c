/* attention.c against its definition in plain double loops, on whatever processor this is built for: exit 1 if they differ. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int attention_forward(const float *, const float *, float *, float *, long, long, long, long, long, long);
int attention_backward(
    const float *, const float *, const float *, const float *, float *, float *, long, long, long, long, long, long);

static unsigned long state = 1;
static float uniform(void) { /* in -1 .. 1 */
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (float)((double)(state >> 40) / (1 << 23) - 1);
}

static double worst(long n, const float *found, const double *expected) {
    double most = 0;
    for (long i = 0; i < n; i++) {
        double error = fabs(found[i] - expected[i]) / (1 + fabs(expected[i]));
        if (!(error <= most)) most = error; /* a NaN stays */
    }
    return most;
}

/* The place of an offset among a head's buckets, which are by falling offset. */
static long bucket(long offset, long reach) { return reach - (offset < reach ? offset : reach); }

/* With a reach of -1 attention does not know offsets: there are no r, no u, and no gradients by them. */
static int check(long batch, long time, long heads, long qk, long values, long reach) {
    long columns = heads * (2 * qk + values), n = batch * time * columns, m = batch * time * values;
    float *x = malloc(4 * n), *above = malloc(4 * m), *output = malloc(4 * m), *grad = malloc(4 * n);
    double *y = calloc(m, 8), *g = calloc(n, 8), *p = malloc(8 * time), *dp = malloc(8 * time);
    long buckets = heads * (reach + 1), o = batch * time * buckets;
    float *r = malloc(4 * o + 4), *above_u = malloc(4 * o + 4), *u = malloc(4 * o + 4), *grad_r = malloc(4 * o + 4);
    double *w = calloc(o + 1, 8), *gr = calloc(o + 1, 8);
    for (long i = 0; i < o; i++) r[i] = uniform(), above_u[i] = uniform();
    for (long i = 0; i < n; i++) x[i] = uniform();
    for (long i = 0; i < m; i++) above[i] = uniform();
    for (long b = 0; b < batch; b++)
        for (long h = 0; h < heads; h++)
            for (long i = 0; i < time; i++) {
                long row = (b * time + i) * columns, query = row + h * qk;
                long by = (b * time + i) * buckets + h * (reach + 1);
                const float *up = above + (b * time + i) * values;
                double top = -INFINITY, total = 0, mean = 0;
                for (long j = 0; j <= i; j++) {
                    long key = (b * time + j) * columns + (heads + h) * qk;
                    p[j] = 0;
                    for (long d = 0; d < qk; d++) p[j] += (double)x[query + d] * x[key + d];
                    if (reach >= 0) p[j] += r[by + bucket(i - j, reach)];
                    top = fmax(top, p[j]);
                }
                for (long j = 0; j <= i; j++) total += p[j] = exp(p[j] - top);
                for (long j = 0; j <= i; j++) {
                    long value = (b * time + j) * columns + 2 * heads * qk + h * values;
                    p[j] /= total;
                    dp[j] = reach < 0 ? 0 : above_u[by + bucket(i - j, reach)];
                    if (reach >= 0) w[by + bucket(i - j, reach)] += p[j];
                    for (long d = 0; d < values; d++) {
                        y[(b * time + i) * values + d] += p[j] * x[value + d];
                        g[value + d] += p[j] * up[d];
                        dp[j] += (double)up[d] * x[value + d];
                    }
                    mean += p[j] * dp[j];
                }
                for (long j = 0; j <= i; j++) {
                    long key = (b * time + j) * columns + (heads + h) * qk;
                    if (reach >= 0) gr[by + bucket(i - j, reach)] += p[j] * (dp[j] - mean);
                    for (long d = 0; d < qk; d++) {
                        g[query + d] += p[j] * (dp[j] - mean) * x[key + d];
                        g[key + d] += p[j] * (dp[j] - mean) * x[query + d];
                    }
                }
            }
    const float *given = reach < 0 ? NULL : r;
    int failed = attention_forward(x, given, output, u, batch, time, heads, qk, values, reach) ||
                 attention_backward(x, given, above, above_u, grad, grad_r, batch, time, heads, qk, values, reach);
    double forward = worst(m, output, y) + worst(o, u, w), backward = worst(n, grad, g) + worst(o, grad_r, gr);
    printf("%ld x %ld, %ld heads, %ld and %ld wide, reach %ld: ", batch, time, heads, qk, values, reach);
    printf("%.1e, %.1e\n", forward, backward);
    free(x), free(above), free(output), free(grad), free(y), free(g), free(p), free(dp);
    free(r), free(above_u), free(u), free(grad_r), free(w), free(gr);
    return failed || !(forward < 5e-6) || !(backward < 5e-6);
}

int main(void) {
    int failed = check(2, 128, 3, 32, 64, -1);
    failed |= check(1, 1, 1, 1, 1, -1);
    failed |= check(3, 37, 2, 5, 5, -1);
    failed |= check(2, 16, 1, 16, 16, -1);
    failed |= check(1, 150, 2, 33, 70, -1);
    failed |= check(1, 129, 1, 8, 24, -1);
    failed |= check(2, 128, 3, 32, 64, 127);
    failed |= check(2, 1, 2, 3, 4, 0);
    failed |= check(3, 37, 2, 5, 5, 0);
    failed |= check(2, 16, 1, 16, 16, 15);
    failed |= check(1, 150, 2, 33, 70, 16);
    failed |= check(1, 129, 1, 8, 24, 100);
    return failed;
}
