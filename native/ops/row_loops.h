/* SPDX-License-Identifier: MIT
 * row_loops.h: sums and extremes of one row whose elements lie side by side; for both_dtypes.h.
 *
 * A sum has 64 bytes of partial sums: as exact as the row is long over that, and with the same bits each time.
 */

typedef REAL OF(ops_vector) __attribute__((vector_size(64), aligned(sizeof(REAL)), may_alias));
enum { OF(OPS_LANES) = 64 / sizeof(REAL) };

TLMI_INLINE REAL OF(lane_sum)(const OF(ops_vector) * lanes)
{
    REAL part[OF(OPS_LANES)];
    for (int i = 0; i < OF(OPS_LANES); i++)
        part[i] = (*lanes)[i];
    for (int width = OF(OPS_LANES) / 2; width; width /= 2)
        for (int i = 0; i < width; i++)
            part[i] += part[i + width];
    return part[0];
}

/* Of a row too short for lanes: four sums, because each addition waits for the one before it. */
TLMI_INLINE REAL OF(short_sum)(const REAL *row, int64_t count)
{
    REAL part[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int j = 0; j < 4; j++)
            part[j] += row[i + j];
    for (; i < count; i++)
        part[0] += row[i];
    return (part[0] + part[1]) + (part[2] + part[3]);
}

TLMI_INLINE REAL OF(row_sum)(const REAL *row, int64_t count)
{
    OF(ops_vector) lanes = {0};
    int64_t i = 0;
    for (; i + OF(OPS_LANES) <= count; i += OF(OPS_LANES))
        lanes += *(const OF(ops_vector) *)(row + i);
    REAL rest = OF(short_sum)(row + i, count - i);
    return count < OF(OPS_LANES) ? rest : OF(lane_sum)(&lanes) + rest;
}

TLMI_INLINE REAL OF(row_product_sum)(const REAL *left, const REAL *right, int64_t count)
{
    OF(ops_vector) lanes = {0};
    int64_t i = 0;
    for (; i + OF(OPS_LANES) <= count; i += OF(OPS_LANES))
        lanes += *(const OF(ops_vector) *)(left + i) * *(const OF(ops_vector) *)(right + i);
    REAL rest = 0;
    for (; i < count; i++)
        rest += left[i] * right[i];
    return count < OF(OPS_LANES) ? rest : OF(lane_sum)(&lanes) + rest;
}

/* The sum of squares of the distances from `middle`. */
TLMI_INLINE REAL OF(row_distance_sum)(const REAL *row, REAL middle, int64_t count)
{
    OF(ops_vector) lanes = {0};
    int64_t i = 0;
    for (; i + OF(OPS_LANES) <= count; i += OF(OPS_LANES)) {
        OF(ops_vector) distance = *(const OF(ops_vector) *)(row + i) - middle;
        lanes += distance * distance;
    }
    REAL rest = 0;
    for (; i < count; i++)
        rest += (row[i] - middle) * (row[i] - middle);
    return count < OF(OPS_LANES) ? rest : OF(lane_sum)(&lanes) + rest;
}
