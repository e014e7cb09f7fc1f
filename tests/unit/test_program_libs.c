/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/program_libs.h"

#include <criterion/criterion.h>
#include <string.h>

static bool is_criterion(const char *name, bool direct)
{
    return direct && strncmp(name, "libcriterion", 12) == 0;
}

/* The library that criterion was linked with, whatever it is. */
static bool is_behind(const char *name, bool direct)
{
    return !direct && strncmp(name, "lib", 3) == 0 && strncmp(name, "libc.", 5) != 0;
}

static bool never(const char *name, bool direct)
{
    (void)direct;
    return name[0] == '\0';
}

Test(program_libs, what_the_program_says_and_what_its_libraries_say)
{
    char *env[] = {NULL};

    cr_expect(program_needs("/proc/self/exe", env, is_criterion));
    cr_expect(program_needs("/proc/self/exe", env, is_behind));
    cr_expect_not(program_needs("/proc/self/exe", env, never), "all of it, and an end");
}

Test(program_libs, what_is_no_program_needs_nothing)
{
    char path[] = "LD_LIBRARY_PATH=/proc:::/dev", *env[] = {path, NULL};

    cr_expect_not(program_needs("/proc/self/status", env, is_behind));
    cr_expect_not(program_needs("/nonexistent", env, is_behind));
    cr_expect_not(program_needs("/dev/null", env, is_behind));
}
