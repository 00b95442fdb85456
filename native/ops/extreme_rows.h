/* SPDX-License-Identifier: MIT
 * extreme_rows.h: finding extremes in a row of elements, and giving them their gradients; for both.h.
 */

/* A NaN is a result when the result is NaN. */
OPS_INLINE bool OF(is_result)(REAL value, REAL result)
{
    return value == result || (value != value && result != result);
}

/* Of a walk over x, result and places: notes the place of the row's elements that are results; `first`: of its first
 * element. True: a result had one already. */
static bool OF(find_in_row)(const ops_walk *walk, int64_t first)
{
    const char *x = walk->at[0], *result = walk->at[1];
    char *place = walk->at[2];
    bool ties = false;
    for (int64_t i = 0; i < walk->length; i++) {
        REAL value = *(const REAL *)(x + i * walk->step[0]);
        if (!OF(is_result)(value, *(const REAL *)(result + i * walk->step[1])))
            continue;
        int64_t *at = (int64_t *)(place + i * walk->step[2]);
        ties |= *at >= 0;
        if (*at < 0)
            *at = first + i;
    }
    return ties;
}

/* Of a walk over gradient and places. */
static void OF(give_row)(const ops_walk *walk, char *into)
{
    for (int64_t i = 0; i < walk->length; i++) {
        int64_t place = *(const int64_t *)(walk->at[1] + i * walk->step[1]);
        ((REAL *)(void *)into)[place] = *(const REAL *)(walk->at[0] + i * walk->step[0]);
    }
}

/* x, result, count: one more for an element that is the result. */
static void OF(count_row)(char **arguments, const intptr_t *count, const intptr_t *steps, void *data)
{
    (void)data;
    for (intptr_t i = 0; i < *count; i++)
        *(REAL *)(arguments[2] + i * steps[2]) +=
            OF(is_result)(*(REAL *)(arguments[0] + i * steps[0]), *(REAL *)(arguments[1] + i * steps[1]));
}

/* x, result, share, out. */
static void OF(share_row)(char **arguments, const intptr_t *count, const intptr_t *steps, void *data)
{
    (void)data;
    for (intptr_t i = 0; i < *count; i++) {
        bool is_one = OF(is_result)(*(REAL *)(arguments[0] + i * steps[0]), *(REAL *)(arguments[1] + i * steps[1]));
        *(REAL *)(arguments[3] + i * steps[3]) = is_one ? *(REAL *)(arguments[2] + i * steps[2]) : 0;
    }
}
