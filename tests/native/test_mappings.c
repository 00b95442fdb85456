/* SPDX-License-Identifier: MIT
 * test_mappings.c: whose memory is in which mapping, from texts of the kernel's form in pieces of every length, and of this
 * process.
 *
 * tlm-test: sources=mappings.c modes=address,valgrind */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"
#include "platform/mappings.h"

#define KB UINT64_C(1024)

/* A library with code, copied pages, zeroed data behind it, and an arena of Python behind another library. */
static const char program_text[] =
    "00400000-00401000 r-xp 00000000 fe:00 11    /usr/bin/python\nRss: 4 kB\nAnonymous: 0 kB\nVmFlags: rd ex\n"
    "01000000-01100000 rw-p 00000000 00:00 0     [heap]\nSize: 1024 kB\nRss: 600 kB\nAnonymous: 600 kB\n"
    "7f0000000000-7f0000100000 rw-p 00000000 00:00 0 \nRss: 700 kB\nAnonymous: 700 kB\n"
    "7f0000100000-7f0004000000 ---p 00000000 00:00 0 \nRss: 0 kB\nAnonymous: 0 kB\n"
    "7f1000000000-7f1000001000 r--p 00000000 fe:00 12    /lib/libwork.so\nRss: 4 kB\nAnonymous: 0 kB\n"
    "7f1000001000-7f1000002000 r-xp 00001000 fe:00 12    /lib/libwork.so\nRss: 4 kB\nAnonymous: 0 kB\n"
    "7f1000002000-7f1000005000 rw-p 00002000 fe:00 12    /lib/libwork.so\nRss: 12 kB\nAnonymous: 8 kB\n"
    "7f1000005000-7f1000009000 rw-p 00000000 00:00 0 \nRss: 16 kB\nAnonymous: 16 kB\n"
    "7f2000000000-7f2000001000 r-xp 00000000 fe:00 13    /lib/libother.so\nRss: 4 kB\nAnonymous: 0 kB\n"
    "7f2000001000-7f2000002000 rw-p 00001000 fe:00 13    /lib/libother.so\nRss: 4 kB\nAnonymous: 4 kB\n"
    "7f2000002000-7f2000202000 rw-p 00000000 00:00 0 \nRss: 2000 kB\nAnonymous: 2000 kB\n"
    "7f3000000000-7f3000001000 ---p 00000000 00:00 0 \nRss: 0 kB\nAnonymous: 0 kB\n"
    "7f3000001000-7f3000801000 rw-p 00000000 00:00 0 \nRss: 40 kB\nAnonymous: 40 kB\n"
    "7f4000000000-7f4000100000 rw-s 00000000 00:01 77    /dev/zero (deleted)\nRss: 300 kB\nAnonymous: 0 kB\n"
    "7f5000000000-7f5000100000 rw-s 00000000 fe:00 99    /tmp/run.tlm\nRss: 500 kB\nAnonymous: 0 kB\n"
    "7f6000000000-7f6000100000 rw-p 00000000 fe:00 55    /data/a very long name/rows.bin\nRss: 90 kB\nAnonymous: 30 "
    "kB\n"
    "7f7000000000-7f7000100000 rw-s 00000000 fe:00 56    /data/columns.bin\nRss: 50 kB\nAnonymous: 0 kB\n"
    "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0     [stack]\nRss: 100 kB\nAnonymous: 100 kB\n"
    "7ffc00100000-7ffc00102000 r-xp 00000000 00:00 0     [vdso]\nRss: 4 kB\nAnonymous: 0 kB\n";

static tlmi_mappings read_pieces(const char *text, size_t piece, uint64_t log, bool other_guards)
{
    tlmi_mappings_reader reader;
    tlmi_mappings_begin(&reader, log, other_guards);
    for (size_t length = strlen(text); length;) {
        size_t taken = length < piece ? length : piece;
        tlmi_mappings_feed(&reader, text, taken);
        text += taken;
        length -= taken;
    }
    return *tlmi_mappings_end(&reader);
}

