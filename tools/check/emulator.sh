# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Tests of the programs that judge how a guest ended. They need neither QEMU nor a guest.

# tools/vm/stale-code recognises an int3 Oops at an address whose breakpoint the kernel has removed:
# an emulator bug. An int3 Oops at a breakpoint and all other Oopses are the kernel's.
rule_test_stale_code() {
	local dir before='Oops: int3: 0000 [#1] SMP NOPTI' code='[    1.0] Code: 41 89 ca'

	dir=$(mktemp -d)
	printf '%s\n' "$before" "$code 0f <1f> 44 00 00" 'Code: 18 c3 cc <48>' >"$dir/stale"
	printf '%s\n' "$before" "$code cc <1f> 44 00 00" >"$dir/trap"
	printf '%s\n' 'Oops: 0002 [#1] SMP NOPTI' "$code 0f <1f> 44 00 00" >"$dir/oops"
	tools/vm/stale-code "$dir/stale" || echo "tools/vm/stale-code misses stale code"
	! tools/vm/stale-code "$dir/trap" || echo "tools/vm/stale-code reports a breakpoint as stale code"
	! tools/vm/stale-code "$dir/oops" || echo "tools/vm/stale-code reports an Oops without int3"
	rm -r "$dir"
}

# tools/vm/scan-log reports signs of a bug, but not the names of tests, which may contain such words.
rule_test_scan_log() {
	local log

	log=$(mktemp)
	printf '%s\n' '[    1.0] NFSD: no clients' '[    2.0] selftest 12 34: mounts leak nothing' >"$log"
	tools/vm/scan-log "$log"
	echo '[    3.0] rpcrdma: 12 objects leaked' >>"$log"
	! tools/vm/scan-log "$log" 2>/dev/null || echo "tools/vm/scan-log misses a leak"
	# Messages of this module are complaints, except those of log-allow, and those of a time when
	# a selftest judges them.
	printf '%s\n' '[    1.0] rpcrdma: RPC/RDMA transports in Rust, version 0.1.0' \
		'[    2.0] selftest 12 34: listens' '[    3.0] rpcrdma: cannot listen' \
		'[    4.0] selftest 12 34 ends' >"$log"
	tools/vm/scan-log "$log"
	echo '[    5.0] rpcrdma: cannot listen' >>"$log"
	tools/vm/scan-log "$log" 2>&1 | grep -c 'cannot listen' | grep -qx 3 ||
		echo "tools/vm/scan-log misses a message of the module"
	# A report of rxe's race is dropped as a whole, but not what is within or behind it.
	printf '%s\n' '[    1.0] ------------[ cut here ]------------' \
		'[    2.0] WARNING: drivers/infiniband/sw/rxe/rxe_task.c:38 at rxe_sched_task+0x97/0xa0' \
		'[    3.0] Call Trace:' '[    4.0] ---[ end trace 0000000000000000 ]---' >"$log"
	tools/vm/scan-log "$log"
	sed 's/^.*Call Trace:$/[    3.0] BUG: sleeping/' "$log" >"$log.within"
	! tools/vm/scan-log "$log.within" 2>/dev/null || echo "tools/vm/scan-log misses a BUG within a report"
	sed 's/rxe_sched_task/rxe_other_task/' "$log" >"$log.other"
	! tools/vm/scan-log "$log.other" 2>/dev/null || echo "tools/vm/scan-log misses another report of rxe"
	echo '[    5.0] Call Trace:' >>"$log"
	! tools/vm/scan-log "$log" 2>/dev/null || echo "tools/vm/scan-log misses a trace behind a report"
	rm "$log" "$log".*
}

