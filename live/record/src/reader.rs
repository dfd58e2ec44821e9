//! The thread that takes full pages out of the kernel's buffers while a recording runs.
//!
//! It sleeps until the buffer of a CPU is half full. Then it must run before the other half is
//! full too, however busy the machine is, and it must not be a client of the scheduler that is
//! being observed: so it has the lowest real-time priority, where it may. With buffers large enough
//! for the run it never runs, and all pages are read at the end.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use warmq_trace::players;

use warmq_recordings::recording::{CpuPages, Memory};

/// Pages of one piece of memory: pieces are never moved.
const PIECE: usize = 64;
/// How often to look where the kernel cannot wait for half a buffer.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// The buffer of a CPU, and what was taken out of it.
pub(crate) struct Source {
    pub cpu: u16,
    pub file: File,
    pub pieces: Vec<Vec<u8>>,
}

/// How much is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The size of a page.
    pub page: usize,
    /// The most pages of a CPU that are read at once: no more than it has, or the reader might
    /// read its own traces for ever.
    pub pages: usize,
    /// The most bytes that are read while the recording runs. From then on events are lost: the
    /// kernel keeps only the latest.
    pub bytes: usize,
    /// Whether the kernel reports when a buffer is half full.
    pub reports_half: bool,
}

impl Limits {
    /// The most bytes that are kept of the buffers of `cpus` CPUs: what is read while the recording
    /// runs, and what the kernel still has at the end.
    fn most(self, cpus: usize) -> usize {
        let buffers = self.page.saturating_mul(self.pages).saturating_mul(cpus);
        self.bytes.saturating_add(buffers)
    }
}

/// What the thread took.
#[derive(Default)]
struct Taken {
    sources: Vec<Source>,
    /// Whether as many bytes were read as may be.
    full: bool,
}

/// The running thread.
pub(crate) struct Reader {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<Taken>>,
    owner: u32,
}

impl Reader {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread or no descriptor left.
    pub fn start(sources: Vec<Source>, limits: Limits) -> io::Result<Reader> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let stopped = Arc::clone(&stop);
        let run = move || {
            prefer_this_thread();
            let mut sources = sources;
            let full = run(&mut sources, &stopped, limits);
            Taken { sources, full }
        };
        let thread = std::thread::Builder::new().name(players::RECORDER.to_owned());
        Ok(Reader {
            stop,
            thread: Some(thread.spawn(run)?),
            owner: std::process::id(),
        })
    }

    /// Ends the thread, and reads what the kernel still has. Tracing must be off.
    pub fn finish(mut self, limits: Limits) -> io::Result<(Vec<CpuPages>, Memory)> {
        let Taken { mut sources, full } = self.join();
        let most = limits.most(sources.len());
        let mut left = usize::MAX;
        let mut all = Vec::new();
        for source in &mut sources {
            drain(source, limits, usize::MAX, &mut left)?;
            all.push(CpuPages {
                cpu: source.cpu,
                dropped: 0,
                pieces: std::mem::take(&mut source.pieces),
            });
        }
        Ok((all, Memory { most, full }))
    }

    fn join(&mut self) -> Taken {
        // In a forked child there is no such thread.
        let Some(thread) = self
            .thread
            .take()
            .filter(|_| self.owner == std::process::id())
        else {
            return Taken::default();
        };
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        thread.join().unwrap_or_default()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.join();
    }
}

