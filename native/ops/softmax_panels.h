/* SPDX-License-Identifier: MIT
 * softmax_panels.h: softmax and its gradients along an axis that is not the last; for both.h.
 *
 * A panel is up to BLOCK_ROWS lanes beside each other: element k of lane j is at k * apart + j. What is computed for each lane
 * is in arrays as wide as the panel. `to` may be `from`.
 */

TLMI_SIMD_CLONES static void OF(panel_greatest)(const REAL *from, REAL *greatest, int64_t length, int64_t apart,
                                                int64_t width)
{
    for (int64_t j = 0; j < width; j++)
        greatest[j] = from[j];
    for (int64_t k = 1; k < length; k++)
        for (int64_t j = 0; j < width; j++)
            greatest[j] = from[k * apart + j] > greatest[j] ? from[k * apart + j] : greatest[j];
}

TLMI_SIMD_CLONES static void OF(line_less)(const REAL *from, const REAL *less, REAL *to, int64_t width)
{
    for (int64_t j = 0; j < width; j++)
        to[j] = from[j] - less[j];
}

TLMI_SIMD_CLONES static void OF(line_added)(REAL *sums, const REAL *line, int64_t width)
{
    for (int64_t j = 0; j < width; j++)
        sums[j] += line[j];
}

TLMI_SIMD_CLONES static void OF(line_over)(REAL *line, const REAL *sums, int64_t width)
{
    for (int64_t j = 0; j < width; j++)
        line[j] /= sums[j];
}

static void OF(softmax_panel)(const void *from, void *to, int64_t length, int64_t apart, int64_t width)
{
    const REAL *in = from;
    REAL *out = to, greatest[BLOCK_ROWS], sums[BLOCK_ROWS] = {0};
    OF(panel_greatest)(in, greatest, length, apart, width);
    for (int64_t k = 0; k < length; k++) {
        OF(line_less)(in + k * apart, greatest, out + k * apart, width);
        OF(apply)(OPS_EXP, out + k * apart, out + k * apart, width);
        OF(line_added)(sums, out + k * apart, width);
    }
    for (int64_t k = 0; k < length; k++)
        OF(line_over)(out + k * apart, sums, width);
}

static void OF(log_softmax_panel)(const void *from, void *to, int64_t length, int64_t apart, int64_t width)
{
    const REAL *in = from;
    REAL *out = to, line[BLOCK_ROWS], greatest[BLOCK_ROWS], sums[BLOCK_ROWS] = {0};
    OF(panel_greatest)(in, greatest, length, apart, width);
    for (int64_t k = 0; k < length; k++) {
        OF(line_less)(in + k * apart, greatest, out + k * apart, width);
        OF(apply)(OPS_EXP, out + k * apart, line, width);
        OF(line_added)(sums, line, width);
    }
    OF(apply)(OPS_LOG, sums, sums, width);
    for (int64_t k = 0; k < length; k++)
        OF(line_less)(out + k * apart, sums, out + k * apart, width);
}

/* to = y (to - sum(to y)), where `to` holds the gradient. */
TLMI_SIMD_CLONES static void OF(softmax_gradient_panel)(const void *y, void *to, int64_t length, int64_t apart,
                                                        int64_t width)
{
    const REAL *in = y;
    REAL *out = to, sums[BLOCK_ROWS] = {0};
    for (int64_t k = 0; k < length; k++)
        for (int64_t j = 0; j < width; j++)
            sums[j] += in[k * apart + j] * out[k * apart + j];
    for (int64_t k = 0; k < length; k++)
        for (int64_t j = 0; j < width; j++)
            out[k * apart + j] = in[k * apart + j] * (out[k * apart + j] - sums[j]);
}

/* to = to - exp(y) sum(to), where `to` holds the gradient. */
static void OF(log_softmax_gradient_panel)(const void *y, void *to, int64_t length, int64_t apart, int64_t width)
{
    const REAL *in = y;
    REAL *out = to, line[BLOCK_ROWS], sums[BLOCK_ROWS] = {0};
    for (int64_t k = 0; k < length; k++)
        OF(line_added)(sums, out + k * apart, width);
    for (int64_t k = 0; k < length; k++) {
        OF(apply)(OPS_EXP, in + k * apart, line, width);
        for (int64_t j = 0; j < width; j++)
            out[k * apart + j] -= line[j] * sums[j];
    }
}
