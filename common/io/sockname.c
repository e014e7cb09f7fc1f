/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/io/sockname.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

socklen_t sockname_set(union sockname *out, struct span number, uint16_t port)
{
    char text[INET6_ADDRSTRLEN];

    *out = (union sockname){0};
    if (number.n >= 2 && number.p[0] == '[' && number.p[number.n - 1] == ']')
        number = (struct span){number.p + 1, number.n - 2};
    if (number.n == 0 || number.n >= sizeof(text) || memchr(number.p, '\0', number.n) != NULL)
        return 0;
    memcpy(text, number.p, number.n);
    text[number.n] = '\0';
    if (inet_pton(AF_INET, text, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons(port);
        return sizeof(out->v4);
    }
    if (inet_pton(AF_INET6, text, &out->v6.sin6_addr) == 1) {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons(port);
        return sizeof(out->v6);
    }
    return 0;
}

bool sockname_is_number(struct span text)
{
    union sockname any;

    return sockname_set(&any, text, 0) > 0;
}

bool sockname_of(int fd, bool peer, union sockname *out)
{
    socklen_t len = sizeof(*out);

    *out = (union sockname){0};
    if ((peer ? getpeername(fd, &out->sa, &len) : getsockname(fd, &out->sa, &len)) < 0)
        return false;
    return out->sa.sa_family == AF_INET || out->sa.sa_family == AF_INET6;
}

uint16_t sockname_port(const union sockname *a)
{
    return ntohs(a->sa.sa_family == AF_INET6 ? a->v6.sin6_port : a->v4.sin_port);
}

void sockname_text(const union sockname *a, char out[SOCKNAME_TEXT])
{
    bool six = a->sa.sa_family == AF_INET6;
    char ip[INET6_ADDRSTRLEN] = "?";

    (void)inet_ntop(a->sa.sa_family, six ? (const void *)&a->v6.sin6_addr : &a->v4.sin_addr, ip, sizeof(ip));
    snprintf(out, SOCKNAME_TEXT, six ? "[%s]:%u" : "%s:%u", ip, (unsigned)sockname_port(a));
}

bool sockname_bytes(const struct sockaddr *sa, uint8_t out[16])
{
    static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};
    const union sockname *a = (const void *)sa;

    if (sa->sa_family == AF_INET) {
        memcpy(out, v4_prefix, sizeof(v4_prefix));
        memcpy(out + 12, &a->v4.sin_addr, 4);
    } else if (sa->sa_family == AF_INET6) {
        memcpy(out, &a->v6.sin6_addr, 16);
    } else {
        return false;
    }
    return true;
}