static void check_each_kind(void)
{
    for (size_t piece = 1; piece < sizeof program_text; piece += piece < 300 ? 1 : 97) {
        tlmi_mappings found = read_pieces(program_text, piece, 99, false);
        CHECK(found.library_data == (8 + 16 + 4) * KB);
        CHECK(found.allocator == (600 + 700) * KB);
        CHECK(found.stacks == (40 + 100) * KB);
        CHECK(found.mapped == (2000 + 30) * KB);
        CHECK(found.shared == 300 * KB && found.shared_size == 1024 * KB);
        CHECK(found.log == 500 * KB);
        CHECK(found.data_files == (60 + 50) * KB);
    }
    tlmi_mappings guarded = read_pieces(program_text, 4096, 0, true);
    CHECK(guarded.stacks == 100 * KB && guarded.mapped == (2000 + 30 + 40) * KB);
    CHECK(guarded.log == 0 && guarded.data_files == (60 + 50 + 500) * KB);
}

/* Two arenas that are full, a third one that is not, one that is full and has something else behind it; and what is like them,
 * but begins or ends elsewhere. */
static void check_full_arenas(void)
{
    static const char text[] = "7f0000000000-7f0009000000 rw-p 00000000 00:00 0 \nRss: 1000 kB\n"
                               "7f0009000000-7f000c000000 ---p 00000000 00:00 0 \nRss: 0 kB\n"
                               "7f1000000000-7f1004000000 rw-p 00000000 00:00 0 \nRss: 200 kB\n"
                               "7f1004000000-7f1004800000 rw-s 00000000 00:01 77    /dev/zero (deleted)\nRss: 8 kB\n"
                               "7f2000400000-7f2004400000 rw-p 00000000 00:00 0 \nRss: 30 kB\n"
                               "7f3000000000-7f3004100000 rw-p 00000000 00:00 0 \nRss: 4 kB\n";
    tlmi_mappings found = read_pieces(text, 64, 0, true);
    CHECK(found.allocator == 1200 * KB);
    CHECK(found.mapped == 34 * KB);
}

static void check_other_texts(void)
{
    static const tlmi_mappings nothing;
    tlmi_mappings found = read_pieces("", 1, 0, false);
    CHECK(memcmp(&found, &nothing, sizeof found) == 0);
    found = read_pieces("\n\nRss:\n12345\n-\n7f00-7f10\n7f00-7f10 rw\nAnonymous: x kB\n", 7, 0, false);
    CHECK(memcmp(&found, &nothing, sizeof found) == 0);
    /* The last line may lack its feed, and a path may be longer than any buffer. */
    char text[2000] = "1000-2000 rw-s 00000000 fe:00 5    /";
    memset(text + strlen(text), 'n', 1500);
    strcat(text, "\nRss: 8 kB\n2000-3000 rw-p 00000000 00:00 0 \nRss: 4 kB\nRss: 16 kB");
    found = read_pieces(text, 64, 0, false);
    CHECK(found.data_files == 8 * KB && found.mapped == 4 * KB);
}

static tlmi_mappings read_own(void)
{
    static char text[1 << 20];
    size_t length = 0;
    int file = open("/proc/self/smaps", O_RDONLY);
    for (ssize_t got; file >= 0 && (got = read(file, text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)got;
    text[length] = 0;
    if (file >= 0)
        close(file);
    return read_pieces(text, 4096, 0, false);
}

static void check_this_process(void)
{
    enum { BYTES = 8 << 20 };
    tlmi_mappings before = read_own();
    char *private = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(private != MAP_FAILED && shared != MAP_FAILED);
    memset(private, 1, BYTES / 2);
    memset(shared, 1, BYTES / 4);
    tlmi_mappings after = read_own();
    if (before.mapped + before.allocator + before.library_data) { /* the kernel tells */
        CHECK(after.mapped >= before.mapped + BYTES / 2 && after.mapped < before.mapped + BYTES / 2 + BYTES / 8);
        CHECK(after.shared == before.shared + BYTES / 4 && after.shared_size == before.shared_size + BYTES);
    }
    munmap(private, BYTES);
    munmap(shared, BYTES);
}

int main(void)
{
    check_each_kind();
    check_full_arenas();
    check_other_texts();
    check_this_process();
    return 0;
}
