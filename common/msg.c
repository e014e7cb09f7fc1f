/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/msg.h"

#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/limits.h"
#include "common/msg_check.h"
#include "common/strv.h"
#include "common/util.h"

/* What goes wrong with a value, in one place so that every getter says it the same way. */
#define WRONG_KIND(err, key, want) err_set(err, -EPROTO, "'%s' is not %s", key, want)

static const struct {
    unsigned type;
    const char *name;
} names[] = {
    {MSG_HELLO, "hello"},
    {MSG_LISTENING, "listening"},
    {MSG_PLACED, "placed"},
    {MSG_READY, "ready"},
    {MSG_START_FAILED, "start-failed"},
    {MSG_BARRIER, "barrier"},
    {MSG_EXITED, "exited"},
    {MSG_FAILED, "failed"},
    {MSG_STUCK, "stuck"},
    {MSG_NODE_LOST, "node-lost"},
    {MSG_OUTPUT, "output"},
    {MSG_INPUT_CREDIT, "input-credit"},
    {MSG_TRACE, "trace"},
    {MSG_LOG, "log"},
    {MSG_REPORT, "report"},
    {MSG_FINISHED, "finished"},
    {MSG_STARTED, "started"},
    {MSG_NAME, "name"},
    {MSG_SPAWN, "spawn"},
    {MSG_CAME, "came"},
    {MSG_LEFT, "left"},
    {MSG_WAITS, "waits"},
    {MSG_SLOW, "slow"},
    {MSG_FAULT, "fault"},
    {MSG_PMIX_FENCE, "pmix-fence"},
    {MSG_PMIX_ASK, "pmix-ask"},
    {MSG_PMIX_GOT, "pmix-got"},
    {MSG_PMIX_CAME, "pmix-came"},
    {MSG_LEAVING, "leaving"},
    {MSG_JOINED, "joined"},
    {MSG_UNJOINED, "unjoined"},
    {MSG_WANT, "want"},
    {MSG_BACK, "back"},
    {MSG_LOGIN_FAILED, "login-failed"},
    {MSG_PMIX_EVENT, "pmix-event"},
    {MSG_WELCOME, "welcome"},
    {MSG_REFUSED, "refused"},
    {MSG_PLACE, "place"},
    {MSG_JOB, "job"},
    {MSG_GO, "go"},
    {MSG_SIGNAL, "signal"},
    {MSG_PAUSE, "pause"},
    {MSG_END, "end"},
    {MSG_RELEASE, "release"},
    {MSG_RANK_GONE, "rank-gone"},
    {MSG_BROKEN, "broken"},
    {MSG_OUTPUT_CREDIT, "output-credit"},
    {MSG_INPUT, "input"},
    {MSG_ASK, "ask"},
    {MSG_NAMED, "named"},
    {MSG_SPAWNED, "spawned"},
    {MSG_JOB_OVER, "job-over"},
    {MSG_CHECK, "check"},
    {MSG_WINDOW, "window"},
    {MSG_PMIX_RELEASE, "pmix-release"},
    {MSG_PMIX_ANSWER, "pmix-answer"},
    {MSG_PMIX_GET, "pmix-get"},
    {MSG_STATUS, "status"},
    {MSG_SHARE, "share"},
    {MSG_PMIX_NOTIFY, "pmix-notify"},
    {MSG_PMIX_CHECK, "pmix-check"},
    {MSG_PING, "ping"},
    {MSG_PONG, "pong"},
};

const char *msg_name(unsigned type)
{
    static char unknown[4][24];
    static unsigned next;
    char *text;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (names[i].type == type)
            return names[i].name;
    text = unknown[next++ % ARRAY_SIZE(unknown)];
    snprintf(text, sizeof(unknown[0]), "type %u", type);
    return text;
}

/* --- writing --- */

/* The map's header is always the 5-byte form, written first with a count of 0 and patched at the end. */
#define MAP32 0xdf
#define MAP32_HEADER 5

struct msg_out {
    msgpack_sbuffer bytes;
    msgpack_packer pk;
    uint32_t count; /* of pairs */
    bool secret;
    int rc; /* the first failure; nothing is written after it */
};

struct msg_out *msg_out_new(void)
{
    static const char header[MAP32_HEADER] = {(char)MAP32};
    struct msg_out *m = calloc(1, sizeof(*m));

    if (m == NULL)
        return NULL;
    msgpack_sbuffer_init(&m->bytes);
    msgpack_packer_init(&m->pk, &m->bytes, msgpack_sbuffer_write);
    if (msgpack_sbuffer_write(&m->bytes, header, sizeof(header)) < 0)
        m->rc = -ENOMEM;
    return m;
}

void msg_out_free(struct msg_out *m)
{
    if (m == NULL)
        return;
    if (m->secret && m->bytes.data != NULL)
        explicit_bzero(m->bytes.data, m->bytes.size);
    msgpack_sbuffer_destroy(&m->bytes);
    free(m);
}

