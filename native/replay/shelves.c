/* SPDX-License-Identifier: MIT
 * shelves.c: free parts of segments by size and then by address, in bins of like sizes.
 *
 * A bin is a treap: a search tree whose shape follows from a number that each part has by its own. Sizes differ by less than a
 * sixteenth within a bin, so most hold few parts, and a bit map finds the next one that holds any. Not thread-safe.
 */
#include "replay/replay.h"

enum { BITS_OF_FIRST = 9, SLICES_BITS = 4 };

static inline uint32_t rank_of(uint32_t part)
{
    uint32_t mixed = part * UINT32_C(0x9E3779B1);
    return mixed ^ mixed >> 15;
}

static inline uint32_t bin_of(uint64_t bytes)
{
    if (bytes >> BITS_OF_FIRST == 0)
        return 0;
    uint32_t bits = 63 - (uint32_t)__builtin_clzll(bytes);
    uint32_t slice = (uint32_t)(bytes >> (bits - SLICES_BITS)) & ((1 << SLICES_BITS) - 1);
    uint32_t bin = (bits - BITS_OF_FIRST) << SLICES_BITS | slice;
    return bin < TLMI_BINS ? bin : TLMI_BINS - 1;
}

static inline uint32_t *root_of(const tlmi_part *parts, tlmi_shelf *shelf, uint32_t part)
{
    return parts[part].state == TLMI_PART_UNMAPPED ? &shelf->unmapped : &shelf->roots[bin_of(parts[part].bytes)];
}

/* Unmapped parts are in the order of addresses alone. */
static inline bool is_before(const tlmi_part *a, const tlmi_part *b)
{
    if (a->state != TLMI_PART_UNMAPPED && a->bytes != b->bytes)
        return a->bytes < b->bytes;
    return a->address < b->address;
}

/* ---- trees ---- */

static inline void set_child(tlmi_part *parts, uint32_t *root, uint32_t parent, uint32_t old, uint32_t now)
{
    if (!parent)
        *root = now;
    else if (parts[parent].left == old)
        parts[parent].left = now;
    else
        parts[parent].right = now;
    if (now)
        parts[now].parent = parent;
}

/* The part changes places with its parent. */
static void lift(tlmi_part *parts, uint32_t *root, uint32_t part)
{
    uint32_t parent = parts[part].parent, inner;
    set_child(parts, root, parts[parent].parent, parent, part);
    if (parts[parent].left == part) {
        inner = parts[part].right;
        parts[parent].left = inner;
        parts[part].right = parent;
    } else {
        inner = parts[part].left;
        parts[parent].right = inner;
        parts[part].left = parent;
    }
    if (inner)
        parts[inner].parent = parent;
    parts[parent].parent = part;
}

static void insert(tlmi_part *parts, uint32_t *root, uint32_t part)
{
    uint32_t parent = 0;
    bool is_left = false;
    for (uint32_t at = *root; at; at = is_left ? parts[at].left : parts[at].right) {
        parent = at;
        is_left = is_before(&parts[part], &parts[at]);
    }
    parts[part].left = parts[part].right = 0;
    parts[part].parent = parent;
    if (!parent)
        *root = part;
    else if (is_left)
        parts[parent].left = part;
    else
        parts[parent].right = part;
    uint32_t rank = rank_of(part);
    while (parts[part].parent && rank > rank_of(parts[part].parent))
        lift(parts, root, part);
}

static void erase(tlmi_part *parts, uint32_t *root, uint32_t part)
{
    tlmi_part *gone = &parts[part];
    while (gone->left && gone->right)
        lift(parts, root, rank_of(gone->left) > rank_of(gone->right) ? gone->left : gone->right);
    set_child(parts, root, gone->parent, part, gone->left ? gone->left : gone->right);
}

static uint32_t leftmost(const tlmi_part *parts, uint32_t at)
{
    while (at && parts[at].left)
        at = parts[at].left;
    return at;
}

static uint32_t rightmost(const tlmi_part *parts, uint32_t at)
{
    while (at && parts[at].right)
        at = parts[at].right;
    return at;
}

static uint32_t next_in_tree(const tlmi_part *parts, uint32_t at)
{
    if (parts[at].right)
        return leftmost(parts, parts[at].right);
    while (parts[at].parent && parts[parts[at].parent].right == at)
        at = parts[at].parent;
    return parts[at].parent;
}

