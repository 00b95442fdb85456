/* SPDX-License-Identifier: MIT
 * fold_state.c: exact sums and the live set of events that are no longer in the file.
 *
 * Events come in time order. Owns its tables in our own memory, which grow with the number of live objects, sites and
 * threads, not with the number of events; samples and marks are thinned evenly when they become too many. Under work.
 */
#include <string.h>

#include "log/fold.h"

enum {
    FIRST_LIVE = 4096,
    FIRST_SITES = 1024,
    FIRST_THREADS = 64,
    MOST_SAMPLES = 65536,
    MOST_MARKS = 16384,
    MOST_MISUSES = 1000, /* kept with the marks; further ones are only counted */
    MOST_HEAP = 65536,   /* sampled blocks: enough for estimates within half a percent */
    MOST_HALVINGS = 15,  /* as an entry of the checkpoint can say */
    LONG_LIFE = 10000,   /* allocations that an object outlives: what judges a line needs to know that it was freed */
    FIRST_PASSED = 1024,
    MOST_PASSED = 65536,
    MOST_PASSED_HALVINGS = 24, /* as of objects that are alive */
};

static uint64_t place_of(const tlmi_fold_state *state, uint64_t address)
{
    return (address * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (state->live_room - 1);
}

/* Where the object is, or the empty place where it would go. A handle may look like an address: the device tells. */
static tlmi_live *find_live(const tlmi_fold_state *state, uint64_t address, uint8_t device)
{
    uint64_t at = place_of(state, address);
    while (state->live[at].address && (state->live[at].address != address || state->live[at].device != device))
        at = (at + 1) & (state->live_room - 1);
    return &state->live[at];
}

static bool grow_live(tlmi_fold_state *state)
{
    tlmi_fold_state bigger = {.live_room = state->live_room * 2};
    bigger.live = tlmi_own_alloc(bigger.live_room * sizeof *bigger.live);
    if (!bigger.live)
        return false;
    for (uint64_t i = 0; i < state->live_room; i++)
        if (state->live[i].address)
            *find_live(&bigger, state->live[i].address, state->live[i].device) = state->live[i];
    tlmi_own_free(state->live, state->live_room * sizeof *state->live);
    state->live = bigger.live;
    state->live_room = bigger.live_room;
    return true;
}

/* Empties a place and closes the gap, so that no tombstones pile up. */
static void remove_live(tlmi_fold_state *state, tlmi_live *entry)
{
    uint64_t hole = (uint64_t)(entry - state->live), mask = state->live_room - 1;
    for (uint64_t at = (hole + 1) & mask; state->live[at].address; at = (at + 1) & mask) {
        uint64_t home = place_of(state, state->live[at].address);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            state->live[hole] = state->live[at];
            hole = at;
        }
    }
    state->live[hole].address = 0;
}

static void *grown(void *table, size_t entry_bytes, uint32_t *room, uint64_t needed)
{
    uint64_t bigger = *room;
    while (bigger < needed)
        bigger *= 2;
    void *copy = tlmi_own_alloc(bigger * entry_bytes);
    if (!copy)
        return NULL;
    memcpy(copy, table, *room * entry_bytes);
    tlmi_own_free(table, *room * entry_bytes);
    *room = (uint32_t)bigger;
    return copy;
}

static tlmi_site_sums *site_sums(tlmi_fold_state *state, uint32_t site)
{
    if (site >= state->sites_room) {
        void *table = grown(state->sites, sizeof *state->sites, &state->sites_room, (uint64_t)site + 1);
        if (!table)
            return NULL;
        state->sites = table;
    }
    return &state->sites[site];
}

tlmi_fold_thread *tlmi_fold_state_thread(tlmi_fold_state *state, uint32_t thread)
{
    if (thread >= state->threads_room) {
        void *table = grown(state->threads, sizeof *state->threads, &state->threads_room, (uint64_t)thread + 1);
        if (!table)
            return NULL;
        state->threads = table;
    }
    return &state->threads[thread];
}

