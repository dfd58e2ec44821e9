/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The recorder in BPF: a program for each of the kernel's events writes what tracefs would have
 * written of it, into the ring buffer of its CPU. Which events there are, and what is written of
 * each, says src/table.rs.
 */
#include <vmlinux.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "ring.bpf.h"
#include "context.bpf.h"
#include "task.bpf.h"
#include "interrupt.bpf.h"
#include "network.bpf.h"

char _license[] SEC("license") = "GPL";
