#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The server's guest: allows Remote Invalidation until the client calls "unwilling".
set -eu
# shellcheck source=server.sh
. /interop/server.sh

unwilling() { set_switch remote_invalidation 0; }

server_set_up 512m
serve
