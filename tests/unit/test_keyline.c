/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include "bootstrap/keyline.h"
#include "common/util.h"

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define TOKEN "pmi-start-provider 1 run=2 index=7 key=" KEY

/* How many tokens are in `text`, fed in pieces of `piece` bytes; the last one is in `last`. */
static int count(const char *text, size_t len, size_t piece, struct keyline_found *last)
{
    struct keyline k = {0};
    int n = 0;

    for (size_t at = 0; at < len; at += piece) {
        struct span in = {text + at, MIN(piece, len - at)};

        while (keyline_next(&k, &in, last) == 1)
            n++;
        cr_assert_eq(in.n, 0);
    }
    return n;
}

static const struct {
    const char *name, *text;
    int n;
} cases[] = {
    {"alone on its line", "\n" TOKEN "\n", 1},
    {"behind pdsh's label", "foo3: " TOKEN "\n", 1},
    {"no newline at all", TOKEN, 1},
    {"two", TOKEN "\n" TOKEN, 2},
    {"glued to noise", "xxpmi-start-" TOKEN "zz", 1},
    {"begun twice", "pmi-start-provider 1 run=" TOKEN, 1},
    {"begun within the key", "pmi-start-provider 1 run=1 index=1 key=00" TOKEN, 1},
    {"another version", "pmi-start-provider 2 run=2 index=7 key=" KEY, 0},
    {"no run", "pmi-start-provider 1 run= index=7 key=" KEY, 0},
    {"run over 32 bits", "pmi-start-provider 1 run=4294967296 index=7 key=" KEY, 0},
    {"run of many digits", "pmi-start-provider 1 run=00000000000000000002 index=7 key=" KEY, 0},
    {"sign", "pmi-start-provider 1 run=-2 index=7 key=" KEY, 0},
    {"short key", "pmi-start-provider 1 run=2 index=7 key=0011\n", 0},
    {"upper-case key", "pmi-start-provider 1 run=2 index=7 key=A" KEY, 0},
    {"broken by a newline", "pmi-start-provider 1\n run=2 index=7 key=" KEY, 0},
};

Test(keyline, table_in_any_pieces)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        for (size_t piece = 1; piece <= strlen(cases[i].text); piece++) {
            struct keyline_found found = {0};

            cr_expect_eq(count(cases[i].text, strlen(cases[i].text), piece, &found), cases[i].n, "%s, pieces of %zu",
                         cases[i].name, piece);
            if (cases[i].n > 0)
                cr_expect(found.run == 2 && found.index == 7 && strcmp(found.key, KEY) == 0, "%s", cases[i].name);
        }
    }
}

Test(keyline, nul_bytes_around)
{
    static const char text[] = "\0p\0pmi\0" TOKEN "\0\0" TOKEN "\0";
    struct keyline_found found;

    cr_expect_eq(count(text, sizeof(text) - 1, 3, &found), 2);
}

Test(keyline, megabytes_of_noise)
{
    size_t len = 8u << 20;
    char *text = malloc(len);
    struct keyline_found found = {0};
    unsigned seed = 1;

    cr_assert(text != NULL);
    for (size_t i = 0; i < len; i++) {
        seed = seed * 1103515245u + 12345u;
        text[i] = (char)(seed >> 16);
    }
    memset(text, 'p', len / 2);
    memcpy(text + len / 2 - 3, TOKEN, sizeof(TOKEN) - 1);
    memcpy(text + len - 200, TOKEN, sizeof(TOKEN) - 1);
    cr_expect_eq(count(text, len, 65536, &found), 2);
    free(text);
}

Test(keyline, largest_numbers)
{
    static const char text[] = "pmi-start-provider 1 run=4294967295 index=4294967295 key=" KEY;
    struct keyline_found found = {0};

    cr_expect_eq(count(text, sizeof(text) - 1, 1, &found), 1);
    cr_expect(found.run == UINT32_MAX && found.index == UINT32_MAX);
}
