#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The guest's part of tools/bench/floor. Usage: floor.sh ROW...
# Repeats the operation of each row of floor.rows, in several rounds, between marks for QEMU's plugin.
set -eu
# shellcheck source=../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=measure-rows.sh
. /measure-rows.sh
ROUNDS=5

rdma_up
insmod /raw_verbs.ko address="$SERVER4"

# measure NUMBER ROW OPERATION BYTES VERSION WARM MEASURED
measure() {
	/operations "$1" "$3" "$4" "$6" "$7" - - -
	echo "bench $1 $2 1"
}

for ((round = 0; round < ROUNDS; round++)); do
	measure_rows "$@"
done
grep -i ' [tw] ' /proc/kallsyms >/share/kallsyms
rmmod raw_verbs