/* Whether `len` more bytes may be written; with the cap here no length is ever cut to the 32 bits of the wire. */
static bool has_room(struct msg_out *m, size_t len)
{
    if (m->rc == 0 && (m->bytes.size > MESSAGE_MAX || len > MESSAGE_MAX - m->bytes.size))
        m->rc = -E2BIG;
    return m->rc == 0;
}

static void note(struct msg_out *m, int packed)
{
    if (packed < 0 && m->rc == 0)
        m->rc = -ENOMEM;
}

static void put_text(struct msg_out *m, const char *s)
{
    size_t len = strlen(s);

    if (has_room(m, len))
        note(m, msgpack_pack_str_with_body(&m->pk, s, len));
}

static bool put_key(struct msg_out *m, const char *key)
{
    put_text(m, key);
    m->count++;
    return m->rc == 0;
}

void msg_put_u64(struct msg_out *m, const char *key, uint64_t v)
{
    if (put_key(m, key))
        note(m, msgpack_pack_uint64(&m->pk, v));
}

void msg_put_i64(struct msg_out *m, const char *key, int64_t v)
{
    if (put_key(m, key))
        note(m, msgpack_pack_int64(&m->pk, v));
}

void msg_put_bool(struct msg_out *m, const char *key, bool v)
{
    if (put_key(m, key))
        note(m, v ? msgpack_pack_true(&m->pk) : msgpack_pack_false(&m->pk));
}

void msg_put_str(struct msg_out *m, const char *key, const char *s)
{
    if (s != NULL && put_key(m, key))
        put_text(m, s);
}

void msg_put_bin(struct msg_out *m, const char *key, struct span bytes)
{
    if (bytes.p != NULL && put_key(m, key) && has_room(m, bytes.n))
        note(m, msgpack_pack_bin_with_body(&m->pk, bytes.p, bytes.n));
}

void msg_put_secret(struct msg_out *m, const char *key, struct span bytes)
{
    m->secret = true;
    msg_put_bin(m, key, bytes);
}

/* Every element takes a byte or more, so a count over the room left can be refused at once. */
static bool put_array(struct msg_out *m, const char *key, size_t count)
{
    if (!put_key(m, key) || !has_room(m, count))
        return false;
    note(m, msgpack_pack_array(&m->pk, count));
    return m->rc == 0;
}

void msg_put_strv(struct msg_out *m, const char *key, char *const *v, size_t count)
{
    if (!put_array(m, key, count))
        return;
    for (size_t i = 0; i < count && m->rc == 0; i++)
        put_text(m, v[i]);
}

void msg_put_u32v(struct msg_out *m, const char *key, const uint32_t *v, size_t count)
{
    if (!put_array(m, key, count))
        return;
    for (size_t i = 0; i < count && m->rc == 0; i++)
        note(m, msgpack_pack_uint32(&m->pk, v[i]));
}

int msg_out_done(struct msg_out *m, struct span *body)
{
    if (!has_room(m, 0))
        return m->rc;
    for (unsigned i = 0; i < 4; i++)
        m->bytes.data[1 + i] = (char)(m->count >> (24 - 8 * i));
    *body = (struct span){m->bytes.data, m->bytes.size};
    return 0;
}

/* --- reading --- */

struct msg_in {
    msgpack_unpacked data;
};

static bool has_text_keys(const msgpack_object *o)
{
    if (o->type != MSGPACK_OBJECT_MAP)
        return false;
    for (uint32_t i = 0; i < o->via.map.size; i++)
        if (o->via.map.ptr[i].key.type != MSGPACK_OBJECT_STR)
            return false;
    return true;
}

