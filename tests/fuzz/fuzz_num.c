/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_num.c - any text as a number, a time, a range of ports, an address to join, a pod's name; what is accepted means
 * what the C library reads */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "common/num.h"
#include "conf/provider_conf.h"
#include "conf/set.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_unsigned(const char *copy, struct span text)
{
    uint64_t v = 77;

    if (num_u64(text, 0, UINT64_MAX, &v) == 0)
        assert(strlen(copy) == text.n && strtoull(copy, NULL, 10) == v);
    else
        assert(v == 77);
    v = 77;
    assert(num_u64(text, 3, 5, &v) < 0 ? v == 77 : v >= 3 && v <= 5);
}

static void check_signed(const char *copy, struct span text)
{
    int64_t v = 77;

    if (num_i64(text, INT64_MIN, INT64_MAX, &v) == 0)
        assert(strlen(copy) == text.n && strtoll(copy, NULL, 10) == v);
    else
        assert(v == 77);
}

static void check_join(struct span text)
{
    char name[HOST_NAME_MAX_LEN + 1] = "before";
    uint16_t port = 7;

    if (conf_join_parse(text, name, &port) < 0)
        assert(strcmp(name, "before") == 0 && port == 7);
    else
        assert(port > 0 && name[0] != '\0' && strlen(name) < text.n &&
               memmem(text.p, text.n, name, strlen(name)) != NULL);
}

static void check_pod(const char *host)
{
    struct span base = pod_base(host, 3);
    const char *rest = host + base.n;

    if (base.p == NULL)
        return;
    assert(base.p == host && base.n > 0);
    assert(strncmp(rest, "-3", 2) == 0 && (rest[2] == '\0' || rest[2] == '.'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};
    char *copy = strndup(size ? text.p : "", size);
    struct conf_ports ports = {0};
    uint64_t ms = 77;

    if (copy == NULL)
        return 0;
    check_unsigned(copy, text);
    check_signed(copy, text);
    check_join(text);
    check_pod(copy);
    assert(num_duration_ms(text, &ms) < 0 ? ms == 77 : ms <= 1000000000000u);
    assert(ports_parse(text, &ports) < 0 ? !ports.given : ports.given && ports.low >= 1 && ports.low <= ports.high);
    free(copy);
    return 0;
}
