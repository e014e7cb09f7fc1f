/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf/provider_conf.h"
#include "conf_helpers.h"

Test(join_conf, join_is_all_that_a_node_needs_to_know)
{
    struct conf *c = good("x --join=[fd00::1]:7700 --node=1 --nodes=3 --secret-file=/s --interface=eth0 --port=1-9");
    char name[HOST_NAME_MAX_LEN + 1];
    struct provider_conf *p;
    uint16_t port;

    cr_expect(conf_joins(c));
    cr_assert_eq(provider_conf_join(c, &p, NULL), 0);
    cr_expect(p->rank == 1 && p->size == 3 && p->attach == ATTACH_YES && p->start_timeout_ms == 60000);
    cr_expect_str_eq(p->secret_file, "/s");
    cr_expect_str_eq(p->interface, "eth0");
    cr_expect(p->port.range && p->port.high == 9);
    cr_assert_eq(conf_join_parse(span_of(p->join), name, &port), 0);
    cr_expect_str_eq(name, "fd00::1");
    cr_expect_eq(port, 7700);
    provider_conf_free(p);
    conf_free(c);
}

/* What the environment says of the pod; where its host is called otherwise, pod 0 has to be named. */
static const struct {
    const char *index, *line;
    int node;         /* -1: refused */
    const char *text; /* of the refusal, or --join in force */
} pods[] = {
    {"0", "--nodes=2 true", 0, NULL},
    {"1", "--nodes=2 --join=sim-0.svc:70 true", 1, "sim-0.svc:70"},
    {"1", "--nodes=2 true", -1, "does not end in -1"},
    {"2", "--nodes=2 true", -1, "JOB_COMPLETION_INDEX is 2, but there are --nodes=2"},
    {"x", "--nodes=2 true", -1, "JOB_COMPLETION_INDEX is 'x'"},
    {"", "--nodes=2 true", -1, "JOB_COMPLETION_INDEX is ''"},
    {"-1", "--nodes=2 true", -1, "JOB_COMPLETION_INDEX is '-1'"},
    {"0", "--nodes=2", -1, "no COMMAND"},
};

Test(join_conf, pods)
{
    for (size_t i = 0; i < sizeof(pods) / sizeof(pods[0]); i++) {
        char index[64], line[256], *env[] = {index, NULL};
        struct err err = {0};
        struct conf *c;

        snprintf(index, sizeof(index), "JOB_COMPLETION_INDEX=%s", pods[i].index);
        snprintf(line, sizeof(line), "x --bootstrap=k8s --secret-file=/s %s", pods[i].line);
        c = load_line(line, env, &err);
        if (pods[i].node < 0) {
            cr_expect_null(c, "%s", line);
            cr_expect(strstr(err.text, pods[i].text) != NULL, "%s: %s", line, err.text);
            continue;
        }
        cr_assert(c != NULL, "%s: %s", line, err.text);
        cr_expect_eq(c->node, pods[i].node);
        cr_expect_eq(conf_joins(c), pods[i].node > 0);
        cr_expect(c->start_timeout_ms == 600000 && c->port.low == 7647 && !c->port.range);
        if (pods[i].text != NULL)
            cr_expect_str_eq(c->join, pods[i].text);
        conf_free(c);
    }
}

Test(join_conf, pods_have_the_name_of_their_job)
{
    static const struct {
        const char *host;
        unsigned index;
        const char *base;
    } names[] = {
        {"sim-0", 0, "sim"},
        {"sim-12", 12, "sim"},
        {"a-1-1", 1, "a-1"},
        {"sim-12", 2, NULL},
        {"sim-012", 12, NULL},
        {"sim-1.sim.ns.svc.x", 1, "sim"},
        {"sim-1.sims.ns", 1, NULL},
        {"h-1.example.org", 1, NULL},
        {"sim-1.sim", 1, NULL},
        {"-3", 3, NULL},
        {"", 0, NULL},
        {"3", 3, NULL},
        {"a b-3", 3, NULL},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct span base = pod_base(names[i].host, names[i].index);

        cr_expect(names[i].base == NULL ? base.p == NULL : span_is(base, names[i].base), "%s", names[i].host);
    }
}

/* Kubernetes tells each pod of them so, unless enableServiceLinks is false. */
Test(join_conf, a_service_that_is_called_pmi_start_is_no_option)
{
    static char *const env[] = {(char *)"PMI_START_SERVICE_HOST=10.0.0.1",
                                (char *)"PMI_START_SERVICE_PORT=80",
                                (char *)"PMI_START_SERVICE_PORT_HTTP=80",
                                (char *)"PMI_START_PORT=tcp://10.0.0.1:80",
                                (char *)"PMI_START_PORT_80_TCP=tcp://10.0.0.1:80",
                                (char *)"PMI_START_PORT_80_TCP_PROTO=tcp",
                                (char *)"PMI_START_PORT_80_TCP_PORT=80",
                                (char *)"PMI_START_PORT_80_TCP_ADDR=10.0.0.1",
                                (char *)"PMI_START_WEB_SERVICE_HOST=10.0.0.1",
                                (char *)"PMI_START_WEB_PORT=udp://10.0.0.1:80",
                                (char *)"PMI_START_WEB_PORT_80_UDP=udp://10.0.0.1:80",
                                NULL};
    struct err err = {0};
    struct conf *c = load_line("x true", env, &err);

    cr_assert(c != NULL, "%s", err.text);
    cr_expect_not(c->port.given);
    conf_free(c);
}
