//! An HTTP server with a fiber for each connection, on plain or colored stacks: what
//! `bench/colored.py` loads with wrk.
//!
//!     cargo run --release -p warmq-color --example server -- PORT CONNECTIONS [COLORS]
//!
//! Without COLORS the library chooses for so many connections. One thread; epoll wakes fibers.
#![allow(missing_docs, unsafe_code)]

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};

use corosensei::{Coroutine, CoroutineResult, Yielder};
use warmq_color::{Pool, Stack};

const STACK: usize = 64 << 10;
const EVENTS: usize = 256;
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nwarmq\n";

type Fiber = Coroutine<(), (), (), Stack>;

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers = words.iter().map(|word| word.parse::<u64>().ok()).collect();
    let (port, options) = match numbers {
        Some(numbers) => match Vec::as_slice(&numbers) {
            [port, fibers] => (*port, Pool::of_size(STACK).fibers(*fibers)),
            [port, _, colors] => (*port, Pool::of_size(STACK).colors(*colors)),
            _ => return Err("server PORT CONNECTIONS [COLORS]".to_owned()),
        },
        None => return Err("server PORT CONNECTIONS [COLORS]: numbers".to_owned()),
    };
    let pool = options.pool().map_err(|error| error.to_string())?;
    println!("{} colors", pool.coloring().colors());
    let port = u16::try_from(port).map_err(|_| format!("{port} is no port: at most 65535"))?;
    serve(port, &pool).map_err(|error| format!("port {port}: {error}"))
}

fn serve(port: u16, pool: &Pool) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    listener.set_nonblocking(true)?;
    let epoll = Epoll::new()?;
    epoll.add(listener.as_raw_fd())?;
    let mut fibers: BTreeMap<RawFd, Fiber> = BTreeMap::new();
    let mut ready = Vec::with_capacity(EVENTS);
    loop {
        epoll.wait(&mut ready)?;
        for fd in ready.drain(..) {
            if fd == listener.as_raw_fd() {
                accept(&listener, &epoll, pool, &mut fibers)?;
            } else if let Some(fiber) = fibers.get_mut(&fd)
                && let CoroutineResult::Return(()) = fiber.resume(())
            {
                fibers.remove(&fd);
            }
        }
    }
}

/// A fiber for each connection that waits.
fn accept(
    listener: &TcpListener,
    epoll: &Epoll,
    pool: &Pool,
    fibers: &mut BTreeMap<RawFd, Fiber>,
) -> io::Result<()> {
    loop {
        let connection = match listener.accept() {
            Ok((connection, _)) => connection,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        connection.set_nonblocking(true)?;
        connection.set_nodelay(true)?;
        let fd = connection.as_raw_fd();
        let stack = pool.stack().map_err(io::Error::other)?;
        let mut fiber = Coroutine::with_stack(stack, move |yielder, ()| {
            // Whoever breaks a connection ends it.
            let _ = answer(connection, yielder);
        });
        if let CoroutineResult::Yield(()) = fiber.resume(()) {
            fibers.insert(fd, fiber);
            epoll.add(fd)?;
        }
    }
}

/// Answers requests until the connection ends. A request ends with an empty line.
fn answer(mut connection: TcpStream, yielder: &Yielder<(), ()>) -> io::Result<()> {
    let mut read = [0_u8; 1024];
    let mut ends = 0;
    loop {
        let length = until_ready(yielder, || connection.read(&mut read))?;
        if length == 0 {
            return Ok(());
        }
        for byte in &read[..length] {
            ends = match byte {
                b'\n' => ends + 1,
                b'\r' => ends,
                _ => 0,
            };
            if ends == 2 {
                ends = 0;
                let mut rest = ANSWER;
                while !rest.is_empty() {
                    let written = until_ready(yielder, || connection.write(rest))?;
                    rest = &rest[written..];
                }
            }
        }
    }
}

/// Yields for as long as `call` would block.
fn until_ready<T>(
    yielder: &Yielder<(), ()>,
    mut call: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => yielder.suspend(()),
            answer => return answer,
        }
    }
}

/// An epoll that lives as long as the program.
struct Epoll(RawFd);

impl Epoll {
    fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers.
        let fd = unsafe { libc::epoll_create1(0) };
        if fd < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(Epoll(fd))
        }
    }

    /// Waits for input on `fd` until it is closed.
    fn add(&self, fd: RawFd) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: fd as u64,
        };
        // SAFETY: the event lives for the call.
        match unsafe { libc::epoll_ctl(self.0, libc::EPOLL_CTL_ADD, fd, &raw mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Those that have input.
    fn wait(&self, ready: &mut Vec<RawFd>) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        // SAFETY: there are EVENTS events to write.
        let count = unsafe { libc::epoll_wait(self.0, events.as_mut_ptr(), EVENTS as i32, -1) };
        match usize::try_from(count) {
            Ok(count) => ready.extend(events[..count].iter().map(|event| event.u64 as RawFd)),
            Err(_) if io::Error::last_os_error().kind() == ErrorKind::Interrupted => {}
            Err(_) => return Err(io::Error::last_os_error()),
        }
        Ok(())
    }
}
