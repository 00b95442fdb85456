/* SPDX-License-Identifier: MIT
 * mappings.c: whose resident memory is in which mapping of the process; see mappings.h.
 *
 * Neighbours of the same rights are one mapping to the kernel, whoever made them: what is distinguished here never merges with the
 * rest. The C allocator's further arenas begin at multiples of 64 MB and reserve as much; what is not used has no rights. A stack has a guard page of its own below. The parts of a program or library are neighbours.
 */
#include <stdlib.h>
#include <string.h>

#include "platform/mappings.h"

#define ARENA_BYTES (UINT64_C(64) << 20)
#define MOST_GUARD_BYTES (UINT64_C(64) << 10)
#define MOST_STACK_BYTES (UINT64_C(8) << 20)
#define MOST_ZEROED_BYTES (UINT64_C(1000) << 10)

enum { NAME_NONE, NAME_HEAP, NAME_STACK, NAME_KERNEL, NAME_FILE, NAME_SHARED_MEMORY };

static bool starts_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

static uint8_t kind_of_name(const char *name)
{
    static const char *const nameless[] = {"/dev/zero", "/memfd:", "/SYSV", "/dev/shm/", "[anon_shmem"};
    for (size_t i = 0; i < sizeof nameless / sizeof *nameless; i++)
        if (starts_with(name, nameless[i]))
            return NAME_SHARED_MEMORY;
    if (starts_with(name, "[heap]") || starts_with(name, "[anon: glibc: malloc arena"))
        return NAME_HEAP;
    if (starts_with(name, "[stack") || starts_with(name, "[anon: glibc: pthread"))
        return NAME_STACK;
    if (name[0] == 0 || starts_with(name, "[anon"))
        return NAME_NONE;
    return name[0] == '[' ? NAME_KERNEL : NAME_FILE;
}

/* A line such as "7f00-7f10 rw-p 00000000 fe:00 123    /path"; false when it is another kind of line. */
static bool read_header(const char *line, tlmi_mapping *out)
{
    char *rest;
    tlmi_mapping mapping = {.start = strtoull(line, &rest, 16)};
    if (rest == line || *rest != '-')
        return false;
    mapping.end = strtoull(rest + 1, &rest, 16);
    if (*rest != ' ' || strlen(rest) < 6)
        return false;
    const char *rights = rest + 1;
    mapping.accessible = memcmp(rights, "---", 3) != 0;
    mapping.writable = rights[1] == 'w';
    mapping.executable = rights[2] == 'x';
    mapping.shared = rights[3] == 's';
    strtoull(rights + 4, &rest, 16); /* offset */
    strtoull(rest, &rest, 16);       /* device, in two halves */
    strtoull(rest + (*rest == ':'), &rest, 16);
    mapping.inode = strtoull(rest, &rest, 10);
    mapping.name = kind_of_name(rest + strspn(rest, " "));
    *out = mapping;
    return true;
}

static bool is_of_file(const tlmi_mapping *mapping)
{
    return mapping->name == NAME_FILE || mapping->name == NAME_SHARED_MEMORY;
}

static bool touch(const tlmi_mapping *below, const tlmi_mapping *above)
{
    return below->end == above->start && below->end != 0;
}

static bool is_plain(const tlmi_mapping *mapping)
{
    return mapping->name == NAME_NONE && !mapping->shared;
}

/* What is left of the last arena has no rights; one that is full has nothing left, and is one mapping with the next one. */
static bool is_arena(const tlmi_mapping *mapping, const tlmi_mapping *after)
{
    bool has_rest = touch(mapping, after) && is_plain(after) && !after->accessible && after->end % ARENA_BYTES == 0 &&
                    after->end - after->start < ARENA_BYTES;
    return mapping->writable && mapping->start % ARENA_BYTES == 0 && (has_rest || mapping->end % ARENA_BYTES == 0);
}

static bool is_stack(const tlmi_mapping *mapping, const tlmi_mapping *before)
{
    return mapping->writable && touch(before, mapping) && is_plain(before) && !before->accessible &&
           before->end - before->start <= MOST_GUARD_BYTES && mapping->end - mapping->start <= MOST_STACK_BYTES;
}

/* Behind the written data of a library lies its zeroed data, unless what was mapped earlier lies there and is one with it: an
 * arena of Python is 1 MB. */
static bool is_zeroed_data(const tlmi_mapping *mapping, const tlmi_mapping *before)
{
    return mapping->writable && before->name == NAME_FILE && before->writable && touch(before, mapping) &&
           mapping->end - mapping->start <= MOST_ZEROED_BYTES;
}

