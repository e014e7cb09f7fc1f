#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# exec.sh HOST COMMAND [ARG...] - run a command on a host without ssh, in the same folder where the host has it
set -u
. "$(dirname "$0")/common.sh"
[ $# -ge 2 ] || fail "usage: exec.sh HOST COMMAND [ARG...]"
on "$@"
