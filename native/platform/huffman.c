/* SPDX-License-Identifier: MIT
 * huffman.c: bytes, and matches with bytes before them, as a zlib stream of one block with Huffman codes of its own
 * (RFC 1950, 1951).
 *
 * zlib takes several times as long: docs/decisions/zlib-at-run-time.md. Any inflater reads the result. Thread-safe: no state but
 * the caller's.
 */
#include <string.h>

#include "platform/platform.h"

enum {
    END = 256, /* the symbol that ends the block */
    SYMBOLS = 286,
    DISTANCES = 30,
    LONGEST_MATCH = 258,
    LEAST_MATCH = 3,
    LONGEST = 15,
    KINDS = 19, /* of symbols that say the lengths: 0 to 15, and three for runs */
    LONGEST_OF_KINDS = 7,
    REPEAT_BEFORE = 16,
    REPEAT_ZERO = 17,
    REPEAT_ZERO_LONG = 18,
    SYMBOL_BITS = 9,
    MOST_BYTES = 1 << (32 - SYMBOL_BITS - 1), /* a count and its symbol share 32 bits */
    FRAME_BYTES = 6,                          /* two before the block, the checksum behind it */
};

typedef struct {
    uint16_t codes[SYMBOLS]; /* first bit lowest, as they are written */
    uint8_t lengths[SYMBOLS];
} code;

typedef struct {
    uint64_t bits;
    uint32_t used;
    uint8_t *at;
} writer;

/* At most 64 - 7 bits between two calls of `flush`, which writes eight bytes, those behind the end as well. */
static inline void put(writer *to, uint32_t value, uint32_t bits)
{
    to->bits |= (uint64_t)value << to->used;
    to->used += bits;
}

static inline void flush(writer *to)
{
    memcpy(to->at, &to->bits, 8);
    to->at += to->used / 8;
    to->bits >>= to->used & ~7u;
    to->used &= 7u;
}

/* ---- codes ---- */

static void sort(uint32_t *values, int count)
{
    static const int gaps[] = {57, 23, 10, 4, 1};
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
        for (int i = gaps[g]; i < count; i++) {
            uint32_t value = values[i];
            int at = i;
            for (; at >= gaps[g] && values[at - gaps[g]] > value; at -= gaps[g])
                values[at] = values[at - gaps[g]];
            values[at] = value;
        }
    }
}

/* From weights, rising, to the lengths of a minimum-redundancy code in place, falling: Moffat and Katajainen, "In-place
 * calculation of minimum-redundancy codes", 1995. At least two weights. */
static void weights_to_lengths(uint32_t *a, int count)
{
    int leaf = 0, root = 0;
    for (int next = 0; next < count - 1; next++) { /* sums of pairs; each used one then holds its parent */
        uint32_t sum = 0;
        for (int half = 0; half < 2; half++) {
            if (leaf >= count || (root < next && a[root] < a[leaf])) {
                sum += a[root];
                a[root++] = (uint32_t)next;
            } else {
                sum += a[leaf++];
            }
        }
        a[next] = sum;
    }
    a[count - 2] = 0;
    for (int next = count - 3; next >= 0; next--)
        a[next] = a[a[next]] + 1; /* depths of the inner nodes */
    int open = 1, inner = count - 2, at = count - 1;
    for (uint32_t depth = 0; open > 0; depth++) {
        int used = 0;
        for (; inner >= 0 && a[inner] == depth; inner--)
            used++;
        for (int leaves = open - used; leaves > 0; leaves--)
            a[at--] = depth;
        open = 2 * used;
    }
}

/* Lengths for `symbols` counts, none above `longest`; 0 for those that do not occur. At least two occur. */
static void choose_lengths(const uint32_t *counts, int symbols, uint32_t longest, uint8_t *lengths)
{
    uint32_t order[SYMBOLS], weights[SYMBOLS];
    int used = 0;
    for (int symbol = 0; symbol < symbols; symbol++)
        if (counts[symbol])
            order[used++] = counts[symbol] << SYMBOL_BITS | (uint32_t)symbol;
    sort(order, used);
    for (uint32_t flatter = 0;; flatter++) { /* flatter weights, shorter codes, until the longest fits */
        for (int i = 0; i < used; i++)
            weights[i] = order[i] >> SYMBOL_BITS >> flatter ? order[i] >> SYMBOL_BITS >> flatter : 1;
        weights_to_lengths(weights, used);
        if (weights[0] <= longest)
            break;
    }
    memset(lengths, 0, (size_t)symbols);
    for (int i = 0; i < used; i++)
        lengths[order[i] & ((1u << SYMBOL_BITS) - 1)] = (uint8_t)weights[i];
}

