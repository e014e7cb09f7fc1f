/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_lib.c - the same through a libpmi or libpmi2, whose functions have been the same everywhere for many years */
#include <dlfcn.h>
#include "client/bench_talk.h"

struct api1 {
    int (*init)(int *spawned);
    int (*finalize)(void);
    int (*rank)(int *rank);
    int (*size)(int *size);
    int (*appnum)(int *appnum);
    int (*universe)(int *size);
    int (*name)(char *name, int len);
    int (*key_max)(int *len);
    int (*value_max)(int *len);
    int (*put)(const char *kvs, const char *key, const char *value);
    int (*commit)(const char *kvs);
    int (*barrier)(void);
    int (*get)(const char *kvs, const char *key, char *value, int len);
};

struct api2 {
    int (*init)(int *spawned, int *size, int *rank, int *appnum);
    int (*finalize)(void);
    int (*name)(char *name, int len);
    int (*put)(const char *key, const char *value);
    int (*fence)(void);
    int (*get)(const char *job, int from, const char *key, char *value, int max, int *len);
    int (*attr)(const char *key, char *value, int max, int *found);
};

static struct api1 api1;
static struct api2 api2;

struct symbol {
    const char *name;
    void *where; /* of the function's pointer */
};

static const struct symbol symbols1[] = {
    {"PMI_Init", &api1.init},
    {"PMI_Finalize", &api1.finalize},
    {"PMI_Get_rank", &api1.rank},
    {"PMI_Get_size", &api1.size},
    {"PMI_Get_appnum", &api1.appnum},
    {"PMI_Get_universe_size", &api1.universe},
    {"PMI_KVS_Get_my_name", &api1.name},
    {"PMI_KVS_Get_key_length_max", &api1.key_max},
    {"PMI_KVS_Get_value_length_max", &api1.value_max},
    {"PMI_KVS_Put", &api1.put},
    {"PMI_KVS_Commit", &api1.commit},
    {"PMI_Barrier", &api1.barrier},
    {"PMI_KVS_Get", &api1.get},
    {NULL, NULL},
};

static const struct symbol symbols2[] = {
    {"PMI2_Init", &api2.init},
    {"PMI2_Finalize", &api2.finalize},
    {"PMI2_Job_GetId", &api2.name},
    {"PMI2_KVS_Put", &api2.put},
    {"PMI2_KVS_Fence", &api2.fence},
    {"PMI2_KVS_Get", &api2.get},
    {"PMI2_Info_GetJobAttr", &api2.attr},
    {NULL, NULL},
};

static int take_symbols(void *library, const char *path, const struct symbol *s, struct err *err)
{
    for (; s->name != NULL; s++) {
        void *f = dlsym(library, s->name);

        if (f == NULL)
            return err_set(err, -ENOENT, "%.200s has no %s", path, s->name);
        memcpy(s->where, &f, sizeof(f));
    }
    return 0;
}

int talk_load(struct talk_job *job, const char *path, int version, struct err *err)
{
    /* Slurm's libpmi loads plugins, which look for its symbols. */
    job->library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (job->library == NULL)
        return err_set(err, -ENOENT, "%.400s", dlerror());
    if (version == 0)
        version = dlsym(job->library, "PMI_Init") != NULL ? 1 : 2;
    job->kind = version == 1 ? &talk_lib1 : &talk_lib2;
    return take_symbols(job->library, path, version == 1 ? symbols1 : symbols2, err);
}

static int failed(struct err *err, const char *function, int rc)
{
    return err_set(err, -EIO, "%s failed: %d", function, rc);
}

