//! What connects the outermost caches to each other and to memory.

use warmq_units::{Duration, Instant};

use crate::bus::Timetable;
use crate::counts::BusCounts;
use crate::description::{Coherence, MachineDescription};

/// How far away another cache is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    SameDomain,
    OtherDomain,
    OtherSocket,
}

/// The bus or buses, or the channels to memory of each socket, with their latencies.
pub(crate) struct Links {
    coherence: Coherence,
    memory: Duration,
    // One for the bus; one a socket for several buses, and for a directory's channels.
    timetables: Vec<Timetable>,
    line: Booking,
    address_only: Booking,
}

/// A transaction of one length.
#[derive(Clone, Copy)]
struct Booking {
    takes: Duration,
    slots: u32,
}

impl Links {
    pub(crate) fn new(machine: &MachineDescription) -> Links {
        let (line, address_only) = match machine.coherence {
            Coherence::Bus {
                line_transfer,
                address_only,
                ..
            } => (line_transfer, address_only),
            Coherence::Directory { line_transfer, .. } => (line_transfer, Duration::ZERO),
        };
        let sockets = machine
            .cpus
            .iter()
            .map(|place| usize::from(place.socket) + 1)
            .max();
        let links = match machine.coherence {
            Coherence::Bus { crossing: None, .. } => 1,
            Coherence::Bus { .. } | Coherence::Directory { .. } => sockets.unwrap_or(1),
        };
        let timetable = Timetable::new(line, address_only);
        let booking = |takes| Booking {
            takes,
            slots: timetable.slots(takes),
        };
        Links {
            coherence: machine.coherence,
            memory: machine.memory.latency,
            line: booking(line),
            address_only: booking(address_only),
            timetables: vec![timetable; links],
        }
    }

    /// A line from memory for a CPU of `socket`: how long it takes.
    pub(crate) fn memory_answers(
        &mut self,
        socket: usize,
        now: Instant,
        counts: &mut BusCounts,
    ) -> Duration {
        let wait = self.book(socket, now, self.line, counts);
        counts.waited += wait;
        self.memory + wait
    }

    /// The same on a machine of one CPU if `wanted` is all ones, without a branch on that; if it is
    /// 0, nothing, in no time.
    #[inline(always)]
    pub(crate) fn memory_answers_if(
        &mut self,
        wanted: u64,
        now: Instant,
        counts: &mut BusCounts,
    ) -> Duration {
        let wait = self.timetables[0].book_if(wanted, now, self.line.slots);
        if wait > Duration::ZERO {
            counts.waited += wait;
        }
        counts.busy += Duration(self.line.takes.0 & wanted);
        Duration((self.memory + wait).0 & wanted)
    }

    /// A line for a CPU of `socket` from another cache at `reach`: how long it takes.
    pub(crate) fn cache_answers(
        &mut self,
        socket: usize,
        reach: Reach,
        now: Instant,
        counts: &mut BusCounts,
    ) -> Duration {
        counts.supplied += 1;
        match self.coherence {
            Coherence::Bus { cache_to_cache, .. } => {
                let wait = self.book(socket, now, self.line, counts);
                counts.waited += wait;
                cache_to_cache + wait + self.cross(socket, reach, now, self.line, counts)
            }
            Coherence::Directory { .. } => self.reach(reach),
        }
    }

    /// A CPU of `socket` invalidates a line elsewhere, as far as `reach`: how long it takes.
    pub(crate) fn upgrade(
        &mut self,
        socket: usize,
        reach: Reach,
        now: Instant,
        counts: &mut BusCounts,
    ) -> Duration {
        match self.coherence {
            Coherence::Bus { address_only, .. } => {
                let wait = self.book(socket, now, self.address_only, counts);
                counts.waited += wait;
                address_only + wait + self.cross(socket, reach, now, self.address_only, counts)
            }
            Coherence::Directory { .. } => self.reach(reach),
        }
    }

    /// What `booking` takes longer where it must be heard on the buses of other sockets, which it
    /// occupies then.
    fn cross(
        &mut self,
        socket: usize,
        reach: Reach,
        now: Instant,
        booking: Booking,
        counts: &mut BusCounts,
    ) -> Duration {
        let Coherence::Bus {
            crossing: Some(crossing),
            ..
        } = self.coherence
        else {
            return Duration::ZERO;
        };
        if reach != Reach::OtherSocket {
            return Duration::ZERO;
        }
        let mut longest = Duration::ZERO;
        for other in (0..self.timetables.len()).filter(|other| *other != socket) {
            longest = longest.max(self.book(other, now, booking, counts));
        }
        counts.waited += longest;
        crossing + longest
    }

    /// A victim goes back to memory from `socket`; no CPU waits for it.
    pub(crate) fn write_back(&mut self, socket: usize, now: Instant, counts: &mut BusCounts) {
        self.book(socket, now, self.line, counts);
    }

    /// Memory takes in a line that a cache of `socket` supplied to a reader. On a bus memory
    /// listens to the same transfer; a directory sends the line a second time.
    pub(crate) fn implicit_write_back(
        &mut self,
        socket: usize,
        now: Instant,
        counts: &mut BusCounts,
    ) {
        counts.implicit_write_backs += 1;
        if let Coherence::Directory { .. } = self.coherence {
            self.book(socket, now, self.line, counts);
        }
    }

    /// How long invalidations as far as `reach` take that go along with the fetch of a line by
    /// `socket`: on a bus the fetch itself invalidates every copy.
    pub(crate) fn invalidation(
        &mut self,
        socket: usize,
        reach: Reach,
        now: Instant,
        counts: &mut BusCounts,
    ) -> Duration {
        match self.coherence {
            Coherence::Bus { .. } => self.cross(socket, reach, now, self.address_only, counts),
            Coherence::Directory { .. } => self.reach(reach),
        }
    }

    /// How long it takes to get something from another cache behind a shared one whose own
    /// latency is `shared`.
    pub(crate) fn inner(&self, shared: Duration) -> Duration {
        match self.coherence {
            Coherence::Bus { .. } => shared,
            Coherence::Directory { same_domain, .. } => same_domain,
        }
    }

    fn reach(&self, reach: Reach) -> Duration {
        let Coherence::Directory {
            same_domain,
            other_domain,
            other_socket,
            ..
        } = self.coherence
        else {
            return Duration::ZERO;
        };
        match reach {
            Reach::SameDomain => same_domain,
            Reach::OtherDomain => other_domain,
            Reach::OtherSocket => other_socket,
        }
    }

    fn book(
        &mut self,
        socket: usize,
        now: Instant,
        booking: Booking,
        counts: &mut BusCounts,
    ) -> Duration {
        counts.busy += booking.takes;
        let link = if self.timetables.len() == 1 {
            0
        } else {
            socket
        };
        self.timetables[link].book(now, booking.slots)
    }
}