static void number_codes(code *made, int symbols)
{
    uint32_t of_length[LONGEST + 2] = {0}, next[LONGEST + 2] = {0};
    for (int symbol = 0; symbol < symbols; symbol++)
        of_length[made->lengths[symbol]]++;
    of_length[0] = 0;
    for (int length = 1; length <= LONGEST; length++)
        next[length + 1] = (next[length] + of_length[length]) << 1;
    for (int symbol = 0; symbol < symbols; symbol++) {
        uint32_t length = made->lengths[symbol], number = next[length]++, turned = 0;
        for (uint32_t bit = 0; bit < length; bit++)
            turned |= (number >> bit & 1u) << (length - 1 - bit);
        made->codes[symbol] = (uint16_t)turned;
    }
}

/* ---- the head of the block: the lengths, themselves in a code ---- */

typedef struct {
    uint8_t kinds[SYMBOLS + DISTANCES], extra[SYMBOLS + DISTANCES];
    int count;
} saying;

static uint32_t extra_bits(uint8_t kind)
{
    return kind == REPEAT_BEFORE ? 2 : kind == REPEAT_ZERO ? 3 : kind == REPEAT_ZERO_LONG ? 7 : 0;
}

static void say(saying *said, uint8_t kind, int extra)
{
    said->kinds[said->count] = kind;
    said->extra[said->count++] = (uint8_t)extra;
}

static void say_run(saying *said, uint8_t length, int run)
{
    enum { LEAST = 3, MOST_BEFORE = 6, LEAST_LONG = 11, MOST_ZERO_LONG = 138 };
    if (length) {
        say(said, length, 0);
        run--;
    }
    while (run >= LEAST) {
        int most = length ? MOST_BEFORE : MOST_ZERO_LONG, part = run < most ? run : most;
        if (length)
            say(said, REPEAT_BEFORE, part - LEAST);
        else if (part < LEAST_LONG)
            say(said, REPEAT_ZERO, part - LEAST);
        else
            say(said, REPEAT_ZERO_LONG, part - LEAST_LONG);
        run -= part;
    }
    while (run-- > 0)
        say(said, length, 0);
}

static void say_lengths(saying *said, const uint8_t *lengths, int count)
{
    said->count = 0;
    for (int at = 0, run; at < count; at += run) {
        for (run = 1; at + run < count && lengths[at + run] == lengths[at]; run++)
            ;
        say_run(said, lengths[at], run);
    }
}

static const uint8_t KINDS_IN_ORDER[KINDS] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

/* Writes the head, or only counts its bits when `to` is NULL. */
static uint32_t write_head(writer *to, const saying *said, const code *kinds, int symbols)
{
    int shown = KINDS;
    while (shown > 4 && !kinds->lengths[KINDS_IN_ORDER[shown - 1]])
        shown--;
    uint32_t bits = 3 + 5 + 5 + 4 + 3 * (uint32_t)shown;
    for (int i = 0; i < said->count; i++)
        bits += kinds->lengths[said->kinds[i]] + extra_bits(said->kinds[i]);
    if (!to)
        return bits;
    put(to, 1 | 2 << 1, 3); /* the last block, with a code of its own */
    put(to, (uint32_t)symbols - 257, 5);
    put(to, DISTANCES - 1, 5);
    put(to, (uint32_t)shown - 4, 4);
    for (int i = 0; i < shown; i++) {
        put(to, kinds->lengths[KINDS_IN_ORDER[i]], 3);
        flush(to);
    }
    for (int i = 0; i < said->count; i++) {
        uint8_t kind = said->kinds[i];
        put(to, kinds->codes[kind], kinds->lengths[kind]);
        put(to, said->extra[i], extra_bits(kind));
        flush(to);
    }
    return bits;
}

/* ---- lengths and distances ---- */

/* What is too large for a symbol of its own is said as floating-point numbers are: a symbol has the exponent and the first bits
 * of the mantissa, `rest` the other ones. */
typedef struct {
    uint32_t symbol, bits, rest;
} number;

