# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Counts instructions in a guest, for tools/bench/run, profile and growth.

# shellcheck source=../env/cache.sh
. tools/env/cache.sh
# shellcheck source=../lib/emulator.sh
. tools/lib/emulator.sh

# build_bench: compiles the guest's program and QEMU's plugin. The plugin is not linked with the
# toolchain's C library, which may be newer than QEMU's.
build_bench() {
	local api=1 compile=(tools/env/enter --src . gcc -O2 -Wall -Wextra)

	! foreign || fail "instructions are counted on amd64 only" "omit FLAVOUR"
	grep -q '^-plugin ' <<<"$(qemu-system-x86_64 -help)" ||
		fail "this QEMU has no plugins" "use one that was configured with --enable-plugins"
	# QEMU 9.0 has ended version 1 of the interface.
	[ "$(qemu-system-x86_64 --version | sed -n 's/.* version \([0-9]*\)\..*/\1/p')" -lt 9 ] || api=2
	mkdir -p out/bench
	"${compile[@]}" -static -o out/bench/operations tools/bench/operations.c
	"${compile[@]}" -shared -fPIC -fvisibility=hidden -nostdlib -DAPI=$api \
		-o out/bench/count.so tools/bench/count.c
}

# What is measured, the guest's program, and further options of tools/vm/run.
rows_file=tools/bench/rows
guest_program=tools/bench/guest.sh
measure_with=()

# measure MODULE NAME DIRECTORY ROW...: runs these rows of $rows_file with the module. Writes
# DIRECTORY/NAME.blocks, NAME.kallsyms and NAME.bench for tools/bench/instructions.py.
measure() {
	local module=$1 name=$2 directory=$3
	shift 3
	echo "$name: measuring in a guest that counts instructions ..." >&2
	rm -rf "$directory/share" "$directory/$name".*
	mkdir -p "$directory/share"
	despite_emulator '' tools/vm/run --icount --module "$module" --time 3000 \
		--share "$directory/share" --plugin "$PWD/out/bench/count.so,to=$directory/$name.blocks" \
		--add out/bench/operations:/operations --add "$rows_file:/rows" \
		--add tools/bench/measure-rows.sh:/measure-rows.sh "${measure_with[@]}" \
		"$guest_program" "$@" >"$directory/$name.log" || {
		tail -n 20 "$directory/$name.log" >&2
		return 1
	}
	mv "$directory/share/kallsyms" "$directory/$name.kallsyms"
	grep '^bench ' "$directory/$name.log" >"$directory/$name.bench"
}

# rows: prints the names of all rows.
rows() { awk '/^[^#]/ { print $1 }' "$rows_file"; }
