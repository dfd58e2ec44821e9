//! Pipes of Linux 6: rings of pages. A write adds what is no whole page to the last page, if that
//! has room for all of it, and takes new pages for the rest. A page is free when all that was
//! written to it is read, and only that lets a writer go on (`anon_pipe_write()`,
//! `anon_pipe_read()`).

use warmq_units::Bytes;

use crate::core::net::{Datagram, Endpoint, PAGE};

impl Endpoint {
    /// How much of `left` bytes can be written now.
    pub(crate) fn room_in_pages(&self, left: u64) -> u64 {
        let free = self.capacity - PAGE * self.queued.len() as u64;
        match self.queued.back() {
            Some(last) if has_room(last, left % PAGE) => left.min(left % PAGE + free),
            _ => left.min(free),
        }
    }

    /// A writer begins to write `bytes`, for which there is room.
    pub(crate) fn write_to_pages(&mut self, bytes: u64) {
        let (rest, mut left) = (bytes % PAGE, bytes);
        if let Some(last) = self.queued.back_mut().filter(|last| has_room(last, rest)) {
            last.bytes.0 += rest;
            last.true_size += rest;
            left -= rest;
        }
        while left > 0 {
            let written = left.min(PAGE);
            left -= written;
            let page = Datagram::local(Bytes(written), written);
            self.queued.push_back(page);
        }
        self.queued_true += bytes;
    }

    /// A reader has taken `bytes`, or a writer that had to wait has written. Returns whether one of
    /// the writers that wait is woken: a reader does so if all pages were in use, and a writer if
    /// not all are.
    pub(crate) fn frees_page(&mut self, bytes: u64) -> bool {
        let full = |end: &Endpoint| end.room_in_pages(PAGE) == 0;
        let was_full = bytes == 0 || full(self);
        self.pop(bytes);
        was_full && !full(self)
    }
}

/// Whether `bytes` more fit into a page.
fn has_room(page: &Datagram, bytes: u64) -> bool {
    page.true_size + bytes <= PAGE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::net::Peer;
    use crate::words::Region;

    fn pipe() -> Endpoint {
        Endpoint::new(Peer::None, Region::default(), Bytes(2 * PAGE))
    }

    /// Writes until there is no room; returns how many writes that were.
    fn fill(pipe: &mut Endpoint, each: u64) -> u64 {
        let mut writes = 0;
        while pipe.room_in_pages(each) == each {
            pipe.write_to_pages(each);
            writes += 1;
        }
        writes
    }

    #[test]
    fn writes_share_a_page_as_far_as_they_fit_there_whole() {
        for (each, writes) in [(100, 80), (1_000, 8), (2_049, 2), (4_096, 2), (8_192, 1)] {
            assert_eq!(fill(&mut pipe(), each), writes, "{each}");
        }
        let mut pipe = pipe();
        pipe.write_to_pages(100);
        assert_eq!(pipe.room_in_pages(5_000), 5_000, "904 and a page");
        assert_eq!(pipe.room_in_pages(10_000), 1_808 + PAGE);
        assert_eq!(pipe.room_in_pages(8_100), PAGE, "4,004 do not fit");
    }

    #[test]
    fn a_writer_can_go_on_when_a_page_is_empty() {
        let mut pipe = pipe();
        fill(&mut pipe, 100);
        let woken: Vec<_> = (1..=80).filter(|_| pipe.frees_page(100)).collect();
        assert_eq!(woken, [40], "the first page; then the pipe is not full");
        fill(&mut pipe, 100);
        assert!(!pipe.frees_page(0), "a writer leaves no page");
        pipe.frees_page(4_000);
        assert!(pipe.frees_page(0), "it leaves one");
    }
}
