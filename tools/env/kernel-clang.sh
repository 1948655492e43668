# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Recipe for a kernel tree that clang has prepared, as "make KDIR=<tree> LLVM=1" finds one. It has no
# kernel and no Module.symvers: KERNEL=clang only compiles the module.

make_kernel_clang() {
	local obj=$1/obj source=/usr/src/linux
	in_clang_tree() { "$env_dir/enter" --obj "$obj" "$@"; }
	make_clang_tree() { in_clang_tree make -s -C "$source" O=/obj LLVM=1 "$@"; }

	mkdir "$obj"
	make_clang_tree x86_64_defconfig
	(cd "$env_dir" && last_wishes kernel.config ${SOURCE:+kernel-older.config}) >"$obj/fragment"
	in_clang_tree "$source/scripts/kconfig/merge_config.sh" -m -O /obj /obj/.config /obj/fragment
	make_clang_tree olddefconfig
	grep -q '^CONFIG_RUST=y' "$obj/.config" ||
		fail "this toolchain cannot build a kernel with Rust" "run: tools/env/enter make -C $source LLVM=1 rustavailable"
	make_clang_tree -j"$(nproc)" prepare modules_prepare
	make_clang_tree kernelrelease >"$1/release"
}
