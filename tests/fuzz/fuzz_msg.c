/* SPDX-License-Identifier: BSD-3-Clause */
/* A message body from anybody. Whatever the check lets through, the decoder must take whole. */
#include <assert.h>
#include <msgpack.h>
#include <stdlib.h>
#include "common/msg.h"
#include "common/msg_check.h"
#include "common/strv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_agrees_with_decoder(struct span body)
{
    msgpack_unpacked u;
    size_t off = 0;

    msgpack_unpacked_init(&u);
    assert(msgpack_unpack_next(&u, body.p, body.n, &off) == MSGPACK_UNPACK_SUCCESS && off == body.n);
    msgpack_unpacked_destroy(&u);
}

static void get_all(const struct msg_in *m, const char *key)
{
    struct span bytes;
    uint32_t *numbers;
    struct err err;
    size_t count;
    uint64_t u;
    int64_t i;
    char *s, **v;
    bool b;

    msg_get_u64(m, key, 1, 1000, &u, &err);
    msg_get_i64(m, key, &i, &err);
    msg_get_bool(m, key, &b, &err);
    if (msg_get_bin(m, key, &bytes, &err) == 0)
        assert(bytes.p != NULL);
    if (msg_get_str(m, key, &s, &err) == 0)
        free(s);
    if (msg_get_strv(m, key, 100, &v, &count, &err) == 0) {
        assert(strv_count(v) == count && count <= 100);
        strv_free(v);
    }
    if (msg_get_u32v(m, key, 100, &numbers, &count, &err) == 0)
        free(numbers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span body = {(const char *)data, size};
    struct msg_in *m;
    struct err err;

    if (msg_is_whole(body))
        check_agrees_with_decoder(body);
    if (msg_in_new(&m, body, &err) < 0)
        return 0;
    get_all(m, "k");
    get_all(m, "");
    msg_in_free(m);
    return 0;
}
