/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include "common/limits.h"
#include "common/mapping.h"
#include "common/util.h"

/* Nodes are one digit each. */
static const struct {
    const char *nodes, *text;
} cases[] = {
    {"0", "(vector,(0,1,1))"},
    {"0000", "(vector,(0,1,4))"},
    {"0011", "(vector,(0,2,2))"},
    {"0101", "(vector,(0,2,1),(0,2,1))"},
    {"012345", "(vector,(0,6,1))"},
    {"001122223333", "(vector,(0,2,2),(2,2,4))"},
    {"00011", "(vector,(0,1,3),(1,1,2))"},
    {"10", "(vector,(1,1,1),(0,1,1))"},
    {"00110011", "(vector,(0,2,2),(0,2,2))"},
    {"0110", "(vector,(0,1,1),(1,1,2),(0,1,1))"},
    {"02", "(vector,(0,1,1),(2,1,1))"},
};

static void nodes_of(const char *text, uint32_t *node_of)
{
    for (size_t i = 0; text[i] != '\0'; i++)
        node_of[i] = (uint32_t)(text[i] - '0');
}

Test(mapping, writes_and_reads_back)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint32_t size = (uint32_t)strlen(cases[i].nodes), node_of[16], again[16];
        struct buf b = {0};

        nodes_of(cases[i].nodes, node_of);
        cr_expect_eq(mapping_write(node_of, size, &b), 0);
        cr_expect_str_eq(buf_str(&b), cases[i].text, "%s gave %s", cases[i].nodes, buf_str(&b));
        cr_expect_eq(mapping_read(buf_span(&b), again, size), 0, "%s", cases[i].text);
        cr_expect_arr_eq(node_of, again, size * sizeof(*again), "%s", cases[i].text);
        buf_done(&b);
    }
}

static const struct {
    const char *text;
    uint32_t size;
} bad[] = {
    {"", 1},
    {"(vector)", 1},
    {"(vector,(0,1,1))", 0},
    {"(vector,(0,1,1))", 2},
    {"(vector,(0,1,2))", 1},
    {"(vector,(0,1,1)", 1},
    {"(vector,(0,1,1)))", 1},
    {"(vector,(0,1,1)) ", 1},
    {"(vector, (0,1,1))", 1},
    {"(vector,(0,0,1),(0,1,1))", 1},
    {"(vector,(0,1,0),(0,1,1))", 1},
    {"(vector,(-1,1,1))", 1},
    {"(vector,(0,1))", 1},
    {"(vector,0,1,1)", 1},
    {"(matrix,(0,1,1))", 1},
    {"(vector,(4294967296,1,1))", 1},
    {"(vector,(4294967295,2,1))", 2},
    {"(vector,(0,4294967295,4294967295))", 4},
    {"(vector,[0,1]x8)", 8},
};

Test(mapping, refuses)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        uint32_t node_of[8] = {77, 77};

        cr_expect_eq(mapping_read(span_of(bad[i].text), node_of, bad[i].size), -EINVAL, "'%s'", bad[i].text);
        cr_expect_eq(node_of[0], 77, "'%s'", bad[i].text);
    }
    cr_expect_eq(mapping_read(SPAN_NONE, NULL, 1), -EINVAL);
}

/* 4096 nodes of 256 ranks: short in blocks, far too long in turn. */
Test(mapping, length)
{
    const uint32_t nodes = 4096, size = nodes * 256;
    uint32_t *node_of = calloc(size, sizeof(*node_of));
    struct buf b = {0};

    for (uint32_t r = 0; r < size; r++)
        node_of[r] = r / 256;
    cr_expect_eq(mapping_write(node_of, size, &b), 0);
    cr_expect_str_eq(buf_str(&b), "(vector,(0,4096,256))");
    for (uint32_t r = 0; r < size; r++)
        node_of[r] = r % nodes;
    cr_expect_eq(mapping_write(node_of, size, &b), -E2BIG);
    cr_expect_str_eq(buf_str(&b), "(vector,(0,4096,256))", "something was added");
    cr_expect_eq(mapping_write(node_of, 0, &b), -EINVAL);
    buf_done(&b);
    free(node_of);
}

/* "(vector" and ")" are 8 bytes, "(0,2,1)" with its comma 8: 106 turns are 856 bytes, 107 are 864. */
Test(mapping, longest)
{
    uint32_t node_of[214];
    struct buf b = {0};

    for (uint32_t r = 0; r < ARRAY_SIZE(node_of); r++)
        node_of[r] = r % 2;
    cr_expect_eq(mapping_write(node_of, 212, &b), 0);
    cr_expect_eq(b.len, 856);
    cr_expect_leq(b.len, PMI_MAPPING_MAX);
    b.len = 0;
    cr_expect_eq(mapping_write(node_of, 214, &b), -E2BIG);
    buf_done(&b);
}
