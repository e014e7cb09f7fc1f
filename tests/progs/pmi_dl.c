/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi_dl.c - a task that loads libpmi, uses it and unloads it, again and again
 *
 *     pmi_dl LIBRARY ROUNDS
 *
 * In every second round it forgets PMI_Finalize. In the end it must have no descriptor more than in the beginning.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/progs/suite.h"

const char *suite_name = "pmi_dl";

static int open_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    CHECK(d != NULL);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static int call0(void *lib, const char *name)
{
    int (*f)(void);

    *(void **)&f = dlsym(lib, name);
    CHECK(f != NULL);
    return f();
}

static int call1(void *lib, const char *name, int *out)
{
    int (*f)(int *);

    *(void **)&f = dlsym(lib, name);
    CHECK(f != NULL);
    return f(out);
}

int main(int argc, char **argv)
{
    int before = open_descriptors(), rounds, n;

    CHECK(argc == 3);
    rounds = (int)strtol(argv[2], NULL, 10);
    for (int i = 0; i < rounds; i++) {
        void *lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);

        if (lib == NULL)
            fprintf(stderr, "pmi_dl: %s\n", dlerror());
        CHECK(lib != NULL);
        GIVES(0, call1(lib, "PMI_Initialized", &n));
        CHECK(n == 0);
        GIVES(0, call1(lib, "PMI_Init", &n));
        GIVES(0, call1(lib, "PMI_Get_rank", &suite_rank));
        GIVES(0, call0(lib, "PMI_Barrier"));
        if (i % 2 == 1)
            GIVES(0, call0(lib, "PMI_Finalize"));
        CHECK(dlclose(lib) == 0);
        CHECK(dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) == NULL);
    }
    CHECK(open_descriptors() == before);
    if (suite_rank == 0)
        printf("pmi_dl: %d rounds, all right\n", rounds);
    return 0;
}