/* A value's room: the library writes a terminator behind it. */
static int have_room(struct talk_job *job, struct err *err)
{
    job->room.len = 0;
    if (buf_reserve(&job->room, (size_t)job->value_most + 1) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    return 0;
}

static int start1(struct talk *t, const struct where *w, int64_t id, struct err *err)
{
    struct talk_job *job = t->job;
    int key = 0, value = 0, spawned = 0, rc = api1.init(&spawned);

    (void)w;
    (void)id;
    if (rc != 0)
        return failed(err, "PMI_Init", rc);
    job->is_spawned = spawned != 0;
    if (api1.appnum(&job->appnum) != 0)
        job->appnum = -1;
    if (api1.universe(&job->universe) != 0)
        job->universe = -1;
    if ((rc = api1.rank(&job->rank)) != 0 || (rc = api1.size(&job->size)) != 0)
        return failed(err, "PMI_Get_rank or PMI_Get_size", rc);
    rc = api1.name(job->name, sizeof(job->name));
    if (rc != 0)
        return failed(err, "PMI_KVS_Get_my_name", rc);
    if ((rc = api1.key_max(&key)) != 0 || (rc = api1.value_max(&value)) != 0 || key < 2 || value < 2)
        return failed(err, "PMI_KVS_Get_key_length_max or _value_length_max", rc);
    job->key_most = (unsigned)key - 1;
    job->value_most = (unsigned)value - 1;
    return have_room(job, err);
}

static int start2(struct talk *t, const struct where *w, int64_t id, struct err *err)
{
    struct talk_job *job = t->job;
    int spawned = 0, rc = api2.init(&spawned, &job->size, &job->rank, &job->appnum);

    (void)w;
    (void)id;
    if (rc != 0)
        return failed(err, "PMI2_Init", rc);
    job->is_spawned = spawned != 0;
    job->universe = -1;
    job->key_most = PMI_KEY_MAX - 1;
    job->value_most = PMI_VALUE_MAX - 1;
    rc = api2.name(job->name, sizeof(job->name));
    if (rc != 0)
        return failed(err, "PMI2_Job_GetId", rc);
    return have_room(job, err);
}

static int ask(struct talk *t, const struct talk_request *r, struct err *err)
{
    (void)err;
    t->now = *r;
    return 0;
}

/* Libraries take strings; plan_value() and its like do not end in a terminator. */
static const char *as_string(struct talk *t, struct span s)
{
    t->job->out.len = 0;
    return buf_add(&t->job->out, s.p, s.n) == 0 ? buf_str(&t->job->out) : NULL;
}

static void take_value(struct talk *t, struct talk_answer *a)
{
    if (a->rc == 0)
        a->value = (struct span){t->job->room.p, strnlen(t->job->room.p, t->job->value_most + 1)};
}

static int answer1(struct talk *t, enum talk_op op, struct talk_answer *a, struct err *err)
{
    struct talk_job *job = t->job;
    const char *value;

    *a = (struct talk_answer){0};
    switch (op) {
    case TALK_PUT:
        value = as_string(t, t->now.value);
        if (value == NULL)
            return err_set(err, -ENOMEM, "out of memory");
        a->rc = api1.put(job->name, t->now.key, value);
        return 0;
    case TALK_BARRIER:
        a->rc = api1.commit(job->name);
        if (a->rc == 0)
            a->rc = api1.barrier();
        return 0;
    case TALK_GET:
    case TALK_ATTR:
        a->rc = api1.get(job->name, t->now.key, job->room.p, (int)job->value_most + 1);
        take_value(t, a);
        return 0;
    case TALK_FINALIZE:
        a->rc = api1.finalize();
        return 0;
    default:
        return err_set(err, -ENOSYS, "not done through a library");
    }
}

static int answer2(struct talk *t, enum talk_op op, struct talk_answer *a, struct err *err)
{
    struct talk_job *job = t->job;
    const char *value;
    int len = 0, found = 0;

    *a = (struct talk_answer){0};
    switch (op) {
    case TALK_PUT:
        value = as_string(t, t->now.value);
        if (value == NULL)
            return err_set(err, -ENOMEM, "out of memory");
        a->rc = api2.put(t->now.key, value);
        return 0;
    case TALK_BARRIER:
        a->rc = api2.fence();
        return 0;
    case TALK_GET:
        a->rc = api2.get(job->name, -1, t->now.key, job->room.p, (int)job->value_most + 1, &len);
        if (a->rc == 0 && len < 0) /* how PMI-2 says that there was more than fits */
            a->rc = -1;
        take_value(t, a);
        return 0;
    case TALK_ATTR:
        a->rc = api2.attr(t->now.key, job->room.p, (int)job->value_most + 1, &found);
        if (a->rc == 0 && !found)
            a->rc = -1;
        take_value(t, a);
        return 0;
    case TALK_FINALIZE:
        a->rc = api2.finalize();
        return 0;
    default:
        return err_set(err, -ENOSYS, "not done through a library");
    }
}

const struct talk_kind talk_lib1 = {.name = "libpmi", .start = start1, .ask = ask, .answer = answer1};
const struct talk_kind talk_lib2 = {.name = "libpmi2", .start = start2, .ask = ask, .answer = answer2};
