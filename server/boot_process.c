/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/boot_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int out_pipe(int *mine, int *theirs)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        return -errno;
    (void)fcntl(p[0], F_SETFL, O_RDONLY | O_NONBLOCK);
    *mine = p[0];
    *theirs = p[1];
    return 0;
}

int boot_process_spawn(struct spawner *s, const struct task_limits *limits, const struct spawn_req *what, int *out_fd,
                       int *err_fd, struct err *err)
{
    struct spawn_req req = {
        .id = what->id,
        .program = what->argv[0],
        .argv = what->argv,
        .envp = what->envp,
        .fd = {-1, -1, -1},
        .pmi_fd = -1,
        .limits = limits,
    };
    int out = -1, errf = -1, rc = out_pipe(&out, &req.fd[1]);

    if (rc == 0)
        rc = out_pipe(&errf, &req.fd[2]);
    if (rc < 0)
        err_set(err, rc, "cannot make a pipe: %s", strerror(-rc));
    else
        rc = spawner_spawn(s, &req, err);
    for (int i = 1; i <= 2; i++)
        if (req.fd[i] >= 0)
            close(req.fd[i]);
    if (rc < 0) {
        if (out >= 0)
            close(out);
        if (errf >= 0)
            close(errf);
        return rc;
    }
    *out_fd = out;
    *err_fd = errf;
    return 0;
}

int boot_process_script(const char *self_path, char **out)
{
    const char *slash = strrchr(self_path, '/');
    char *beside;

    /* From a build tree, where nothing is installed, the script lies beside the program. */
    if (asprintf(&beside, "%.*s/bootstrap/pmi-start-rsh", (int)(slash - self_path), self_path) < 0)
        return -ENOMEM;
    if (access(beside, X_OK) == 0) {
        *out = beside;
        return 0;
    }
    free(beside);
    *out = strdup(PKGLIBEXECDIR "/pmi-start-rsh");
    return *out == NULL ? -ENOMEM : 0;
}
