# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Who judges how a guest ended: ends planted for them, with no guest and no emulator.

# A trap where there is no breakpoint is the emulator's, and what it broke off is counted
# from its new beginning. A trap where there is one is the kernel's.
rule_test_stale_code() {
	local dir before='Oops: int3: 0000 [#1] SMP NOPTI' code='[    1.0] Code: 41 89 ca'

	dir=$(mktemp -d)
	printf '%s\n' "$before" "$code 0f <1f> 44 00 00" 'Code: 18 c3 cc <48>' >"$dir/stale"
	printf '%s\n' "$before" "$code cc <1f> 44 00 00" >"$dir/trap"
	printf '%s\n' 'Oops: 0002 [#1] SMP NOPTI' "$code 0f <1f> 44 00 00" >"$dir/oops"
	tools/vm/stale-code "$dir/stale" || echo "tools/vm/stale-code sees no stale code"
	! tools/vm/stale-code "$dir/trap" || echo "tools/vm/stale-code takes a real trap for stale"
	! tools/vm/stale-code "$dir/oops" || echo "tools/vm/stale-code takes an Oops for stale"

	printf '%s\n' 1..3 'ok 1 - a' 'not ok 2 - b' 'once more: so' 1..3 'ok 1 - a' \
		'ok 2 - b' 'ok 3 - c' >"$dir/suite"
	tools/test/count "$dir" suite | tail -n 1 | diff - <(echo '3 passed, 1 failed')
	printf '%s\n' 1..3 'ok 1 - a' 'once more: so' 'ok 1 - a' >"$dir/suite"
	tools/test/count "$dir" suite | tail -n 1 | diff - <(echo '1 passed, 1 failed')
	# A group of the probe is planned once, however many guests it takes.
	printf '%s\n' '# group a, x' 1..2 'ok 1 - a' '# group a, x' 1..2 'ok 2 - b' >"$dir/suite"
	tools/test/count "$dir" suite gone | tail -n 1 | diff - <(echo '2 passed, 1 failed')
	rm -r "$dir"
}

# What has QEMU's name here: does what PLAY says, and lives long enough to be seen.
play_qemu() {
	cat <<-'END'
	#!/bin/bash
	log() { printf '%s\n' "$@" >>"$log"; }
	up() { echo '@@vm up'; sleep 0.3; }
	ended() { echo "@@vm exit $1"; }
	complain() { log 'BUG: sleeping function called from invalid context'; }
	int3() { log 'Oops: int3: 0000 [#1] SMP NOPTI' "[ 1.0] Code: 41 89 ca $1 <1f> 44 00 00"; }
	hang() { exec sleep 20; }
	for it; do
		case $it in
		file,id=klog,path=*) log=${it##*path=} ;;
		esac
	done
	: >"$log"
	eval "$PLAY"
	END
}

# ends STATUS PLAY: so tools/vm/run takes what a machine does.
ends() {
	local status=0 limit=60

	case $2 in
	*hang) limit=2 ;;
	esac
	XDG_CACHE_HOME=$dir KERNEL=stock PATH=$dir:$PATH PLAY=$2 \
		tools/vm/run --module none --accel tcg --time $limit tools/vm/guest/true.sh \
		>/dev/null 2>&1 || status=$?
	[ "$status" = "$1" ] || echo "tools/vm/run: status $status, not $1, for: $2"
}

# Nothing of the guest's goes by the name of the emulator, and nothing of the emulator's by
# the name of the guest, whenever it comes.
rule_test_vm_status() {
	local dir base

	dir=$(mktemp -d)
	base=$(XDG_CACHE_HOME=$dir KERNEL=stock bash -c '. tools/env/cache.sh; base_path')
	mkdir -p "$base/modules/usr/lib/modules/7.2.0"
	touch "$base/early.cpio"
	echo 7.2.0 >"$base/release"
	play_qemu >"$dir/qemu-system-x86_64"
	chmod +x "$dir/qemu-system-x86_64"

	ends 0 'up; ended 0'
	ends 7 'up; ended 7'
	ends 124 'up; hang'
	ends 125 'up'
	ends 125 'exit 1'
	ends 126 'up; complain; ended 0'
	# Stale code, and a real trap.
	ends 123 'up; int3 0f'
	ends 123 'up; int3 0f; hang'
	ends 123 'up; ended 0; int3 0f'
	ends 125 'up; complain; int3 0f'
	ends 124 'up; complain; int3 0f; hang'
	ends 126 'up; complain; ended 0; int3 0f'
	ends 125 'up; int3 cc'
	ends 124 'up; int3 cc; hang'
	ends 126 'up; ended 0; int3 cc'
	# The end of QEMU.
	ends 123 'up; exit 1'
	ends 123 'up; kill -KILL $$'
	ends 125 'up; complain; exit 1'
	ends 125 'up; int3 cc; exit 1'
	ends 7 'up; ended 7; exit 1'
	rm -r "$dir"
}

# broken_off TIMES: the emulator fails so often, and then it does not.
broken_off() {
	echo "$((runs += 1))" >"$dir/log"
	[ "$runs" -gt "$1" ] || return 123
	return 7
}

rule_test_emulator_retry() {
	local dir runs times

	dir=$(mktemp -d)
	for times in 0 1 3 4; do
		runs=0
		despite_emulator "$dir/log" broken_off $times >"$dir/said"
		echo "$times: $?, $runs runs, $(grep -c '^once more: ' "$dir/said") said," \
			"$(grep -c '^error: ' "$dir/said") failed, $(cat "$dir"/log* | paste -sd' ')"
	done | diff - <(cat <<-'END'
		0: 7, 1 runs, 0 said, 0 failed, 1
		1: 7, 2 runs, 1 said, 0 failed, 2 1
		3: 7, 4 runs, 3 said, 0 failed, 4 1 2 3
		4: 123, 4 runs, 3 said, 1 failed, 4 1 2 3
		END
	)
	rm -r "$dir"
}
