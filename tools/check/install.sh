# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Tests of tools/install and rpcrdma-check, with planted kernels.

# plant FILE FIELD=VALUE...: makes a module for the kernel 0.1-planted that has only these fields.
plant() {
	mkdir -p "$(dirname "$1")"
	{
		echo '.section .modinfo, "a"'
		printf '.asciz "%s"\n' name=rpcrdma 'vermagic=0.1-planted SMP' "${@:2}"
	} | as -o "$1" -
}

# answers STATUS PATTERN...: runs "tools/install --check" for the planted kernel, and says so if it
# ends with another status, or if no line matches a pattern.
answers() {
	local said status=0 pattern

	depmod -b "$INSTALL_MOD_PATH" 0.1-planted
	[ -z "${STALE-}" ] || cp "$STALE" "$modules/modules.dep.bin"
	said=$(tools/install --check 0.1-planted) || status=$?
	[ "$status" = "$1" ] || printf '%s\n' "the status is $status, not $1, with:" "$said"
	for pattern in "${@:2}"; do
		grep -q "$pattern" <<<"$said" || printf '%s\n' "\"$pattern\" is not in:" "$said"
	done
}

# The package for DKMS tells a build that lacked disk space or memory from a module that does not
# compile for the kernel, and skips the kernel in both cases.
rule_test_pre_build() (
	top=$(mktemp -d)
	cp tools/package/dkms/{pre-build,refuse.sh} "$top/"
	sed -i "s|^cache=.*|cache=$top|" "$top/refuse.sh"
	mkdir "$top/0.1-planted"
	printf '#!/bin/sh\n' >"$top/metadata"
	refused() { # LINE PATTERN
		printf '#!/bin/sh\necho "%s"\nexit 1\n' "$1" >"$top/build"
		chmod +x "$top/metadata" "$top/build"
		"$top/pre-build" 0.1-planted /nonexistent >"$top/said" 2>&1
		[ $? -eq 77 ] || echo "the kernel is not skipped: $(cat "$top/said")"
		grep -q "$2" "$top/0.1-planted.refused" || echo "\"$2\" is not in: $(cat "$top/said")"
	}
	refused 'error: failed to write x: No space left on device (os error 28)' \
		'lacked disk space or memory: .*No space left on device'
	refused 'LLVM ERROR: out of memory' 'lacked disk space or memory'
	refused 'error[E0432]: unresolved import' 'does not compile for kernel 0.1-planted'
	# The reason cannot be written, and an incomplete tree takes room.
	rm "$top/0.1-planted.refused"
	mkdir -p "$top/0.1-planted.refused" "$top"/0.1-planted/{source,obj}
	"$top/pre-build" 0.1-planted /nonexistent >"$top/said" 2>&1
	[ $? -eq 77 ] || echo "a full disk fails the kernel's installation: $(cat "$top/said")"
	[ ! -e "$top/0.1-planted/source" ] || echo "an incomplete tree is kept"
	"$top/pre-build" 0.1-planted /nonexistent >/dev/full 2>&1
	[ $? -eq 77 ] || echo "output on a full disk fails the kernel's installation"
	rm "$top/0.1-planted/build.log"
	mkdir "$top/0.1-planted/build.log"
	"$top/pre-build" 0.1-planted /nonexistent >"$top/said" 2>&1
	[ $? -eq 77 ] || echo "a log that cannot be made fails the kernel's installation: $(cat "$top/said")"
	rm -r "$top"
)

# "tools/install --check" says which module modprobe would load, and what to do if that is not the
# one in Rust. tools/install makes modprobe load the module, and refuses one for another kernel.
rule_test_install() (
	top=$(mktemp -d)
	export INSTALL_MOD_PATH=$top/root
	modules=$INSTALL_MOD_PATH/lib/modules/0.1-planted
	c_module=$modules/kernel/net/sunrpc/xprtrdma/rpcrdma.ko
	described='description=RPC/RDMA transports for NFS client and server'
	mkdir -p "$modules"
	touch "$modules"/modules.{order,builtin,builtin.modinfo}
	answers 1 '^kernel 0.1-planted: no rpcrdma module$' 'next: build for this kernel'
	plant "$c_module" intree=Y
	answers 1 '^kernel 0.1-planted: the C module: .*/kernel/net/' 'next: build for this kernel'
	STALE=$top/stale
	cp "$modules/modules.dep.bin" "$STALE"
	plant "$modules/updates/rpcrdma.ko" "$described" version=1.2
	answers 1 ': the C module: ' 'the module in Rust is in .*/updates/rpcrdma.ko, but' 'next: run depmod 0.1-planted'
	STALE=''
	answers 0 '^kernel 0.1-planted: the module in Rust, version 1.2: .*/updates/rpcrdma.ko'
	plant "$modules/updates/rpcrdma.ko" 'description=RDMA stack of a vendor'
	answers 1 'neither this module nor' "next: remove the vendor's RDMA stack"
	rm -r "$modules/updates"
	echo '# CONFIG_RUST is not set' >"$modules/config"
	answers 1 'next: use another kernel: this one is built without Rust'
	printf '%s\n' CONFIG_RUST=y CONFIG_SUNRPC_XPRT_RDMA=y >"$modules/config"
	answers 1 'next: use another kernel: the C module is built into this one'
	rm "$modules/config"

	mkdir -p "$top/tree/tools/package"
	cp -r tools/{install,env,lib} "$top/tree/tools/"
	cp tools/package/rpcrdma-check "$top/tree/tools/package/"
	plant "$top/tree/rpcrdma.ko" "$described" version=1.3
	"$top/tree/tools/install" | diff - <(echo "installed: $modules/updates/rpcrdma.ko")
	answers 0 'version 1.3: .*/updates/rpcrdma.ko'
	INSTALL_MOD_PATH='' "$top/tree/tools/install" 2>&1 |
		grep -q 'the module is built for kernel 0.1-planted, which is not installed here' ||
		echo "a module for another kernel is installed"
	rm -r "$top"
)
