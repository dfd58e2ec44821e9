//! The ring buffers, one for each CPU, and what is read of them.

use std::cell::RefCell;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, RingBuffer, RingBufferBuilder, libbpf_sys};
use warmq_record::Gatherer;
use warmq_units::{CpuId, CpuSet};

use crate::refusal::Refusal;

/// The least size of a ring, which is a page of any machine.
const LEAST: u32 = 1 << 16;
/// The bytes before an event in a ring: its time, and how many events were lost before it.
const HEAD: usize = 16;
/// The least that an event takes in a ring.
const SMALLEST: u32 = 32;

/// How many bytes a ring of at least `kib` KiB has.
pub fn size(kib: u32) -> u32 {
    kib.saturating_mul(1024)
        .clamp(LEAST, 1 << 30)
        .next_power_of_two()
}

/// The rings.
pub struct Rings<'g> {
    rings: Vec<(MapHandle, RingBuffer<'g>)>,
    gatherer: &'g RefCell<Gatherer>,
    bytes: u32,
}

impl<'g> Rings<'g> {
    /// Makes a ring of so many bytes for each CPU that is online, and puts them into `outer`.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn make(
        outer: &impl MapCore,
        bytes: u32,
        gatherer: &'g RefCell<Gatherer>,
    ) -> Result<Rings<'g>, Refusal> {
        let mut rings = Vec::new();
        for CpuId(cpu) in online()?.iter() {
            let map = ring(bytes)?;
            let key = u32::from(cpu).to_ne_bytes();
            let fd = map.as_fd().as_raw_fd().to_ne_bytes();
            let put = outer.update(&key, &fd, MapFlags::ANY);
            put.map_err(Refusal::of_bpf("give a CPU its buffer"))?;
            let mut builder = RingBufferBuilder::new();
            let take = move |sample: &[u8]| take(&mut gatherer.borrow_mut(), cpu, sample);
            let added = builder.add(&map, take).map(drop);
            let reader = added.and_then(|()| builder.build());
            let reader = reader.map_err(Refusal::of_bpf("read the buffer of a CPU"))?;
            rings.push((map, reader));
        }
        Ok(Rings {
            rings,
            gatherer,
            bytes,
        })
    }

    /// What becomes readable when one of them is half full.
    pub fn waits(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(|(map, _)| map.as_fd())
    }

    /// All bytes together.
    pub fn bytes(&self) -> usize {
        self.bytes as usize * self.rings.len()
    }

    /// Takes what is in the rings, once around, and no more of each than it can hold, or a reader
    /// might read for ever. True if there may be more.
    ///
    /// While recording, nothing is taken once the gatherer is full.
    pub fn take(&self, ends: bool) -> bool {
        let most = (self.bytes / SMALLEST) as usize;
        let mut more = false;
        for (_, reader) in &self.rings {
            if !ends && self.gatherer.borrow_mut().is_full() {
                return false;
            }
            more |= usize::try_from(reader.consume_raw_n(most)).is_ok_and(|taken| taken == most);
        }
        more
    }
}

/// A ring of so many bytes.
fn ring(bytes: u32) -> Result<MapHandle, Refusal> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let map = MapHandle::create(
        MapType::RingBuf,
        Some("warmq_events"),
        0,
        0,
        bytes,
        &options,
    );
    map.map_err(|error| match error.kind() {
        libbpf_rs::ErrorKind::OutOfMemory | libbpf_rs::ErrorKind::TooBig => Refusal::NoMemory {
            bytes,
            why: error.to_string(),
        },
        _ => Refusal::of_bpf("make a buffer")(error),
    })
}

/// Takes an event out of a CPU's ring.
fn take(gatherer: &mut Gatherer, cpu: u16, sample: &[u8]) -> i32 {
    if let Some((head, event)) = sample.split_first_chunk::<HEAD>() {
        let (time, rest) = head.split_first_chunk().expect("16 bytes");
        let lost = rest.first_chunk().expect("8 bytes");
        gatherer.lost(cpu, u32::from_ne_bytes(*lost).into());
        gatherer.event(cpu, u64::from_ne_bytes(*time), event);
    }
    0
}

/// The CPUs that are online.
fn online() -> Result<CpuSet, Refusal> {
    const PATH: &str = "/sys/devices/system/cpu/online";
    let text = fs::read_to_string(PATH);
    let text = text.map_err(Refusal::system(format!("read {PATH}")))?;
    Ok(text.parse().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_have_a_size_that_the_kernel_takes() {
        assert_eq!(size(1), LEAST);
        assert_eq!(size(8192), 8 << 20);
        assert_eq!(size(5000), 8 << 20);
        assert_eq!(size(u32::MAX), 1 << 30);
    }
}
