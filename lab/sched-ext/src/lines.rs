//! Which lines of the simulated caches guest memory is on.
//!
//! Invariant: a page of guest memory is on the same lines of the machine for ever. Pages get theirs
//! when they are first accessed, from kernel data that is never freed.

use warmq_bpf_run::{ARENA, Access as BpfAccess, FROZEN, HEAP, PAGE};
use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::{Address, Bytes};

use crate::attach::MEMORY;

/// Lines that a callback has accessed lately: a host's level 1 has them, and the costs of
/// instructions include that.
const RECENT: usize = 16;

/// Pages of a window for which there are lines: as much as a program's memory may be. An address
/// beyond is one of no memory, and ends the program when it is written.
const MOST_PAGES: usize = (MEMORY / PAGE) as usize;

/// A window of guest memory.
#[derive(Clone, Debug, Default)]
struct Window {
    begins: u64,
    pages: Vec<Option<Address>>,
}

/// Where guest memory is in the machine's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    windows: [Window; 3],
    line: u64,
    /// Lines as guest addresses, and whether they were written.
    recent: [(u64, bool); RECENT],
}

impl Lines {
    /// Of a machine with lines of `line` bytes.
    pub(crate) fn new(line: u64) -> Lines {
        let window = |begins| Window {
            begins,
            pages: Vec::new(),
        };
        Lines {
            windows: [HEAP, FROZEN, ARENA].map(window),
            line: line.max(1),
            recent: [(u64::MAX, false); RECENT],
        }
    }

    /// A callback begins: level 1 may have lost what the last one accessed.
    pub(crate) fn begin(&mut self) {
        self.recent = [(u64::MAX, false); RECENT];
    }

    /// An access of `size` bytes at `address`, whose lines the CPU of `context` waits for.
    pub(crate) fn access(
        &mut self,
        context: &mut Context<'_>,
        address: u64,
        size: u32,
        access: BpfAccess,
    ) {
        let last = address.saturating_add(u64::from(size.max(1)) - 1);
        for line in address / self.line..=last / self.line {
            self.access_line(context, line, access);
        }
    }

    fn access_line(&mut self, context: &mut Context<'_>, line: u64, access: BpfAccess) {
        let writes = access != BpfAccess::Load;
        let recent = &mut self.recent[line as usize % RECENT];
        if recent.0 == line && (recent.1 || !writes) && access != BpfAccess::Atomic {
            return;
        }
        *recent = (line, writes);
        let Some(there) = self.place(context, line * self.line) else {
            return;
        };
        context.touch(there, if writes { Access::Write } else { Access::Read });
    }

    fn place(&mut self, context: &mut Context<'_>, address: u64) -> Option<Address> {
        // A program's pointer into its arena has the lowest 32 bits only.
        let address = match address >> 32 {
            0 => ARENA | address,
            _ => address,
        };
        let mut windows = self.windows.iter_mut();
        let window = windows.find(|window| address >> 40 == window.begins >> 40)?;
        let offset = address - window.begins;
        let page = (offset / PAGE) as usize;
        if page >= MOST_PAGES {
            return None;
        }
        if page >= window.pages.len() {
            window.pages.resize(page + 1, None);
        }
        let begins = *window.pages[page].get_or_insert_with(|| context.data(Bytes(PAGE)));
        Some(Address(begins.0 + offset % PAGE))
    }
}
