# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Recipe for a kernel built from the suite's source or from SOURCE, with only what the
# guests need. Takes many minutes. KERNEL=built is for when the stock kernel's compiler is
# not to be had, and for kernels that no suite has; KERNEL=debug adds KASAN, lockdep and
# the other checkers, for "make test-debug".
#
# The cache key covers code, not comments (recipe in cache.sh).

make_kernel_built() {
	build_kernel "$1" '' kernel.config ${SOURCE:+kernel-older.config}
}

make_kernel_debug() {
	build_kernel "$1" LLVM=1 kernel.config ${SOURCE:+kernel-older.config} kernel-debug.config
}

# A tree that clang has prepared, as "make KDIR=<tree> LLVM=1" finds one, without a kernel and without
# Module.symvers: KERNEL=clang only compiles the module.
make_kernel_clang() {
	local out=$1 compiler=LLVM=1
	configure_kernel kernel.config ${SOURCE:+kernel-older.config}
	make_in_obj -j"$(nproc)" prepare modules_prepare
	make_in_obj kernelrelease >"$out/release"
}

# build_kernel OUT COMPILER FRAGMENT...
build_kernel() {
	local out=$1 compiler=$2
	configure_kernel "${@:3}"
	make_in_obj -j"$(nproc)" bzImage modules
	make_in_obj INSTALL_MOD_PATH=/obj/installed modules_install
	make_in_obj kernelrelease >"$out/release"
	mv "$out/obj/installed/lib/modules/$(cat "$out/release")" "$out/modules"
	cp "$out/obj/arch/x86/boot/bzImage" "$out/vmlinuz"
}

# The caller of these functions sets $out, and $compiler.
in_obj() { "$env_dir/enter" --obj "$out/obj" "$@"; }
# shellcheck disable=SC2086 # no compiler, no argument
make_in_obj() { in_obj make -s -C /usr/src/linux O=/obj $compiler "$@"; }

# configure_kernel FRAGMENT...: later fragments override earlier ones.
configure_kernel() {
	mkdir "$out/obj"
	make_in_obj x86_64_defconfig
	(cd "$env_dir" && last_wishes "$@") >"$out/obj/fragment"
	in_obj /usr/src/linux/scripts/kconfig/merge_config.sh -m -O /obj /obj/.config /obj/fragment
	make_in_obj olddefconfig
	grep -q '^CONFIG_RUST=y' "$out/obj/.config" ||
		fail "this toolchain cannot build a kernel with Rust" "run: tools/env/enter make -C /usr/src/linux $compiler rustavailable"
	same_wishes "$out/obj/fragment" "$out/obj/.config"
}

# last_wishes FRAGMENT...: prints one line for each option; the last fragment that sets
# the option wins.
last_wishes() {
	awk '{ name = "" }
		/^CONFIG_/ { name = substr($0, 1, index($0, "=") - 1) }
		/^# CONFIG_.* is not set$/ { name = $2 }
		name != "" { said[name] = $0 }
		END { for (name in said) print said[name] }' "$@"
}

# same_wishes FRAGMENT CONFIG: fails if CONFIG lacks an option of FRAGMENT. Kconfig drops
# options with unmet dependencies without a message.
same_wishes() {
	local lost
	lost=$(grep '^CONFIG_' "$1" | grep -vxFf "$2" || true)
	[ -z "$lost" ] || [ -z "${SOURCE-}" ] || lost=$(options_in_source <<<"$lost")
	[ -z "$lost" ] || fail "the configuration lost: $(echo "$lost" | paste -sd' ')" "look for what they depend on now, in tools/env/kernel*.config"
}

# options_in_source: copies lines of a configuration, without the options that SOURCE does not have:
# the options of kernel.config are those of the suites' kernels, and SOURCE may be older.
options_in_source() {
	local line name
	while read -r line; do
		name=${line#CONFIG_}
		if grep -rqE --include='Kconfig*' "^[[:space:]]*(menu)?config ${name%%=*}\$" "$(source_path)"; then
			echo "$line"
		else
			echo "this source has no $line" >&2
		fi
	done
}