# After a failure of the emulator a suite starts again: tools/test/count counts the results of the
# last run, and the failures of all runs.
rule_test_count() {
	local dir

	dir=$(mktemp -d)
	printf '%s\n' 1..3 'ok 1 - a' 'not ok 2 - b' 'retry: so' 1..3 'ok 1 - a' \
		'ok 2 - b' 'ok 3 - c' >"$dir/suite"
	tools/test/count "$dir" suite | tail -n 1 | diff - <(echo '3 passed, 1 failed')
	# The second run has no plan.
	printf '%s\n' 1..3 'ok 1 - a' 'retry: so' 'ok 1 - a' >"$dir/suite"
	tools/test/count "$dir" suite | tail -n 1 | diff - <(echo '1 passed, 1 failed')
	# Each result that is not planned is a failure, in a group of the probe as well.
	printf '%s\n' 1..1 'ok 1 - a' 'ok 2 - b' 'ok 3 - c # SKIP d' >"$dir/suite"
	tools/test/count "$dir" suite | tail -n 1 | diff - <(echo '2 passed, 2 failed')
	printf '%s\n' '# group a, x' 1..1 'ok 1 - a' '# group b, x' 1..1 'ok 1 - b' 'ok 2 - c' >"$dir/suite"
	tools/test/count "$dir" suite | tail -n 1 | diff - <(echo '3 passed, 1 failed')
	# A group of the probe prints the same plan in each guest. A suite without output has failed.
	printf '%s\n' '# group a, x' 1..2 'ok 1 - a' '# group a, x' 1..2 'ok 2 - b' >"$dir/suite"
	tools/test/count "$dir" suite gone | tail -n 1 | diff - <(echo '2 passed, 1 failed')
	# A complaint of the kernel is one failure, and names the first line.
	printf '%s\n' 1..1 'ok 1 - a' 'kernel log not clean:' '    [ 1.0] BUG: b' '    [ 1.0] c' >"$dir/suite"
	tools/test/count "$dir" suite | diff - <(printf '%s\n' \
		'failed  suite: kernel log not clean: [ 1.0] BUG: b' '1 passed, 1 failed')
	# A failed test is printed with its reason, a later one without that.
	printf '%s\n' 1..3 '# FAIL: no a' '# trace' 'not ok 1 - a' '# b' 'not ok 2 - b' 'not ok 3 - c' \
		>"$dir/suite"
	tools/test/count "$dir" suite | diff - <(printf '%s\n' 'failed  suite: not ok 1 - a # FAIL: no a' \
		'failed  suite: not ok 2 - b # b' 'failed  suite: not ok 3 - c' '0 passed, 3 failed')
	rm -r "$dir"
}

# tools/mutants/failed-test tells a test that failed from tests that did not run.
rule_test_mutants() {
	local status what lines found got
	while IFS='|' read -r status what lines; do
		got=0
		found=$(tr ';' '\n' <<<"$lines" | tools/mutants/failed-test) || got=$?
		[ "$got $found" = "$status $what" ] ||
			echo "tools/mutants/failed-test: $got $found, not $status $what, of: $lines"
	done <<-'END'
		0||1..2;ok 1 - a;ok 2 - b;kernel log is clean
		0|a b|1..2;not ok 1 - a b;not ok 2 - c
		0|the kernel complained|1..1;ok 1 - a;kernel log not clean:
		0|the guest died|1..2;error: the guest died while it ran the script
		1||error: the guest did not reach user space; above is the end of its kernel log
		1||error: the guest died while it ran the script
		1||Bail out! no test bed: modprobe: ERROR: could not insert 'rpcrdma'
		1||1..0 # SKIP the device has no memory
		1||1..1;ok 1 - a # SKIP needs a link
		1||kernel log not clean:
		0||1..1;not ok 1 - a;retry: the emulator failed;1..1;ok 1 - a
		1||1..1;not ok 1 - a;retry: the emulator failed
	END
}

# A script in place of QEMU. It runs the commands in $PLAY, some of which write the kernel log.
fake_qemu() {
	cat <<-'END'
	#!/bin/bash
	log() { printf '%s\n' "$@" >>"$log"; }
	up() { echo '@@vm up'; sleep 0.3; }
	ended() { echo "@@vm exit $1"; }
	complain() { log 'BUG: sleeping function called from invalid context'; }
	int3() { log 'Oops: int3: 0000 [#1] SMP NOPTI' "[ 1.0] Code: 41 89 ca $1 <1f> 44 00 00"; }
	hang() { exec sleep 60; }
	for argument; do
		case $argument in
		file,id=klog,path=*) log=${argument##*path=} ;;
		esac
	done
	: >"$log"
	eval "$PLAY"
	END
}

# Makes an environment in $dir, with the script above in place of QEMU.
fake_environment() {
	local base

	base=$(XDG_CACHE_HOME=$dir KERNEL=stock bash -c '. tools/env/cache.sh; base_path')
	mkdir -p "$base/modules/usr/lib/modules/7.2.0"
	touch "$base/early.cpio"
	echo 7.2.0 >"$base/release"
	fake_qemu >"$dir/qemu-system-x86_64"
	chmod +x "$dir/qemu-system-x86_64"
}

