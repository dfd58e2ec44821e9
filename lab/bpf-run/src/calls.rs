//! Helpers and kfuncs that need nothing but memory, maps and the clock.

use warmq_bpf::Offer;

use crate::cpumask::{self, Mask};
use crate::ending::Ending;
use crate::graph::{self, Link};
use crate::guest::{Guest, Timer, function_of, map_of};
use crate::kernel::{Access, Kernel};
use crate::maps::error;
use crate::memory::{ARENA, HEAP};

const EFAULT: i64 = 14;
const EBUSY: i64 = 16;
const EINVAL: i64 = 22;

/// A call that never reaches the kernel around the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Local {
    MapLookup,
    MapUpdate,
    MapDelete,
    MapLookupOfCpu,
    Push,
    Pop,
    Peek,
    StorageGet,
    StorageDelete,
    Now,
    Random,
    Cpu,
    ProbeRead,
    ProbeReadText,
    PerCpuPointer,
    ThisCpuPointer,
    TimerInit,
    TimerSetCallback,
    CompareTexts,
    Exchange,
    IterNew,
    IterNext,
    IterDestroy,
    ArenaAllocate,
    ArenaFree,
    ArenaReserve,
    RingOutput,
    RingReserve,
    RingQuery,
    FunctionArgument,
    FunctionReturned,
    Mask(Mask),
    Link(Link),
    /// `bpf_rbtree_add_impl`, in which the interpreter calls the program back.
    TreeAdd,
    /// What the verifier, locks and tracing need, and the lab does not.
    Nothing,
}

impl Local {
    /// Whether it depends on what others do meanwhile, or they on it.
    pub(crate) fn is_shared(self) -> bool {
        let private = matches!(
            self,
            Local::Now
                | Local::Random
                | Local::Cpu
                | Local::PerCpuPointer
                | Local::ThisCpuPointer
                | Local::CompareTexts
                | Local::IterNew
                | Local::IterNext
                | Local::IterDestroy
                | Local::FunctionArgument
                | Local::FunctionReturned
        );
        !private
    }
}

/// Helpers by their numbers in `enum bpf_func_id`.
const HELPERS: &[(u32, Local)] = &[
    (1, Local::MapLookup),
    (2, Local::MapUpdate),
    (3, Local::MapDelete),
    (4, Local::ProbeRead),
    (5, Local::Now),
    (6, Local::Nothing),
    (7, Local::Random),
    (8, Local::Cpu),
    (45, Local::ProbeReadText),
    (87, Local::Push),
    (88, Local::Pop),
    (89, Local::Peek),
    (93, Local::Nothing),
    (94, Local::Nothing),
    (113, Local::ProbeRead),
    (115, Local::ProbeReadText),
    (125, Local::Now),
    (130, Local::RingOutput),
    (131, Local::RingReserve),
    // What was reserved takes its room, whether it is submitted or discarded.
    (132, Local::Nothing),
    (133, Local::Nothing),
    (134, Local::RingQuery),
    (153, Local::PerCpuPointer),
    (154, Local::ThisCpuPointer),
    (156, Local::StorageGet),
    (157, Local::StorageDelete),
    (169, Local::TimerInit),
    (170, Local::TimerSetCallback),
    (177, Local::Nothing),
    (182, Local::CompareTexts),
    (183, Local::FunctionArgument),
    (184, Local::FunctionReturned),
    (194, Local::Exchange),
    (195, Local::MapLookupOfCpu),
    (210, Local::StorageGet),
    (211, Local::StorageDelete),
];

/// `bpf_loop`, which the interpreter runs itself.
const LOOP: u32 = 181;

/// Kfuncs by their names; masks are in [`cpumask`], lists and trees in [`graph`].
const KFUNCS: &[(&str, Local)] = &[
    ("bpf_iter_num_new", Local::IterNew),
    ("bpf_iter_num_next", Local::IterNext),
    ("bpf_iter_num_destroy", Local::IterDestroy),
    ("bpf_arena_alloc_pages", Local::ArenaAllocate),
    ("bpf_arena_free_pages", Local::ArenaFree),
    ("bpf_arena_reserve_pages", Local::ArenaReserve),
    ("bpf_rbtree_add", Local::TreeAdd),
    ("bpf_rbtree_add_impl", Local::TreeAdd),
    ("bpf_stream_vprintk", Local::Nothing),
    ("bpf_stream_vprintk_impl", Local::Nothing),
    ("bpf_rcu_read_lock", Local::Nothing),
    ("bpf_rcu_read_unlock", Local::Nothing),
    ("bpf_preempt_disable", Local::Nothing),
    ("bpf_preempt_enable", Local::Nothing),
];