static void lower(tlmi_fold_state *state, const tlmi_live *object)
{
    tlmi_fold_totals *totals = &state->totals;
    tlmi_site_sums *sums = &state->sites[object->site];
    sums->freed_count++;
    sums->freed_bytes += object->bytes;
    totals->free_count++;
    totals->free_bytes += object->bytes;
    totals->current_count--;
    totals->current_bytes -= object->bytes;
}

static void raise_peak(tlmi_fold_totals *totals, uint64_t ticks)
{
    if (totals->current_bytes > totals->peak_bytes) {
        totals->peak_bytes = totals->current_bytes;
        totals->peak_bytes_ticks = ticks;
    }
    if (totals->current_count > totals->peak_count)
        totals->peak_count = totals->current_count;
}

/* Room in the table for one more, so that three fifths are taken at most. */
static bool has_room(tlmi_fold_state *state)
{
    return (state->totals.current_count + state->heap_count + 1) * 5 <= state->live_room * 3 || grow_live(state);
}

void tlmi_fold_state_halve_passed(tlmi_fold_state *state)
{
    uint32_t left = 0;
    if (state->passed_halving < MOST_PASSED_HALVINGS) {
        uint64_t stride = UINT64_C(1) << ++state->passed_halving;
        for (uint32_t i = 0; i < state->passed_count; i++)
            if (tlmi_fold_is_listed(state->passed[i].number, stride))
                state->passed[left++] = state->passed[i];
    }
    for (uint32_t i = 0; i < left; i++)
        state->passed[i].halvings = (uint8_t)state->passed_halving;
    state->passed_count = left;
}

/* Keeps an object that is freed if its life was long. false: no memory. */
static bool add_passed(tlmi_fold_state *state, const tlmi_live *object, uint64_t ticks, uint32_t site)
{
    if (state->totals.next_object - object->object < LONG_LIFE)
        return true;
    while (state->passed_count == MOST_PASSED)
        tlmi_fold_state_halve_passed(state);
    if (!tlmi_fold_is_listed(object->object, UINT64_C(1) << state->passed_halving))
        return true;
    void *table =
        state->passed_count < state->passed_room
            ? state->passed
            : grown(state->passed, sizeof *state->passed, &state->passed_room, (uint64_t)state->passed_count + 1);
    if (!table)
        return false;
    state->passed = table;
    state->passed[state->passed_count++] = (tlmi_passed){.number = object->object,
                                                         .ticks = object->ticks,
                                                         .died_ticks = ticks,
                                                         .bytes = object->bytes,
                                                         .site = object->site,
                                                         .died_site = site,
                                                         .device = object->device,
                                                         .halvings = (uint8_t)state->passed_halving};
    return true;
}

static bool apply_alloc(tlmi_fold_state *state, uint32_t thread, const tlmi_event *event, uint64_t ticks)
{
    tlmi_fold_totals *totals = &state->totals;
    tlmi_site_sums *sums = site_sums(state, event->site);
    if (!sums || !has_room(state))
        return false;
    tlmi_live *entry = find_live(state, event->object, event->device);
    if (entry->address) /* its free was not seen: it cannot be alive */
        lower(state, entry);
    *entry = (tlmi_live){.address = event->object,
                         .bytes = event->arg,
                         .ticks = ticks,
                         .object = totals->next_object++,
                         .site = event->site,
                         .thread = (uint16_t)thread,
                         .device = event->device};
    if (sums->alloc_count++ == 0) {
        sums->site = event->site;
        sums->device = event->device;
        sums->first_ticks = ticks;
    }
    sums->alloc_bytes += event->arg;
    totals->alloc_count++;
    totals->alloc_bytes += event->arg;
    totals->current_count++;
    totals->current_bytes += event->arg;
    raise_peak(totals, ticks);
    return true;
}