# expect_status STATUS PLAY: runs tools/vm/run with the script above in place of QEMU.
expect_status() {
	local status=0 limit=60

	case $2 in
	*hang) limit=6 ;;
	esac
	XDG_CACHE_HOME=$dir KERNEL=stock PATH=$dir:$PATH PLAY=$2 \
		tools/vm/run --module none --accel tcg --time $limit tools/vm/guest/true.sh \
		>/dev/null 2>&1 || status=$?
	[ "$status" = "$1" ] || echo "tools/vm/run: exit status $status, expected $1, for: $2"
}

# tools/vm/run exits with 123 for failures of the emulator, and only for those: a kernel that
# complained before the emulator failed is reported as such.
rule_test_vm_status() {
	local dir

	dir=$(mktemp -d)
	fake_environment

	expect_status 0 'up; ended 0'
	expect_status 7 'up; ended 7'
	expect_status 124 'up; hang'
	expect_status 125 'up'
	expect_status 125 'exit 1'
	expect_status 126 'up; complain; ended 0'
	# Stale code (the byte before the trap is not 0xcc), then an int3 at a breakpoint.
	expect_status 123 'up; int3 0f'
	expect_status 123 'up; int3 0f; hang'
	expect_status 123 'up; ended 0; int3 0f'
	expect_status 125 'up; complain; int3 0f'
	expect_status 124 'up; complain; int3 0f; hang'
	expect_status 126 'up; complain; ended 0; int3 0f'
	expect_status 125 'up; int3 cc'
	expect_status 124 'up; int3 cc; hang'
	expect_status 126 'up; ended 0; int3 cc'
	# QEMU fails.
	expect_status 123 'up; exit 1'
	expect_status 123 'up; kill -KILL $$'
	expect_status 125 'up; complain; exit 1'
	expect_status 125 'up; int3 cc; exit 1'
	expect_status 7 'up; ended 7; exit 1'
	rm -r "$dir"
}

# Without --accel, tools/vm/run tries KVM once for each kernel and boot of the machine, and remembers
# the result. Without the device it tries nothing. Each line: the device, whether a boot under KVM
# succeeds, and the accelerators of all boots of two runs.
rule_test_choose_accel() {
	local dir device works

	dir=$(mktemp -d)
	fake_environment
	: >"$dir/kvm"
	while read -r device works _; do
		rm -rf "$dir/rpcrdma/records" "$dir/boots"
		for _ in 1 2; do
			# shellcheck disable=SC2016 # expanded by the fake QEMU
			XDG_CACHE_HOME=$dir KERNEL=stock PATH=$dir:$PATH KVM_DEVICE=$dir/$device VM_ACCEL='' \
				BOOTS=$dir/boots WORKS=$works PLAY='
				accel=$(sed "s/.*-accel \([a-z]*\).*/\1/" <<<"$*")
				echo "$accel" >>"$BOOTS"
				[ "$accel $WORKS" != "kvm no" ] || exit 1
				up; ended 0' \
				tools/vm/run --module none --time 60 tools/vm/guest/true.sh >/dev/null 2>&1 ||
				echo "tools/vm/run failed"
		done
		echo "$device $works $(paste -sd' ' "$dir/boots")"
	done <<-'END' | diff - <(printf '%s\n' 'kvm yes kvm kvm kvm' 'kvm no kvm tcg tcg' 'nothing yes tcg tcg')
		kvm yes
		kvm no
		nothing yes
	END
	rm -r "$dir"
}

# fail_first TIMES: returns 123, the status of an emulator failure, in the first TIMES calls, then 7.
fail_first() {
	echo "$((runs += 1))" >"$dir/log"
	[ "$runs" -gt "$1" ] || return 123
	return 7
}

# despite_emulator repeats a command at most three times, and keeps the log of each failed run.
rule_test_emulator_retry() {
	local dir runs times

	dir=$(mktemp -d)
	for times in 0 1 3 4; do
		runs=0
		despite_emulator "$dir/log" fail_first $times >"$dir/said"
		echo "$times: $?, $runs runs, $(grep -c '^retry: ' "$dir/said") said," \
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
