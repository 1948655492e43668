# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The library of the tests. Each test program changes to its own directory and sources this file:
# ". ./lib.sh".

export LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin

# The directory of the C helpers and modules; LONG=1 selects the long variants.
HELPERS=${HELPERS:-$PWD}
LONG=${LONG:-}

# shellcheck source-path=SCRIPTDIR
. lib/ktap.sh
. lib/module.sh
. lib/log.sh
. lib/bed.sh
. lib/mount.sh
. lib/frozen.sh
. lib/stats.sh
. lib/load.sh
. lib/trace.sh
. lib/delay_fn.sh
. lib/bounce.sh