/// Takes pages until it is to stop. True if it stopped because no more bytes may be read.
fn run(sources: &mut [Source], stop: &OwnedFd, limits: Limits) -> bool {
    let mut left = limits.bytes;
    // CPUs that cannot be waited for, such as those that were never online.
    let mut deaf: Vec<bool> = vec![!limits.reports_half; sources.len()];
    while left > 0 {
        let (mut waits, mut of) = (vec![PollFd::new(stop, PollFlags::IN)], Vec::new());
        for (index, source) in sources.iter().enumerate() {
            if !deaf[index] {
                waits.push(PollFd::from_borrowed_fd(source.file.as_fd(), PollFlags::IN));
                of.push(index);
            }
        }
        let timeout = (!limits.reports_half).then_some(&LOOK);
        match poll(&mut waits, timeout) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return false,
            Ok(_) => {}
        }
        let answers: Vec<PollFlags> = waits.iter().map(PollFd::revents).collect();
        if !answers[0].is_empty() {
            return false;
        }
        for (index, answer) in of.into_iter().zip(&answers[1..]) {
            deaf[index] = answer.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
            if answer.contains(PollFlags::IN) {
                // What is wrong now is wrong at the end, too, and reported then.
                let _ = drain(&mut sources[index], limits, limits.pages, &mut left);
            }
        }
        if !limits.reports_half {
            for source in &mut *sources {
                let _ = drain(source, limits, limits.pages, &mut left);
            }
        }
    }
    true
}

/// Takes pages out of a buffer until it is empty, or there are `pages`, or `left` bytes.
fn drain(source: &mut Source, limits: Limits, pages: usize, left: &mut usize) -> io::Result<()> {
    for _ in 0..pages {
        if *left < limits.page {
            *left = 0;
            return Ok(());
        }
        let full = |piece: &Vec<u8>| piece.len() + limits.page > piece.capacity();
        if source.pieces.last().is_none_or(full) {
            source.pieces.push(Vec::with_capacity(PIECE * limits.page));
        }
        let piece = source.pieces.last_mut().expect("one was just made");
        if !read_page(&mut source.file, piece, limits.page)? {
            return Ok(());
        }
        *left -= limits.page;
    }
    Ok(())
}

/// Appends a page to `piece`; false if there is none.
fn read_page(file: &mut File, piece: &mut Vec<u8>, page: usize) -> io::Result<bool> {
    let start = piece.len();
    piece.resize(start + page, 0);
    let mut filled = start;
    while filled < start + page {
        match file.read(&mut piece[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => {
                piece.truncate(start);
                return Err(error);
            }
        }
    }
    if filled == start {
        piece.truncate(start);
    }
    Ok(filled > start)
}

/// Gives this thread the lowest real-time priority, if that is allowed: for one that takes events
/// out of buffers, which must run before they are full.
#[expect(unsafe_code, reason = "a system call that no safe crate here has")]
pub fn prefer_this_thread() {
    // The kernel's `struct sched_param`. musl's own function for it refuses always.
    let lowest: libc::c_int = 1;
    // SAFETY: the pointer is to a value that lives until the call returns, and the kernel only
    // reads it; 0 is the calling thread.
    unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            0,
            libc::SCHED_FIFO,
            &raw const lowest,
        )
    };
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const PAGE: usize = 4096;

    /// Reads a buffer of ten pages, of which `bytes` may be kept while the recording runs.
    fn read(bytes: usize) -> (Vec<CpuPages>, Memory) {
        let path =
            std::env::temp_dir().join(format!("warmq-reader-{}-{bytes}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![7; 10 * PAGE]).unwrap();
        let source = Source {
            cpu: 0,
            file: File::open(&path).unwrap(),
            pieces: Vec::new(),
        };
        std::fs::remove_file(&path).unwrap();
        let limits = Limits {
            page: PAGE,
            pages: 10,
            bytes,
            reports_half: false,
        };
        let reader = Reader::start(vec![source], limits).unwrap();
        while !reader.thread.as_ref().unwrap().is_finished() && bytes < 10 * PAGE {
            std::thread::yield_now();
        }
        reader.finish(limits).unwrap()
    }

    #[test]
    fn a_reader_that_may_keep_no_more_says_so_and_reads_the_rest_at_the_end() {
        let (cpus, memory) = read(4 * PAGE);
        assert!(memory.full);
        assert_eq!(memory.most, 14 * PAGE);
        let kept: usize = cpus[0].pieces.iter().map(Vec::len).sum();
        assert_eq!(kept, 10 * PAGE);
    }

    #[test]
    fn a_reader_with_memory_left_is_not_full() {
        assert!(!read(100 * PAGE).1.full);
    }
}
