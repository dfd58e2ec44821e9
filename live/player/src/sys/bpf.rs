//! Maps of BPF that another process has made: arrays, and arrays of each CPU.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use super::checked_long;

const MAP_LOOKUP_ELEM: libc::c_long = 1;
const MAP_GET_FD_BY_ID: libc::c_long = 14;
const OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const READ_ONLY: u64 = 1 << 3;
const ARRAY: u32 = 2;
const PERCPU_ARRAY: u32 = 6;

/// An array, or an array of each CPU.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    /// Its name, of 15 bytes at most.
    pub name: String,
    /// Bytes of a value.
    pub value_size: u32,
    /// How many values an entry has: one, or one of each CPU.
    copies: usize,
}

/// `bpf(2)`. What is not given of its attributes is 0.
fn bpf(command: libc::c_long, attributes: &[u64]) -> io::Result<libc::c_long> {
    let size = size_of_val(attributes);
    // SAFETY: the kernel reads `size` bytes. What they point to is the caller's, and large enough.
    checked_long(unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), size) })
}

impl Map {
    /// The map of this id; there are at most `cpus` CPUs.
    ///
    /// # Errors
    /// It is gone, may not be read, or is no array.
    pub fn open(id: u32, cpus: usize) -> io::Result<Map> {
        let fd = bpf(MAP_GET_FD_BY_ID, &[id.into(), READ_ONLY])?;
        // SAFETY: the kernel has just made it, for the caller alone.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        // Of struct bpf_map_info: type, id, bytes of a key and of a value, entries, flags, a name.
        let mut info = [0_u32; 10];
        let at = fd.as_raw_fd() as u64 | (size_of_val(&info) as u64) << 32;
        bpf(OBJ_GET_INFO_BY_FD, &[at, ptr::from_mut(&mut info) as u64])?;
        let name = info[6..].iter().flat_map(|word| word.to_ne_bytes());
        let name: Vec<u8> = name.take_while(|byte| *byte != 0).collect();
        let copies = match info[0] {
            ARRAY => 1,
            PERCPU_ARRAY => cpus,
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        Ok(Map {
            fd,
            name: String::from_utf8_lossy(&name).into_owned(),
            value_size: info[3],
            copies,
        })
    }

    /// Bytes from one value of an entry to the next.
    pub fn step(&self) -> usize {
        self.value_size.next_multiple_of(8) as usize
    }

    /// The values of the entry `key`.
    ///
    /// # Errors
    /// There is no such entry.
    pub fn values(&self, key: u32) -> io::Result<Vec<u8>> {
        let mut values = vec![0_u8; self.step() * self.copies];
        let pointers = [ptr::from_ref(&key) as u64, values.as_mut_ptr() as u64];
        let map = self.fd.as_raw_fd() as u64;
        bpf(MAP_LOOKUP_ELEM, &[map, pointers[0], pointers[1], 0]).map(|_| values)
    }
}