static bool apply_free(tlmi_fold_state *state, tlmi_fold_thread *owner, const tlmi_event *event, uint64_t ticks)
{
    tlmi_site_sums *sums = site_sums(state, event->site);
    if (!sums)
        return false;
    sums->site = event->site;
    sums->free_calls++;
    tlmi_live *entry = find_live(state, event->object, event->device);
    bool resize = event->arg == 1 && event->device < TLM_DEVICE_CPU;
    owner->restorable = resize && entry->address;
    owner->restore_unknown = resize && !entry->address;
    if (!entry->address) {
        state->totals.unknown_frees++;
        return true;
    }
    if (!resize && !add_passed(state, entry, ticks, event->site)) /* of a resize it is not known yet whether it fails */
        return false;
    owner->restore = *entry;
    lower(state, entry);
    remove_live(state, entry);
    return true;
}

/* A resize failed: the object that its first half freed is alive as it was. */
static bool apply_restore(tlmi_fold_state *state, tlmi_fold_thread *owner)
{
    tlmi_fold_totals *totals = &state->totals;
    if (owner->restorable) {
        const tlmi_live *object = &owner->restore;
        *find_live(state, object->address, object->device) = *object;
        state->sites[object->site].freed_count--;
        state->sites[object->site].freed_bytes -= object->bytes;
        totals->free_count--;
        totals->free_bytes -= object->bytes;
        totals->current_count++;
        totals->current_bytes += object->bytes;
    } else if (owner->restore_unknown) {
        totals->unknown_frees--;
    }
    owner->restorable = owner->restore_unknown = false;
    return true;
}

/* Whether a sampled block is among those that are left after so many halvings. */
static bool is_left(uint64_t address, uint64_t ticks, uint32_t halvings)
{
    return ((address ^ ticks) * UINT64_C(0x9E3779B97F4A7C15) >> 40 & ((1U << halvings) - 1)) == 0;
}

bool tlmi_fold_state_halve_heap(tlmi_fold_state *state)
{
    if (state->heap_halving == MOST_HALVINGS)
        return false;
    state->heap_halving++;
    for (uint64_t i = 0; i < state->live_room;) {
        tlmi_live *entry = &state->live[i];
        if (entry->address && entry->device == TLM_DEVICE_HEAP &&
            !is_left(entry->address, entry->ticks, state->heap_halving)) {
            remove_live(state, entry); /* another one may have come to this place */
            state->heap_count--;
        } else {
            i++;
        }
    }
    return true;
}

/* A sampled block is in no sum: all that is known of it is that it is alive. */
static bool apply_heap(tlmi_fold_state *state, uint32_t thread, const tlmi_event *event, uint64_t ticks)
{
    tlmi_live *entry = find_live(state, event->object, TLM_DEVICE_HEAP);
    if (entry->address) {
        remove_live(state, entry);
        state->heap_count--;
    }
    if (event->kind == TLM_KIND_FREE)
        return true;
    if (state->heap_count == MOST_HEAP && !tlmi_fold_state_halve_heap(state))
        return true;
    if (!is_left(event->object, ticks, state->heap_halving))
        return true;
    if (!has_room(state))
        return false;
    *find_live(state, event->object, TLM_DEVICE_HEAP) = (tlmi_live){.address = event->object,
                                                                    .bytes = event->arg,
                                                                    .ticks = ticks,
                                                                    .site = event->site,
                                                                    .thread = (uint16_t)thread,
                                                                    .device = TLM_DEVICE_HEAP,
                                                                    .place = (uint8_t)event->count};
    state->heap_count++;
    return true;
}

static void add_sample(tlmi_fold_state *state, uint64_t ticks, uint64_t metric, uint64_t value)
{
    if (state->samples_count == MOST_SAMPLES) {
        uint32_t kept = 0;
        uint8_t odd[256] = {0};
        for (uint32_t i = 0; i < MOST_SAMPLES; i++)
            if (odd[state->samples[i].metric & 255]++ & 1)
                state->samples[kept++] = state->samples[i];
        state->samples_count = kept;
    }
    state->samples[state->samples_count++] = (tlmi_fold_sample){ticks, metric, value};
}

static void apply_sample(tlmi_fold_state *state, const tlmi_event *event, uint64_t ticks)
{
    add_sample(state, ticks, event->object, event->arg);
    if (event->object == TLM_METRIC_ANON) {
        add_sample(state, ticks, TLM_METRIC_TRACKED, state->totals.current_bytes);
        add_sample(state, ticks, TLM_METRIC_TRACKED_COUNT, state->totals.current_count);
    }
}

