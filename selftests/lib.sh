# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What every test program sources: ". ./lib.sh", after changing to the
# directory it lies in.

export LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin

# Where the C helpers are, and whether to do the long variants.
HELPERS=${HELPERS:-$PWD}
LONG=${LONG:-}

# shellcheck source-path=SCRIPTDIR
. lib/ktap.sh
. lib/module.sh
. lib/log.sh
. lib/bed.sh
. lib/mount.sh
. lib/stats.sh
. lib/load.sh
. lib/trace.sh
. lib/delay_fn.sh
. lib/bounce.sh