/* What is known of a group of mappings of one file once it is over. Copied pages of a file without code are the program's. */
static void close_group(tlmi_mappings_reader *reader)
{
    tlmi_mappings *found = &reader->found;
    if (reader->group_executable) {
        found->library_data += reader->group_copied + reader->zeroed;
    } else {
        found->mapped += reader->group_copied + reader->zeroed;
        *(reader->group_nameless ? &found->shared : &found->data_files) += reader->group_bytes;
        found->shared_size += reader->group_nameless ? reader->group_size : 0;
    }
    reader->group_bytes = reader->group_copied = reader->group_size = reader->zeroed = 0;
    reader->group_executable = reader->group_nameless = false;
}

static void add_file(tlmi_mappings_reader *reader, const tlmi_mapping *now)
{
    if (now->inode != reader->before.inode || !is_of_file(&reader->before))
        close_group(reader);
    uint64_t copied = now->anonymous_bytes < now->resident_bytes ? now->anonymous_bytes : now->resident_bytes;
    if (now->shared && reader->log_inode != 0 && now->inode == reader->log_inode) {
        reader->found.log += now->resident_bytes;
        return;
    }
    reader->group_copied += copied;
    reader->group_bytes += now->resident_bytes - copied;
    reader->group_size += now->end - now->start;
    reader->group_executable |= now->executable;
    reader->group_nameless |= now->name == NAME_SHARED_MEMORY;
}

static void judge(tlmi_mappings_reader *reader, const tlmi_mapping *after)
{
    const tlmi_mapping *now = &reader->now, *before = &reader->before;
    tlmi_mappings *found = &reader->found;
    if (is_of_file(now))
        add_file(reader, now);
    else if (now->name == NAME_HEAP || (is_plain(now) && is_arena(now, after)))
        found->allocator += now->resident_bytes;
    else if (now->name == NAME_STACK || (is_plain(now) && !reader->other_guards && is_stack(now, before)))
        found->stacks += now->resident_bytes;
    else if (is_plain(now) && is_zeroed_data(now, before))
        reader->zeroed += now->resident_bytes;
    else if (now->name == NAME_NONE && now->shared) {
        found->shared += now->resident_bytes;
        found->shared_size += now->end - now->start;
    } else if (now->name == NAME_NONE) {
        found->mapped += now->resident_bytes;
    }
}

static void next_mapping(tlmi_mappings_reader *reader, const tlmi_mapping *after)
{
    if (reader->any)
        judge(reader, after);
    reader->before = reader->now;
    reader->now = *after;
    reader->any = true;
}

static void take_line(tlmi_mappings_reader *reader)
{
    const char *line = reader->line;
    tlmi_mapping header;
    reader->line[reader->line_bytes] = 0;
    if (starts_with(line, "Rss:"))
        reader->now.resident_bytes = strtoull(line + strlen("Rss:"), NULL, 10) * 1024;
    else if (starts_with(line, "Anonymous:"))
        reader->now.anonymous_bytes = strtoull(line + strlen("Anonymous:"), NULL, 10) * 1024;
    else if ((line[0] < 'A' || line[0] > 'Z') && read_header(line, &header))
        next_mapping(reader, &header);
    reader->line_bytes = 0;
}

void tlmi_mappings_begin(tlmi_mappings_reader *reader, uint64_t log_inode, bool other_guards)
{
    memset(reader, 0, sizeof *reader);
    reader->log_inode = log_inode;
    reader->other_guards = other_guards;
}

/* Of a line that is too long the begin counts: the rest is the end of a path. */
void tlmi_mappings_feed(tlmi_mappings_reader *reader, const char *text, size_t bytes)
{
    while (bytes) {
        const char *feed = memchr(text, '\n', bytes);
        size_t length = feed ? (size_t)(feed - text) : bytes;
        size_t room = TLMI_MAPPINGS_LINE - 1 - reader->line_bytes;
        size_t taken = length < room ? length : room;
        memcpy(reader->line + reader->line_bytes, text, taken);
        reader->line_bytes += (uint32_t)taken;
        if (feed)
            take_line(reader);
        text += length + (feed != NULL);
        bytes -= length + (feed != NULL);
    }
}

const tlmi_mappings *tlmi_mappings_end(tlmi_mappings_reader *reader)
{
    tlmi_mapping none = {0};
    next_mapping(reader, &none);
    close_group(reader);
    return &reader->found;
}