static void apply_mark(tlmi_fold_state *state, const tlmi_event *event)
{
    if (state->marks_count == MOST_MARKS) {
        for (uint32_t i = 0; i < MOST_MARKS / 2; i++)
            memcpy(&state->marks[i], &state->marks[2 * i], sizeof *state->marks);
        state->marks_count = MOST_MARKS / 2;
    }
    memcpy(&state->marks[state->marks_count++], event, sizeof *event);
}

static bool apply_object(tlmi_fold_state *state, uint32_t thread, const tlmi_event *event, uint64_t ticks)
{
    tlmi_fold_thread *owner = &state->threads[thread];
    if (event->device == TLM_DEVICE_NONE)
        return true;
    if (event->kind == TLM_KIND_FREE)
        return apply_free(state, owner, event, ticks);
    return event->kind == TLM_KIND_REALLOC && event->arg == UINT64_MAX ? apply_restore(state, owner)
                                                                       : apply_alloc(state, thread, event, ticks);
}

bool tlmi_fold_state_apply(tlmi_fold_state *state, uint32_t thread, const tlmi_event *event, uint64_t ticks)
{
    tlmi_fold_totals *totals = &state->totals;
    bool good = true;
    switch (event->kind) {
    case TLM_KIND_ALLOC:
    case TLM_KIND_REALLOC:
    case TLM_KIND_FREE:
        good = event->device == TLM_DEVICE_HEAP ? apply_heap(state, thread, event, ticks)
                                                : apply_object(state, thread, event, ticks);
        break;
    case TLM_KIND_ACQUIRE:
        totals->acquire_count++;
        break;
    case TLM_KIND_RELEASE:
        totals->release_count++;
        break;
    case TLM_KIND_DEVICE_ALLOC:
        totals->device_bytes += event->arg;
        break;
    case TLM_KIND_DEVICE_FREE:
        totals->device_bytes -= event->arg;
        break;
    case TLM_KIND_SAMPLE:
        apply_sample(state, event, ticks);
        break;
    case TLM_KIND_MISUSE:
        if (totals->misuse_count++ < MOST_MISUSES)
            apply_mark(state, event);
        break;
    case TLM_KIND_MARK:
        apply_mark(state, event);
        break;
    default:
        break;
    }
    if (good) {
        totals->events++;
        state->threads[thread].consumed++;
    }
    return good;
}

bool tlmi_fold_state_open(tlmi_fold_state *state)
{
    *state = (tlmi_fold_state){
        .live_room = FIRST_LIVE, .sites_room = FIRST_SITES, .threads_room = FIRST_THREADS, .passed_room = FIRST_PASSED};
    state->live = tlmi_own_alloc(FIRST_LIVE * sizeof *state->live);
    state->sites = tlmi_own_alloc(FIRST_SITES * sizeof *state->sites);
    state->threads = tlmi_own_alloc(FIRST_THREADS * sizeof *state->threads);
    state->samples = tlmi_own_alloc(MOST_SAMPLES * sizeof *state->samples);
    state->marks = tlmi_own_alloc(MOST_MARKS * sizeof *state->marks);
    state->passed = tlmi_own_alloc(FIRST_PASSED * sizeof *state->passed);
    bool good = state->live && state->sites && state->threads && state->samples && state->marks && state->passed;
    if (!good)
        tlmi_fold_state_close(state);
    return good;
}

void tlmi_fold_state_close(tlmi_fold_state *state)
{
    tlmi_own_free(state->live, state->live_room * sizeof *state->live);
    tlmi_own_free(state->sites, state->sites_room * sizeof *state->sites);
    tlmi_own_free(state->threads, state->threads_room * sizeof *state->threads);
    tlmi_own_free(state->samples, MOST_SAMPLES * sizeof *state->samples);
    tlmi_own_free(state->marks, MOST_MARKS * sizeof *state->marks);
    tlmi_own_free(state->passed, state->passed_room * sizeof *state->passed);
    *state = (tlmi_fold_state){0};
}
