# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A kernel built here from the suite's source, for when no stock kernel matches
# its compiler: only what the guests need, and still a matter of many minutes.

make_kernel_built() {
	local out=$1 source=/usr/src/linux-source-$KERNEL_SERIES
	mkdir "$out/obj"
	in_obj() { "$env_dir/enter" --obj "$out/obj" "$@"; }

	in_obj make -s -C "$source" O=/obj x86_64_defconfig
	cp "$env_dir/kernel.config" "$out/obj/fragment"
	in_obj "$source/scripts/kconfig/merge_config.sh" -m -O /obj /obj/.config /obj/fragment
	in_obj make -s -C "$source" O=/obj olddefconfig
	grep -q '^CONFIG_RUST=y' "$out/obj/.config" ||
		fail "this toolchain cannot build a kernel with Rust" "run: tools/env/enter make -C $source rustavailable"
	same_wishes "$env_dir/kernel.config" "$out/obj/.config"

	in_obj make -s -C "$source" O=/obj -j"$(nproc)" bzImage modules
	in_obj make -s -C "$source" O=/obj INSTALL_MOD_PATH=/obj/installed modules_install
	in_obj make -s -C "$source" O=/obj kernelrelease >"$out/release"
	mv "$out/obj/installed/lib/modules/$(cat "$out/release")" "$out/modules"
	cp "$out/obj/arch/x86/boot/bzImage" "$out/vmlinuz"
}

# Kconfig drops in silence what it cannot have.
same_wishes() {
	local lost
	lost=$(grep '^CONFIG_' "$1" | grep -vxFf "$2" || true)
	[ -z "$lost" ] || fail "the configuration lost: $(echo "$lost" | paste -sd' ')" "look for what they depend on now, in tools/env/kernel.config"
}
