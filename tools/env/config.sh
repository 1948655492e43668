# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # every tool sources this file
#
# What the build environment is made of. Suite, kernel series and compiler are
# named here and nowhere else; the point release is whatever the suite offers.

SUITE=forky
KERNEL_SERIES=7.2
KERNEL_FLAVOUR=amd64
COMPILER=gcc

# stock: the distribution's own kernel, with its Rust metadata regenerated.
# built: the same source, built here; slow, but it needs no matching compiler.
# debug: built here with KASAN, lockdep, kmemleak and fault injection, by clang.
KERNEL=${KERNEL:-stock}

# The smallest host toolchain that the host tests accept.
HOST_RUST=1.85
