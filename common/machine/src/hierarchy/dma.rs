//! Lines that a device writes.

use super::{Access, Hierarchy, Request};
use crate::cache::{Line, LineState};
use crate::counts::Transaction;
use warmq_units::{Address, Instant};

/// The CPU whose last-level cache is taken to be near the devices.
const NEAR_DEVICES: usize = 0;

impl Hierarchy {
    /// A device writes the whole line of `address` at `at`; no CPU waits for it.
    ///
    /// Every cache gives the line up, modified data included, since all of it is overwritten. The
    /// new data goes to memory, over the bus or the channel of the first socket; or, where the
    /// machine says [`dma_into_llc`](crate::MemoryDescription::dma_into_llc), into the last-level
    /// cache of CPU 0, where it is then modified.
    ///
    /// # Panics
    /// As [`Hierarchy::access`].
    pub fn dma_write(&mut self, address: Address, at: Instant) {
        let line = self.line_of(address);
        self.find_all(line);
        self.invalidate_found(line);
        if self.dma_into_llc {
            self.dma_into_llc(line, address, at);
        } else {
            self.counts.note(Transaction::DmaWrite, address);
            let socket = usize::from(self.shape.cpus[NEAR_DEVICES].socket);
            self.links.write_back(socket, at, &mut self.counts.bus);
        }
    }

    fn dma_into_llc(&mut self, line: Line, address: Address, now: Instant) {
        self.counts.dma_into_llc += 1;
        // The CPU whose cache takes the line in, for whom the room is made.
        let request = Request {
            cpu: NEAR_DEVICES,
            line,
            address,
            access: Access::Write,
            now,
        };
        let path = &self.shape.paths[NEAR_DEVICES];
        let cache = path[path.len() - 1];
        self.evict_into(cache, line, LineState::Modified, request);
    }
}