/// Kinds of maps that there are, as numbers of `enum bpf_map_type`: hash, array, per-CPU array,
/// array of maps, queue, stack, ring buffer, task storage, cgroup storage, arena.
const MAPS: [u32; 10] = [1, 2, 6, 12, 22, 23, 27, 29, 32, 33];

/// What is here without a kernel; whoever runs programs adds its own.
pub fn offered() -> Offer {
    let helpers = HELPERS.iter().map(|(number, _)| *number).chain([LOOP]);
    let kfuncs = KFUNCS.iter().map(|(name, _)| *name);
    let kfuncs = kfuncs.chain(cpumask::KFUNCS.iter().map(|(name, _)| *name));
    let kfuncs = kfuncs.chain(graph::KFUNCS.iter().map(|(name, _)| *name));
    Offer {
        kfuncs: kfuncs.map(str::to_owned).collect(),
        helpers: helpers.collect(),
        maps: MAPS.into_iter().collect(),
        ..Offer::default()
    }
}

pub(crate) fn helper(number: u32) -> Option<Local> {
    let known = HELPERS.iter().find(|(one, _)| *one == number);
    known.map(|(_, local)| *local)
}

pub(crate) fn local(name: &str) -> Option<Local> {
    let masks = cpumask::KFUNCS.iter();
    let masks = masks.map(|(one, mask)| (*one, Local::Mask(*mask)));
    let links = graph::KFUNCS.iter();
    let links = links.map(|(one, link)| (*one, Local::Link(*link)));
    let mut all = KFUNCS.iter().copied().chain(masks).chain(links);
    all.find(|(one, _)| *one == name).map(|(_, local)| local)
}

pub(crate) fn run<K: Kernel>(
    local: Local,
    args: [u64; 5],
    guest: &mut Guest,
    kernel: &mut K,
) -> Result<u64, Ending> {
    let [a, b, c, d, _] = args;
    let cpu = kernel.cpu();
    match local {
        Local::MapLookup => guest.map_lookup(a, b, cpu),
        Local::MapUpdate => guest.map_update(a, b, c, d, cpu),
        Local::MapDelete => guest.map_delete(a, b),
        Local::MapLookupOfCpu => guest.map_lookup(a, b, c as u32),
        Local::Push => guest.queue_push(a, b, c),
        Local::Pop => guest.queue_pop(a, b, false),
        Local::Peek => guest.queue_pop(a, b, true),
        // BPF_LOCAL_STORAGE_GET_F_CREATE
        Local::StorageGet => guest.storage_get(a, b, c, d & 1 != 0),
        Local::StorageDelete => guest.storage_delete(a, b),
        Local::Now => Ok(kernel.now()),
        Local::Random => Ok(kernel.random().into()),
        Local::Cpu => Ok(cpu.into()),
        Local::ProbeRead => probe_read(guest, kernel, a, b, c),
        Local::ProbeReadText => probe_read_text(guest, a, b, c),
        Local::PerCpuPointer => Ok(guest.per_cpu(a, b as u32).unwrap_or(0)),
        Local::ThisCpuPointer => Ok(guest.per_cpu(a, cpu).unwrap_or(0)),
        Local::TimerInit => timer_init(guest, a, b),
        Local::TimerSetCallback => timer_set_callback(guest, a, b),
        Local::CompareTexts => Ok(compare(guest, a, b, c)),
        Local::Exchange => {
            let old = guest.load(a, 8);
            kernel.charge(a, 8, Access::Atomic);
            guest.store(a, 8, b)?;
            Ok(old)
        }
        Local::IterNew => iter_new(guest, a, b as i32, c as i32),
        Local::IterNext => iter_next(guest, a),
        Local::IterDestroy | Local::Nothing => Ok(0),
        Local::ArenaAllocate => arena_allocate(guest, a, b, c),
        Local::ArenaFree => {
            guest.free_pages(b, c);
            Ok(0)
        }
        Local::ArenaReserve => arena_reserve(guest, a, b, c),
        Local::RingOutput => guest.ring_output(a, b, c),
        Local::RingReserve => guest.ring_reserve(a, b),
        Local::RingQuery => guest.ring_query(a, b),
        Local::FunctionArgument => function_argument(guest, a, b, c),
        Local::FunctionReturned => function_returned(guest, a, b),
        Local::Mask(mask) => cpumask::run(mask, args, guest, kernel),
        Local::Link(link) => graph::run(link, args, guest),
        Local::TreeAdd => Err(Ending::Call("bpf_rbtree_add".to_owned())),
    }
}

