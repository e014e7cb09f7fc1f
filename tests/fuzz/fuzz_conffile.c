/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_conffile.c - bytes as a YAML file; what is accepted must print to a file that is accepted and prints the same */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "conf/option.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The configuration that `bytes` make, printed; NULL where they are refused. */
static char *printed(struct span bytes)
{
    struct loader ld;
    struct err err = {0};
    char *text = NULL;

    if (loader_init(&ld) == 0) {
        int rc = yaml_load(&ld, "f", bytes, LAYER_USER, &err);

        assert(rc == 0 || (err.text[0] != '\0' && strchr(err.text, '\n') == NULL));
        if (rc == 0)
            text = conf_print(ld.conf);
    }
    loader_done(&ld);
    return text;
}

/* Origins hold line numbers, which differ: cut them. */
static void drop_origins(char *text)
{
    char *out = text;

    for (char *line = text, *nl; (nl = strchr(line, '\n')) != NULL; line = nl + 1) {
        char *end = nl;

        while (end > line && strncmp(end, "  # ", 4) != 0)
            end--;
        memmove(out, line, (size_t)(end - line));
        out += end - line;
        *out++ = '\n';
    }
    *out = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *once = printed((struct span){(const char *)data, size}), *twice;

    if (once == NULL)
        return 0;
    twice = printed(span_of(once));
    assert(twice != NULL);
    drop_origins(once);
    drop_origins(twice);
    assert(strcmp(once, twice) == 0);
    free(once);
    free(twice);
    return 0;
}
