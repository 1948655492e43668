#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Run one program of selftests/ in the guest.
cd /selftests || exit
HELPERS=/selftests/helpers exec "./$1.sh"
