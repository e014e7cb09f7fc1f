/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/program_find.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/strv.h"
#include "common/util.h"

static char root[] = "/tmp/test_program_find.XXXXXX";

static void put(const char *name, mode_t mode)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    if (S_ISDIR(mode)) {
        cr_assert_eq(mkdir(path, 0755), 0);
        return;
    }
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fclose(f);
    cr_assert_eq(chmod(path, mode), 0);
}

static void setup(void)
{
    cr_assert_not_null(mkdtemp(root));
    put("a", S_IFDIR);
    put("b", S_IFDIR);
    put("b/sub", S_IFDIR);
    put("a/plain", 0644);
    put("a/both", 0644);
    put("b/both", 0755);
    put("a/prog", 0755);
    put("b/prog", 0755);
    put("b/here", 0755);
}

static void cleanup(void)
{
    char command[PATH_MAX + 16];

    snprintf(command, sizeof(command), "rm -r %s", root);
    cr_expect_eq(system(command), 0);
}

/* '@' stands for the test's directory; the task's directory is @/b. */
static const struct {
    const char *path, *name;
    int rc;
    const char *found, *said;
} cases[] = {
    {"@/a:@/b", "prog", 0, "@/a/prog", NULL},
    {"@/none:@/b:@/a", "prog", 0, "@/b/prog", NULL},
    {"@/a:@/b", "both", 0, "@/b/both", NULL}, /* the first is not executable */
    {"@/a", "plain", -EACCES, NULL, "@/a/plain: not executable"},
    {"@/a:@/b", "nope", -ENOENT, NULL, "nope: not found in PATH"},
    {"@/b", "sub", -EISDIR, NULL, "@/b/sub: Is a directory"},
    {"", "here", 0, "@/b/here", NULL},
    {"@/a:", "here", 0, "@/b/here", NULL},
    {":@/a", "prog", 0, "@/b/prog", NULL},
    {"../a", "prog", 0, "@/b/../a/prog", NULL},
    {"@/a", "./here", 0, "@/b/./here", NULL},
    {"@/a", "../a/prog", 0, "@/b/../a/prog", NULL},
    {"@/a", "@/b/here", 0, "@/b/here", NULL},
    {"@/a", "@/a/plain", -EACCES, NULL, "@/a/plain: not executable"},
    {"@/a", "./sub", -EISDIR, NULL, "@/b/./sub: Is a directory"},
    {"@/a", "@/a/prog/x", -ENOTDIR, NULL, "@/a/prog/x: Not a directory"},
    {"@/a", "./nope", -ENOENT, NULL, "@/b/./nope: No such file or directory"},
    {"@/a", "", -ENOENT, NULL, "the program's name is empty"},
    {NULL, "sh", 0, "/bin/sh", NULL},
};

static const char *expand(const char *s, char *out, size_t size)
{
    FILE *f = fmemopen(out, size, "w");

    cr_assert_not_null(f);
    for (; s != NULL && *s != '\0'; s++)
        if (*s == '@')
            fputs(root, f);
        else
            fputc(*s, f);
    fputc('\0', f);
    fclose(f);
    return out;
}

static void check(size_t i)
{
    char name[PATH_MAX], dir[PATH_MAX], list[PATH_MAX], want[PATH_MAX];
    char **env = NULL, *path = NULL;
    struct err err = {0};
    int rc;

    if (cases[i].path != NULL)
        env_set(&env, "PATH", expand(cases[i].path, list, sizeof(list)));
    rc = program_find(expand(cases[i].name, name, sizeof(name)), expand("@/b", dir, sizeof(dir)), env, &path, &err);
    cr_expect_eq(rc, cases[i].rc, "%s in %s: rc %d", cases[i].name, cases[i].path, rc);
    if (rc == 0)
        cr_expect_str_eq(path, expand(cases[i].found, want, sizeof(want)));
    else
        cr_expect_str_eq(err.text, expand(cases[i].said, want, sizeof(want)));
    free(path);
    strv_free(env);
}

Test(program_find, table, .init = setup, .fini = cleanup)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        check(i);
}

Test(program_find, from_the_root_directory)
{
    char *path = NULL;

    cr_expect_eq(program_find("bin/sh", "/", NULL, &path, NULL), 0);
    cr_expect_str_eq(path, "/bin/sh");
    free(path);
}