int msg_in_new(struct msg_in **out, struct span body, struct err *err)
{
    msgpack_unpack_return got;
    struct msg_in *m;
    size_t off = 0;

    if (body.p == NULL || body.n > MESSAGE_MAX || !msg_is_whole(body))
        return err_set(err, -EPROTO, "the message is not well formed");
    m = malloc(sizeof(*m));
    if (m == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    msgpack_unpacked_init(&m->data);
    got = msgpack_unpack_next(&m->data, body.p, body.n, &off);
    if (got == MSGPACK_UNPACK_SUCCESS && off == body.n && has_text_keys(&m->data.data)) {
        *out = m;
        return 0;
    }
    msg_in_free(m);
    if (got == MSGPACK_UNPACK_NOMEM_ERROR)
        return err_set(err, -ENOMEM, "out of memory");
    return err_set(err, -EPROTO, "the message is not a map with text keys");
}

void msg_in_free(struct msg_in *m)
{
    if (m == NULL)
        return;
    msgpack_unpacked_destroy(&m->data);
    free(m);
}

/* The value of the first pair with this key. */
static int find(const struct msg_in *m, const char *key, const msgpack_object **out, struct err *err)
{
    const msgpack_object_map *map = &m->data.data.via.map;

    for (uint32_t i = 0; i < map->size; i++) {
        const msgpack_object_str *k = &map->ptr[i].key.via.str;

        if (span_is((struct span){k->ptr ? k->ptr : "", k->size}, key)) {
            *out = &map->ptr[i].val;
            return 0;
        }
    }
    return err_set(err, -ENOENT, "'%s' is missing", key);
}

int msg_get_u64(const struct msg_in *m, const char *key, uint64_t min, uint64_t max, uint64_t *out, struct err *err)
{
    const msgpack_object *o;
    int rc = find(m, key, &o, err);

    if (rc < 0)
        return rc;
    if (o->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
        return WRONG_KIND(err, key, "a number from 0 up");
    if (o->via.u64 < min || o->via.u64 > max)
        return err_set(err, -EPROTO, "'%s' is %llu, not %llu to %llu", key, (unsigned long long)o->via.u64,
                       (unsigned long long)min, (unsigned long long)max);
    *out = o->via.u64;
    return 0;
}

int msg_get_i64(const struct msg_in *m, const char *key, int64_t *out, struct err *err)
{
    const msgpack_object *o;
    int rc = find(m, key, &o, err);

    if (rc < 0)
        return rc;
    if (o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
        *out = o->via.i64;
    else if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER && o->via.u64 <= INT64_MAX)
        *out = (int64_t)o->via.u64;
    else
        return WRONG_KIND(err, key, "a number of 64 bits");
    return 0;
}

int msg_get_bool(const struct msg_in *m, const char *key, bool *out, struct err *err)
{
    const msgpack_object *o;
    int rc = find(m, key, &o, err);

    if (rc < 0)
        return rc;
    if (o->type != MSGPACK_OBJECT_BOOLEAN)
        return WRONG_KIND(err, key, "true or false");
    *out = o->via.boolean;
    return 0;
}

static bool bytes_of(const msgpack_object *o, struct span *out)
{
    if (o->type == MSGPACK_OBJECT_STR)
        *out = (struct span){o->via.str.ptr, o->via.str.size};
    else if (o->type == MSGPACK_OBJECT_BIN)
        *out = (struct span){o->via.bin.ptr, o->via.bin.size};
    else
        return false;
    if (out->n == 0)
        out->p = "";
    return true;
}

static bool text_of(const msgpack_object *o, struct span *out)
{
    return bytes_of(o, out) && memchr(out->p, '\0', out->n) == NULL;
}

int msg_get_bin(const struct msg_in *m, const char *key, struct span *out, struct err *err)
{
    const msgpack_object *o;
    struct span s;
    int rc = find(m, key, &o, err);

    if (rc < 0)
        return rc;
    if (!bytes_of(o, &s))
        return WRONG_KIND(err, key, "text or binary");
    *out = s;
    return 0;
}

int msg_get_str(const struct msg_in *m, const char *key, char **out, struct err *err)
{
    const msgpack_object *o;
    struct span s;
    char *copy;
    int rc = find(m, key, &o, err);

    if (rc < 0)
        return rc;
    if (!text_of(o, &s))
        return WRONG_KIND(err, key, "text");
    copy = strndup(s.p, s.n);
    if (copy == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    *out = copy;
    return 0;
}

static int find_array(const struct msg_in *m, const char *key, size_t max, const msgpack_object_array **out,
                      struct err *err)
{
    const msgpack_object *o;
    int rc = find(m, key, &o, err);

    if (rc < 0)
        return rc;
    if (o->type != MSGPACK_OBJECT_ARRAY)
        return WRONG_KIND(err, key, "a list");
    if (o->via.array.size > max)
        return err_set(err, -EPROTO, "'%s' has %u elements, more than %zu", key, o->via.array.size, max);
    *out = &o->via.array;
    return 0;
}

/* strv_add() relies on arrays of such a length. */
static size_t power_of_two(size_t at_least)
{
    size_t n = 1;

    while (n < at_least)
        n *= 2;
    return n;
}

int msg_get_strv(const struct msg_in *m, const char *key, size_t max, char ***out, size_t *count, struct err *err)
{
    const msgpack_object_array *a;
    struct span s;
    char **v;
    int rc = find_array(m, key, max, &a, err);

    if (rc < 0)
        return rc;
    v = calloc(power_of_two((size_t)a->size + 1), sizeof(*v));
    if (v == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < a->size; i++) {
        bool ok = text_of(&a->ptr[i], &s);

        v[i] = ok ? strndup(s.p, s.n) : NULL;
        if (v[i] != NULL)
            continue;
        strv_free(v);
        return ok ? err_set(err, -ENOMEM, "out of memory") : WRONG_KIND(err, key, "a list of texts");
    }
    *out = v;
    *count = a->size;
    return 0;
}

int msg_get_u32v(const struct msg_in *m, const char *key, size_t max, uint32_t **out, size_t *count, struct err *err)
{
    const msgpack_object_array *a;
    uint32_t *v;
    int rc = find_array(m, key, max, &a, err);

    if (rc < 0)
        return rc;
    v = malloc(((size_t)a->size + 1) * sizeof(*v));
    if (v == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < a->size; i++) {
        const msgpack_object *o = &a->ptr[i];

        if (o->type != MSGPACK_OBJECT_POSITIVE_INTEGER || o->via.u64 > UINT32_MAX) {
            free(v);
            return WRONG_KIND(err, key, "a list of 32-bit numbers");
        }
        v[i] = (uint32_t)o->via.u64;
    }
    *out = v;
    *count = a->size;
    return 0;
}
