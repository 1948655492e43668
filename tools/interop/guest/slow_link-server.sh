#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The server's guest of tools/interop/slow_link.
set -eu
# shellcheck source=server.sh
. /interop/server.sh

server_set_up 512m
serve
