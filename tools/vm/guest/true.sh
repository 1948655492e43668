#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# A guest that came this far works.
exit 0
