/* SPDX-License-Identifier: GPL-2.0-only */
/* What the BPF program includes under this name is in scx/common.bpf.h here. */
