//! Sets of CPUs in guest memory (`struct cpumask`), as the kernel's own code uses them.

use warmq_bpf_run::{Ending, Guest};
use warmq_units::{CpuId, CpuSet};

/// `sizeof(struct cpumask)` with `CONFIG_NR_CPUS` of 8,192.
const BYTES: u64 = 1024;

/// A new, empty mask.
pub(crate) fn allocate(guest: &mut Guest) -> Result<u64, Ending> {
    guest.allocate(BYTES)
}

/// Words that CPUs have.
pub(crate) fn words(guest: &Guest) -> u64 {
    u64::from(guest.cpus().div_ceil(64))
}

pub(crate) fn word(guest: &Guest, mask: u64, at: u64) -> u64 {
    guest.peek(mask.wrapping_add(at * 8), 8).unwrap_or(0) & valid(guest, at)
}

/// Writes a set; `None` is all CPUs.
pub(crate) fn write(guest: &mut Guest, mask: u64, cpus: Option<&CpuSet>) {
    for at in 0..words(guest) {
        let value = cpus.map_or(u64::MAX, |cpus| cpus.word(at as usize));
        let value = value & valid(guest, at);
        // The mask was allocated whole.
        let _ = guest.store(mask + at * 8, 8, value);
    }
}

fn valid(guest: &Guest, at: u64) -> u64 {
    match u64::from(guest.cpus()) - at * 64 {
        left @ 0..64 => (1 << left) - 1,
        _ => u64::MAX,
    }
}

pub(crate) fn contains(guest: &Guest, mask: u64, cpu: CpuId) -> bool {
    let at = u64::from(cpu.0) / 64;
    at < words(guest) && word(guest, mask, at) >> (cpu.0 % 64) & 1 != 0
}

/// Adds or removes a CPU.
pub(crate) fn put(guest: &mut Guest, mask: u64, cpu: CpuId, there: bool) {
    let at = u64::from(cpu.0) / 64;
    let (old, bit) = (word(guest, mask, at), 1 << (cpu.0 % 64));
    let new = if there { old | bit } else { old & !bit };
    let _ = guest.store(mask + at * 8, 8, new);
}

pub(crate) fn is_empty(guest: &Guest, mask: u64) -> bool {
    (0..words(guest)).all(|at| word(guest, mask, at) == 0)
}

/// Whether all CPUs of `mask` are in `other`.
pub(crate) fn is_subset(guest: &Guest, mask: u64, other: u64) -> bool {
    (0..words(guest)).all(|at| word(guest, mask, at) & !word(guest, other, at) == 0)
}

/// The first CPU from `from` on, and then from 0 on, that all masks have.
pub(crate) fn first_of_all(guest: &Guest, masks: &[u64], from: u32) -> Option<CpuId> {
    let all = |at| {
        let words = masks.iter().map(|mask| word(guest, *mask, at));
        words.fold(u64::MAX, |all, one| all & one)
    };
    let count = words(guest);
    let (start, after) = (u64::from(from) / 64, u64::MAX << (from % 64));
    let found = |at: u64, word: u64| {
        (word != 0).then(|| CpuId((at * 64 + u64::from(word.trailing_zeros())) as u16))
    };
    let upwards = (start..count).find_map(|at| {
        let mask = if at == start { after } else { u64::MAX };
        found(at, all(at) & mask)
    });
    upwards.or_else(|| (0..count.min(start + 1)).find_map(|at| found(at, all(at))))
}
