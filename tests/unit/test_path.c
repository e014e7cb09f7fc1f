/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/path.h"
#include "common/util.h"

Test(path, from_the_root_on)
{
    static const struct {
        const char *here, *path, *want;
    } cases[] = {
        {"/usr/lib", "/a/./b", "/a/./b"},
        {"/usr/lib", "x", "/usr/lib/x"},
        {"/usr/lib", "./x", "/usr/lib/x"},
        {"/usr/lib", ".//./x", "/usr/lib/x"},
        {"/usr/lib", "../x", "/usr/lib/../x"},
        {"/usr/lib", ".x", "/usr/lib/.x"},
        {"/", "x/y", "/x/y"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *path;

        cr_assert_eq(chdir(cases[i].here), 0);
        cr_assert_eq(path_absolute(cases[i].path, &path), 0);
        cr_expect_str_eq(path, cases[i].want);
        free(path);
    }
}

Test(path, where_this_directory_has_been_removed)
{
    char dir[] = "/tmp/test-path.XXXXXX", *path = dir;

    cr_assert(mkdtemp(dir) != NULL && chdir(dir) == 0 && rmdir(dir) == 0);
    cr_expect_eq(path_absolute("x", &path), -ENOENT);
    cr_expect_null(path);
    cr_assert_eq(path_absolute("/x", &path), 0, "is no matter here");
    free(path);
}