static uint32_t previous_in_tree(const tlmi_part *parts, uint32_t at)
{
    if (parts[at].left)
        return rightmost(parts, parts[at].left);
    while (parts[at].parent && parts[parts[at].parent].left == at)
        at = parts[at].parent;
    return parts[at].parent;
}

/* ---- bins ---- */

/* The first bin from `bin` on that holds a part; TLMI_BINS: none. */
static uint32_t occupied_from(const tlmi_shelf *shelf, uint32_t bin)
{
    uint32_t word = bin / 64;
    if (word >= TLMI_BIN_WORDS)
        return TLMI_BINS;
    uint64_t bits = shelf->occupied[word] & ~UINT64_C(0) << bin % 64;
    while (!bits) {
        if (++word == TLMI_BIN_WORDS)
            return TLMI_BINS;
        bits = shelf->occupied[word];
    }
    return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

/* The last bin below `bin` that holds a part; TLMI_BINS: none. */
static uint32_t occupied_below(const tlmi_shelf *shelf, uint32_t bin)
{
    for (uint32_t word = (bin + 63) / 64; word-- > 0;) {
        uint64_t bits = shelf->occupied[word];
        if (bin < (word + 1) * 64)
            bits &= ((uint64_t)1 << bin % 64) - 1;
        if (bits)
            return word * 64 + 63 - (uint32_t)__builtin_clzll(bits);
    }
    return TLMI_BINS;
}

void tlmi_shelf_put(tlmi_part *parts, tlmi_shelf *shelf, uint32_t part)
{
    insert(parts, root_of(parts, shelf, part), part);
    if (parts[part].state == TLMI_PART_UNMAPPED)
        return;
    uint32_t bin = bin_of(parts[part].bytes);
    shelf->occupied[bin / 64] |= (uint64_t)1 << bin % 64;
}

void tlmi_shelf_take(tlmi_part *parts, tlmi_shelf *shelf, uint32_t part)
{
    uint32_t *root = root_of(parts, shelf, part);
    erase(parts, root, part);
    if (*root || root == &shelf->unmapped)
        return;
    uint32_t bin = bin_of(parts[part].bytes);
    shelf->occupied[bin / 64] &= ~((uint64_t)1 << bin % 64);
}

uint32_t tlmi_shelf_fitting(const tlmi_part *parts, const tlmi_shelf *shelf, uint64_t bytes)
{
    uint32_t bin = bin_of(bytes), found = 0;
    for (uint32_t at = shelf->roots[bin]; at;) {
        bool fits = parts[at].bytes >= bytes;
        found = fits ? at : found;
        at = fits ? parts[at].left : parts[at].right;
    }
    if (found)
        return found;
    bin = occupied_from(shelf, bin + 1);
    return bin == TLMI_BINS ? 0 : leftmost(parts, shelf->roots[bin]);
}

uint32_t tlmi_shelf_next(const tlmi_part *parts, const tlmi_shelf *shelf, uint32_t part)
{
    uint32_t next = next_in_tree(parts, part);
    if (next)
        return next;
    uint32_t bin = occupied_from(shelf, bin_of(parts[part].bytes) + 1);
    return bin == TLMI_BINS ? 0 : leftmost(parts, shelf->roots[bin]);
}

uint32_t tlmi_shelf_last(const tlmi_part *parts, const tlmi_shelf *shelf)
{
    uint32_t bin = occupied_below(shelf, TLMI_BINS);
    return bin == TLMI_BINS ? 0 : rightmost(parts, shelf->roots[bin]);
}

uint32_t tlmi_shelf_previous(const tlmi_part *parts, const tlmi_shelf *shelf, uint32_t part)
{
    uint32_t previous = previous_in_tree(parts, part);
    if (previous)
        return previous;
    uint32_t bin = occupied_below(shelf, bin_of(parts[part].bytes));
    return bin == TLMI_BINS ? 0 : rightmost(parts, shelf->roots[bin]);
}

uint32_t tlmi_shelf_first_unmapped(const tlmi_part *parts, const tlmi_shelf *shelf)
{
    return leftmost(parts, shelf->unmapped);
}

uint32_t tlmi_shelf_next_unmapped(const tlmi_part *parts, uint32_t part)
{
    return next_in_tree(parts, part);
}
