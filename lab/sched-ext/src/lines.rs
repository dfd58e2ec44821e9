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
    /// log2 of the bytes of a line, which machines are checked for.
    line_shift: u32,
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
            line_shift: line.max(1).ilog2(),
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
        for line in address >> self.line_shift..=last >> self.line_shift {
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
        let Some(there) = self.place(context, line << self.line_shift) else {
            return;
        };
        context.touch(there, if writes { Access::Write } else { Access::Read });
    }

    fn place(&mut self, context: &mut Context<'_>, address: u64) -> Option<Address> {
        let (window, page) = self.page(address)?;
        let pages = &mut self.windows[window].pages;
        if page >= pages.len() {
            pages.resize(page + 1, None);
        }
        let begins = *pages[page].get_or_insert_with(|| context.data(Bytes(PAGE)));
        Some(Address(begins.0 + address % PAGE))
    }

    /// The window that an address is in, and its page there.
    fn page(&self, address: u64) -> Option<(usize, usize)> {
        // A program's pointer into its arena has the lowest 32 bits only.
        let address = match address >> 32 {
            0 => ARENA | address,
            _ => address,
        };
        let begins = self.windows.iter().map(|window| window.begins);
        let mut begins = begins.enumerate();
        let (window, begins) = begins.find(|(_, begins)| address >> 40 == begins >> 40)?;
        // One before the window is not in it either.
        let page = (address.checked_sub(begins)? / PAGE) as usize;
        (page < MOST_PAGES).then_some((window, page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_beside_all_windows_has_no_line() {
        let lines = Lines::new(64);
        assert_eq!(lines.page(HEAP + PAGE), Some((0, 1)));
        assert_eq!(lines.page(PAGE), lines.page(ARENA + PAGE));
        let end = HEAP + MOST_PAGES as u64 * PAGE;
        // The upper half of a window's bits is before where it begins.
        for address in [
            HEAP - 1,
            end,
            HEAP & !0xff_ffff_ffff,
            u64::MAX,
            FROZEN - PAGE,
        ] {
            assert_eq!(lines.page(address), None, "{address:#x}");
        }
    }
}
