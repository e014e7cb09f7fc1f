/* SPDX-License-Identifier: BSD-3-Clause */
/* replay.c - main() of a fuzz target within `make check`: its whole corpus once, as TAP
 *
 * The corpus is $srcdir/tests/fuzz/corpus/NAME for a program fuzz_NAME. A failure is a crash, as it is under libFuzzer.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t size = 0, n;

    do {
        data = realloc(data, size + 4096);
        if (f == NULL || data == NULL)
            abort();
        n = fread(data + size, 1, 4096, f);
        size += n;
    } while (n > 0);
    fclose(f);
    data = realloc(data, size > 0 ? size : 1); /* exact, so that a sanitizer sees a read past the end */
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

static int is_file(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    const char *name = strstr(argv[0], "fuzz_"), *srcdir = getenv("srcdir");
    struct dirent **files;
    char dir[2048], path[4096];
    int count;

    (void)argc;
    for (const char *next; name != NULL && (next = strstr(name + 1, "fuzz_")) != NULL;)
        name = next;
    snprintf(dir, sizeof(dir), "%s/tests/fuzz/corpus/%s", srcdir ? srcdir : ".", name ? name + strlen("fuzz_") : "");
    count = scandir(dir, &files, is_file, alphasort);
    if (count <= 0) {
        printf("Bail out! no corpus in %s\n", dir);
        return 1;
    }
    printf("1..%d\n", count);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]->d_name);
        run_file(path);
        printf("ok %d - %s\n", i + 1, files[i]->d_name);
        fflush(stdout);
        free(files[i]);
    }
    free(files);
    return 0;
}