/// `bpf_get_func_arg(ctx, n, value)`, of a program at a function of the kernel.
fn function_argument(guest: &mut Guest, context: u64, n: u64, value: u64) -> Result<u64, Ending> {
    let n = u64::from(n as u32);
    if n >= guest.arguments {
        return Ok(error(EINVAL));
    }
    let argument = guest.load(context.wrapping_add(8 * n), 8);
    guest.store(value, 8, argument)?;
    Ok(0)
}

/// `bpf_get_func_ret(ctx, value)`: what the function returned comes after its arguments.
fn function_returned(guest: &mut Guest, context: u64, value: u64) -> Result<u64, Ending> {
    let last = guest.arguments.saturating_sub(1);
    let returned = guest.load(context.wrapping_add(8 * last), 8);
    guest.store(value, 8, returned)?;
    Ok(0)
}

/// The most bytes that one call copies.
const MOST_BYTES: u64 = 1 << 20;

fn probe_read<K: Kernel>(
    guest: &mut Guest,
    kernel: &mut K,
    to: u64,
    size: u64,
    from: u64,
) -> Result<u64, Ending> {
    let size = u64::from(size as u32);
    let bytes = guest.bytes(from, size.min(MOST_BYTES)).map(<[u8]>::to_vec);
    let found = bytes.is_some();
    if found {
        kernel.charge(from, size as u32, Access::Load);
    }
    let bytes = bytes.unwrap_or_else(|| vec![0; size.min(MOST_BYTES) as usize]);
    write(guest, to, &bytes)?;
    Ok(if found { 0 } else { error(EFAULT) })
}

/// Copies a text with its 0, which is always written; returns how many bytes that were.
fn probe_read_text(guest: &mut Guest, to: u64, size: u64, from: u64) -> Result<u64, Ending> {
    let size = u64::from(size as u32).min(MOST_BYTES);
    if size == 0 {
        return Ok(0);
    }
    if guest.peek(from, 1).is_none() {
        write(guest, to, &[0])?;
        return Ok(error(EFAULT));
    }
    let bytes = (0..size - 1).map_while(|at| guest.peek(from.wrapping_add(at), 1));
    let mut bytes: Vec<u8> = bytes
        .take_while(|byte| *byte != 0)
        .map(|byte| byte as u8)
        .collect();
    bytes.push(0);
    write(guest, to, &bytes)?;
    Ok(bytes.len() as u64)
}

fn write(guest: &mut Guest, to: u64, bytes: &[u8]) -> Result<(), Ending> {
    let size = bytes.len() as u32;
    let there = guest.bytes_mut(to, size.into());
    there
        .ok_or(Ending::Store { address: to, size })?
        .copy_from_slice(bytes);
    Ok(())
}

/// `bpf_timer_init`: which map's value it is in, the verifier knows.
fn timer_init(guest: &mut Guest, timer: u64, handle: u64) -> Result<u64, Ending> {
    let call = "bpf_timer_init";
    let map = map_of(handle).ok_or(Ending::Argument {
        call,
        address: handle,
        wanted: "map",
    })?;
    if guest.timers.contains_key(&timer) {
        return Ok(error(EBUSY));
    }
    let image = guest.image().clone();
    let map = image.maps.get(map as usize);
    let mut special = map.iter().flat_map(|map| &map.special);
    let timers = special.find(|special| special.kind == warmq_bpf::SpecialKind::Timer);
    let offset = timers.map_or(0, |timer| u64::from(timer.offset));
    let value = timer.wrapping_sub(offset);
    let key = guest.key_of(handle, value)?;
    guest.timers.insert(
        timer,
        Timer {
            function: None,
            map: handle,
            key,
            value,
        },
    );
    Ok(0)
}

