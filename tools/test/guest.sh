#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Runs one program of selftests/ in the guest, with its arguments.
program=$1
shift
cd /selftests || exit
HELPERS=/selftests/helpers exec "./$program.sh" "$@"