static inline number split(uint32_t value, uint32_t mantissa_bits)
{
    if (value < 2u << mantissa_bits)
        return (number){value, 0, 0};
    uint32_t bits = 31 - (uint32_t)__builtin_clz(value) - mantissa_bits;
    return (number){(bits << mantissa_bits) + (value >> bits), bits, value & ((1u << bits) - 1)};
}

static inline number say_length(uint32_t length)
{
    enum { SYMBOL_OF_LONGEST = 28 };
    number said = split(length - LEAST_MATCH, 2);
    if (length == LONGEST_MATCH)
        said = (number){SYMBOL_OF_LONGEST, 0, 0};
    said.symbol += END + 1;
    return said;
}

static inline number say_distance(uint32_t distance)
{
    return split(distance - 1, 1);
}

/* What of a match is said next: it may be longer than the longest there is, and the rest must not be too short. */
static inline uint32_t next_part(uint32_t length)
{
    if (length <= LONGEST_MATCH)
        return length;
    return length - LONGEST_MATCH >= LEAST_MATCH ? LONGEST_MATCH : length - LEAST_MATCH;
}

/* ---- the bytes ---- */

typedef struct {
    uint32_t symbols[SYMBOLS], distances[DISTANCES];
    uint64_t bits; /* besides the codes */
} tally;

static void count_bytes(const uint8_t *from, uint32_t bytes, uint32_t *counts)
{
    uint32_t parts[4][END] = {{0}}; /* equal bytes in a row do not wait for each other */
    uint32_t i = 0;
    for (; i + 4 <= bytes; i += 4)
        for (int part = 0; part < 4; part++)
            parts[part][from[i + (uint32_t)part]]++;
    for (; i < bytes; i++)
        parts[0][from[i]]++;
    for (int byte = 0; byte < END; byte++)
        counts[byte] = parts[0][byte] + parts[1][byte] + parts[2][byte] + parts[3][byte];
}

static void count_match(tally *counts, const tlmi_match *match)
{
    number distance = say_distance(match->distance);
    for (uint32_t left = match->length, part; left; left -= part) {
        part = next_part(left);
        number length = say_length(part);
        counts->symbols[length.symbol]++;
        counts->distances[distance.symbol]++;
        counts->bits += length.bits + distance.bits;
    }
}

static void count_all(tally *counts, const uint8_t *from, uint32_t bytes, const tlmi_match *matches, uint32_t count)
{
    memset(counts, 0, sizeof *counts);
    if (count == 0)
        count_bytes(from, bytes, counts->symbols);
    const uint8_t *end = from + bytes;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t literal = 0; literal < matches[i].literals; literal++)
            counts->symbols[*from++]++;
        count_match(counts, &matches[i]);
        from += matches[i].length;
    }
    while (count && from < end)
        counts->symbols[*from++]++;
    counts->symbols[END] = 1;
}

/* Two codes of one bit are the least complete set, which every inflater takes. */
static void choose_distances(const uint32_t *counts, uint8_t *lengths)
{
    uint32_t at_least_two[DISTANCES];
    memcpy(at_least_two, counts, sizeof at_least_two);
    for (int distance = 0; distance < 2; distance++)
        at_least_two[distance] += counts[distance] == 0;
    choose_lengths(at_least_two, DISTANCES, LONGEST, lengths);
}

static inline void write_bytes(writer *to, const uint8_t *from, uint32_t bytes, const code *symbols)
{
    uint32_t i = 0;
    for (; i + 3 <= bytes; i += 3) { /* 45 bits at most */
        for (uint32_t part = 0; part < 3; part++)
            put(to, symbols->codes[from[i + part]], symbols->lengths[from[i + part]]);
        flush(to);
    }
    for (; i < bytes; i++) {
        put(to, symbols->codes[from[i]], symbols->lengths[from[i]]);
        flush(to);
    }
}

static inline void write_match(writer *to, const tlmi_match *match, const code *symbols, const code *distances)
{
    number distance = say_distance(match->distance);
    for (uint32_t left = match->length, part; left; left -= part) { /* 48 bits at most */
        part = next_part(left);
        number length = say_length(part);
        put(to, symbols->codes[length.symbol], symbols->lengths[length.symbol]);
        put(to, length.rest, length.bits);
        put(to, distances->codes[distance.symbol], distances->lengths[distance.symbol]);
        put(to, distance.rest, distance.bits);
        flush(to);
    }
}