fn timer_set_callback(guest: &mut Guest, timer: u64, callback: u64) -> Result<u64, Ending> {
    let call = "bpf_timer_set_callback";
    let wrong = Ending::Argument {
        call,
        address: callback,
        wanted: "function",
    };
    let function = function_of(callback).ok_or(wrong)?;
    let Some(timer) = guest.timers.get_mut(&timer) else {
        return Ok(error(EINVAL));
    };
    timer.function = Some(function);
    Ok(0)
}

/// `bpf_strncmp(text, size, other)`.
fn compare(guest: &Guest, text: u64, size: u64, other: u64) -> u64 {
    for at in 0..u64::from(size as u32).min(MOST_BYTES) {
        let byte = |from: u64| guest.peek(from.wrapping_add(at), 1).unwrap_or(0) as i64;
        let (one, two) = (byte(text), byte(other));
        if one != two || one == 0 {
            return (one - two) as u64;
        }
    }
    0
}

/// `struct bpf_iter_num_kern` has the current number and the end, 4 bytes each.
fn iter_new(guest: &mut Guest, iter: u64, from: i32, to: i32) -> Result<u64, Ending> {
    const E2BIG: i64 = 7;
    /// `BPF_MAX_LOOPS`
    const MOST: i64 = 8 << 20;
    let (result, before, end) = match i64::from(to) - i64::from(from) {
        ..0 => (error(EINVAL), 0, 0),
        0..=MOST => (0, from.wrapping_sub(1), to),
        _ => (error(E2BIG), 0, 0),
    };
    guest.store(iter, 4, before as u64)?;
    guest.store(iter + 4, 4, end as u64)?;
    Ok(result)
}

fn iter_next(guest: &mut Guest, iter: u64) -> Result<u64, Ending> {
    let before = guest.load(iter, 4) as i32;
    let end = guest.load(iter.wrapping_add(4), 4) as i32;
    if i64::from(before) + 1 >= i64::from(end) {
        guest.store(iter, 8, 0)?;
        return Ok(0);
    }
    guest.store(iter, 4, (before + 1) as u64)?;
    Ok(iter)
}

/// How many pages an arena has at most.
fn arena_pages(guest: &Guest, call: &'static str, handle: u64) -> Result<u64, Ending> {
    let map = map_of(handle).and_then(|map| guest.image.maps.get(map as usize));
    let wrong = Ending::Argument {
        call,
        address: handle,
        wanted: "map",
    };
    Ok(map.ok_or(wrong)?.max_entries.into())
}

fn arena_reserve(guest: &mut Guest, handle: u64, from: u64, pages: u64) -> Result<u64, Ending> {
    let most = arena_pages(guest, "bpf_arena_reserve_pages", handle)?;
    let pages = u64::from(pages as u32);
    Ok(match guest.memory.reserve_pages(from, pages, most) {
        _ if pages == 0 => 0,
        Some(true) => 0,
        Some(false) => error(EBUSY),
        None => error(EINVAL),
    })
}

fn arena_allocate(guest: &mut Guest, handle: u64, wanted: u64, pages: u64) -> Result<u64, Ending> {
    let most = arena_pages(guest, "bpf_arena_alloc_pages", handle)?;
    let wanted = (wanted != 0).then_some(wanted);
    let first = guest
        .memory
        .allocate_pages(wanted, u64::from(pages as u32), most);
    debug_assert!(first.is_none_or(|first| first >= ARENA), "below the arena");
    Ok(first.unwrap_or(0))
}

impl Guest {
    /// Where the key of a map's value is, for a timer's callback: of arrays a copy of the index, of
    /// hashes a copy of the key.
    fn key_of(&mut self, handle: u64, value: u64) -> Result<u64, Ending> {
        let key = self.key_bytes(handle, value).unwrap_or_default();
        let address = self.memory.allocate(key.len() as u64)?;
        write(self, address, &key)?;
        debug_assert!(address >= HEAP, "below the heap");
        Ok(address)
    }
}
