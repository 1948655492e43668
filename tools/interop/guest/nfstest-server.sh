#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The server's guest: an export for nfstest, over RDMA and over TCP.
set -eu
# shellcheck source=server.sh
. /interop/server.sh

server_set_up 512m
serve