enum { COLUMNS = 16 };

/* Adds rows of bytes, by columns, so that no byte waits for the one before: `above` has each byte once for each row
 * below its own. */
static void add_rows(const uint8_t *from, uint32_t rows, uint64_t *low, uint64_t *high)
{
    uint32_t sums[COLUMNS] = {0}, above[COLUMNS] = {0};
    for (uint32_t row = 0; row < rows; row++, from += COLUMNS)
        for (uint32_t i = 0; i < COLUMNS; i++) {
            above[i] += sums[i];
            sums[i] += from[i];
        }
    *high += (uint64_t)rows * COLUMNS * *low;
    for (uint32_t i = 0; i < COLUMNS; i++) {
        *high += (uint64_t)COLUMNS * above[i] + (uint64_t)(COLUMNS - i) * sums[i];
        *low += sums[i];
    }
}

static uint32_t adler_of(const uint8_t *from, uint32_t bytes)
{
    enum { PRIME = 65521, MOST_AT_ONCE = 4096 }; /* so that the sums of a column fit into 32 bits */
    uint64_t low = 1, high = 0;
    while (bytes) {
        uint32_t part = bytes < MOST_AT_ONCE ? bytes : MOST_AT_ONCE, rows = part / COLUMNS;
        add_rows(from, rows, &low, &high);
        for (uint32_t i = rows * COLUMNS; i < part; i++) {
            low += from[i];
            high += low;
        }
        low %= PRIME;
        high %= PRIME;
        from += part;
        bytes -= part;
    }
    return (uint32_t)(high << 16 | low);
}

static uint64_t code_bits(const uint32_t *counts, const uint8_t *lengths, int symbols)
{
    uint64_t bits = 0;
    for (int symbol = 0; symbol < symbols; symbol++)
        bits += (uint64_t)counts[symbol] * lengths[symbol];
    return bits;
}

uint32_t tlmi_huffman(const uint8_t *from, uint32_t bytes, const tlmi_match *matches, uint32_t count, uint8_t *to,
                      uint32_t room)
{
    tally counts;
    uint32_t of_kinds[KINDS] = {0};
    code symbols, distances, kinds;
    saying said;
    if (bytes == 0 || bytes > MOST_BYTES)
        return 0;
    count_all(&counts, from, bytes, matches, count);
    int shown = SYMBOLS;
    while (counts.symbols[shown - 1] == 0)
        shown--;
    choose_lengths(counts.symbols, shown, LONGEST, symbols.lengths);
    number_codes(&symbols, shown);
    choose_distances(counts.distances, distances.lengths);
    number_codes(&distances, DISTANCES);
    uint8_t all[SYMBOLS + DISTANCES];
    memcpy(all, symbols.lengths, (size_t)shown);
    memcpy(all + shown, distances.lengths, DISTANCES);
    say_lengths(&said, all, shown + DISTANCES);
    for (int i = 0; i < said.count; i++)
        of_kinds[said.kinds[i]]++;
    choose_lengths(of_kinds, KINDS, LONGEST_OF_KINDS, kinds.lengths);
    number_codes(&kinds, KINDS);
    uint64_t bits = write_head(NULL, &said, &kinds, shown) + counts.bits +
                    code_bits(counts.symbols, symbols.lengths, shown) +
                    code_bits(counts.distances, distances.lengths, DISTANCES);
    uint32_t size = (uint32_t)((bits + 7) / 8) + FRAME_BYTES;
    if (size >= bytes || size + sizeof(uint64_t) > room)
        return 0;
    writer out = {.at = to + 2};
    to[0] = 0x78; /* deflate, a window of 32 kB */
    to[1] = 0x01;
    write_head(&out, &said, &kinds, shown);
    const uint8_t *at = from;
    for (uint32_t i = 0; i < count; i++) {
        write_bytes(&out, at, matches[i].literals, &symbols);
        write_match(&out, &matches[i], &symbols, &distances);
        at += matches[i].literals + matches[i].length;
    }
    write_bytes(&out, at, (uint32_t)(from + bytes - at), &symbols);
    put(&out, symbols.codes[END], symbols.lengths[END]);
    flush(&out);
    uint32_t adler = adler_of(from, bytes);
    for (uint32_t byte = 0; byte < 4; byte++)
        to[size - 4 + byte] = (uint8_t)(adler >> (24 - 8 * byte));
    return size;
}
