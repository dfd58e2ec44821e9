//! Listens to a guest until it ends or is killed.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::VmError;
use crate::console::Console;
use crate::delay;
use crate::guest::Stage;
use crate::outcome::{Ending, Outcome};
use crate::qemu::Qemu;

/// Bytes taken from a port at a time.
const CHUNK: usize = 64 * 1024;
/// How long a stream must be silent to count as complete if `/init` could not count its bytes.
const SILENCE: Duration = Duration::from_millis(500);

/// Where the command's output goes.
pub struct Streams<'a> {
    /// Its standard output.
    pub stdout: &'a mut (dyn Write + Send),
    /// Its standard error.
    pub stderr: &'a mut (dyn Write + Send),
}

/// One of the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Stdout,
    Stderr,
}

/// The messages of the listening threads.
#[derive(Debug)]
enum Event {
    /// A line from `/init`.
    Said(Said),
    /// How many bytes of a stream have been passed on in all.
    Passed(Stream, u64),
    /// The reader of the stream is gone.
    Refused(io::Error),
    /// The console is closed: QEMU has ended.
    Gone,
}

/// A message of `/init` on the control port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Boot,
    /// The command's status, and the bytes that it wrote to its streams if they could be counted.
    Exit(u8, Option<[u64; 2]>),
}

/// Listens to the guest until the command has ended and all its output has arrived, or the guest
/// has ended, or the time is up. The guest is dead afterwards.
///
/// # Errors
/// When QEMU fails, or a stream cannot be written to.
pub(crate) fn watch(
    mut qemu: Qemu,
    timeout: Duration,
    streams: Streams<'_>,
    seen: &mut dyn FnMut(Stage),
) -> Result<Outcome, VmError> {
    let mut run = Run::new(PathBuf::from(format!("/proc/{}", qemu.id())));
    let [console, control, stdout, stderr] = ears(&qemu)?;
    let (sender, events) = channel();
    let (followed, complaint) = thread::scope(|scope| {
        let (for_console, for_control) = (sender.clone(), sender.clone());
        let (for_stdout, for_stderr) = (sender.clone(), sender);
        let console = move || {
            let said = Console::listen(console);
            let _ = for_console.send(Event::Gone);
            said
        };
        let (out, err) = (streams.stdout, streams.stderr);
        let others: [Box<dyn FnOnce() + Send>; 3] = [
            Box::new(move || listen_to_init(control, &for_control)),
            Box::new(move || pass_on(stdout, out, Stream::Stdout, &for_stdout)),
            Box::new(move || pass_on(stderr, err, Stream::Stderr, &for_stderr)),
        ];
        let console = thread::Builder::new().spawn_scoped(scope, console);
        let mut others = others.into_iter();
        let started = others.try_for_each(|listen| {
            let started = thread::Builder::new().spawn_scoped(scope, listen);
            started.map(drop)
        });
        let refused = VmError::system("start the threads that listen to the guest");
        let heard = started.and(console).map_err(refused);
        // Ends QEMU whatever happened, and with it the threads.
        let followed = heard.and_then(|console| Ok((run.follow(&events, timeout, seen)?, console)));
        run.total = run.began.elapsed();
        run.ends();
        let complaint = qemu.end();
        let followed = followed.map(|(followed, console)| {
            let said = console.join().unwrap_or_default();
            (followed, said)
        });
        (followed, complaint)
    });
    let (followed, console) = followed?;
    Ok(Outcome {
        ending: run.ending(followed, &console, &complaint)?,
        boot: run.boot,
        total: run.total,
        cpu_delay: run.cpu_delay,
        stdout: Vec::new(),
        stderr: Vec::new(),
        console: console.text(),
    })
}

/// Copies of the guest's ports, for the threads that listen.
fn ears(qemu: &Qemu) -> Result<[UnixStream; 4], VmError> {
    let ear = |port: &UnixStream| {
        let port = port.try_clone();
        port.map_err(VmError::system("listen to the guest"))
    };
    let Qemu {
        console,
        control,
        stdout,
        stderr,
        ..
    } = qemu;
    Ok([ear(console)?, ear(control)?, ear(stdout)?, ear(stderr)?])
}

fn refused(complaint: &str) -> VmError {
    VmError::Tool {
        tool: "qemu-system-x86_64".to_owned(),
        said: complaint.trim().to_owned(),
        help: "read its message; QEMU 7.2 and later are known to work".to_owned(),
    }
}

/// The progress of a run.
struct Run {
    began: Instant,
    boot: Option<Duration>,
    exit: Option<(u8, Option<[u64; 2]>)>,
    /// Bytes passed on of each stream.
    passed: [u64; 2],
    total: Duration,
    /// QEMU's folder in /proc.
    process: PathBuf,
    /// What [`delay::of_cpus`] said when the command started, and how much it has grown since.
    delay_at_boot: Option<Duration>,
    cpu_delay: Option<Duration>,
}

/// Why following the guest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Followed {
    Exited(u8),
    TimeUp,
    Gone,
}

impl Run {
    fn new(process: PathBuf) -> Run {
        Run {
            began: Instant::now(),
            boot: None,
            exit: None,
            passed: [0; 2],
            total: Duration::ZERO,
            process,
            delay_at_boot: None,
            cpu_delay: None,
        }
    }

    /// The guest is about to be killed.
    fn ends(&mut self) {
        let now = delay::of_cpus(&self.process);
        let since = self.delay_at_boot.zip(now);
        self.cpu_delay = since.map(|(before, now)| now.saturating_sub(before));
    }

    fn follow(
        &mut self,
        events: &Receiver<Event>,
        timeout: Duration,
        seen: &mut dyn FnMut(Stage),
    ) -> Result<Followed, VmError> {
        loop {
            if let Some(status) = self.complete() {
                return Ok(Followed::Exited(status));
            }
            let left = timeout.saturating_sub(self.began.elapsed());
            let uncounted = self.exit.filter(|(_, counts)| counts.is_none());
            let patience = uncounted.map_or(left, |_| left.min(SILENCE));
            match events.recv_timeout(patience) {
                Ok(Event::Said(Said::Boot)) => {
                    self.boot = Some(self.began.elapsed());
                    self.delay_at_boot = delay::of_cpus(&self.process);
                    seen(Stage::Running);
                }
                Ok(Event::Said(Said::Exit(status, counts))) => self.exit = Some((status, counts)),
                Ok(Event::Passed(stream, bytes)) => self.passed[stream as usize] = bytes,
                Ok(Event::Refused(error)) => {
                    return Err(VmError::system("pass on the command's output")(error));
                }
                Ok(Event::Gone) | Err(RecvTimeoutError::Disconnected) => return Ok(Followed::Gone),
                Err(RecvTimeoutError::Timeout) => {
                    let silent = uncounted.filter(|_| patience == SILENCE);
                    return Ok(
                        silent.map_or(Followed::TimeUp, |(status, _)| Followed::Exited(status))
                    );
                }
            }
        }
    }

    /// The ending, judged by the kernel's last messages and QEMU's error messages.
    fn ending(
        &self,
        followed: Followed,
        console: &Console,
        complaint: &str,
    ) -> Result<Ending, VmError> {
        match followed {
            Followed::Exited(status) => Ok(Ending::Exited(status)),
            Followed::TimeUp => Ok(Ending::TimeUp),
            Followed::Gone if console.panicked() => Ok(Ending::Panicked),
            Followed::Gone if self.boot.is_none() && !complaint.trim().is_empty() => {
                Err(refused(complaint))
            }
            Followed::Gone => Ok(Ending::SwitchedOff),
        }
    }

    /// The command's status, once all its output has been passed on.
    fn complete(&self) -> Option<u8> {
        let (status, counts) = self.exit?;
        (counts? == self.passed).then_some(status)
    }
}

/// What init says has a few lines; who else writes to its port is not read for ever.
const MOST_SAID: u64 = 1 << 16;

fn listen_to_init(port: impl Read, sender: &Sender<Event>) {
    for line in BufReader::new(port.take(MOST_SAID))
        .lines()
        .map_while(Result::ok)
    {
        if let Some(said) = understand(&line) {
            let _ = sender.send(Event::Said(said));
        }
    }
}

fn understand(line: &str) -> Option<Said> {
    let mut words = line.split_whitespace();
    match words.next()? {
        "boot" => Some(Said::Boot),
        "exit" => {
            let status = words.next()?.parse().ok()?;
            let mut count = || words.next()?.parse().ok();
            let counts = count().zip(count());
            Some(Said::Exit(
                status,
                counts.map(|(stdout, stderr)| [stdout, stderr]),
            ))
        }
        _ => None,
    }
}

fn pass_on(mut port: impl Read, sink: &mut dyn Write, stream: Stream, sender: &Sender<Event>) {
    let mut chunk = vec![0; CHUNK];
    let mut passed = 0;
    while let Ok(length @ 1..) = port.read(&mut chunk) {
        if let Err(error) = sink.write_all(&chunk[..length]).and_then(|()| sink.flush()) {
            let _ = sender.send(Event::Refused(error));
            return;
        }
        passed += length as u64;
        let _ = sender.send(Event::Passed(stream, passed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    /// Follows events that have already been sent. The sender stays, as that of a living guest
    /// does.
    fn follow(sent: Vec<Event>) -> (Result<Followed, VmError>, Vec<Stage>) {
        let (sender, events) = channel();
        sent.into_iter()
            .for_each(|event| sender.send(event).unwrap());
        let mut stages = Vec::new();
        let followed =
            Run::new(PathBuf::new()).follow(&events, LONG, &mut |stage| stages.push(stage));
        (followed, stages)
    }

    #[test]
    fn what_init_says_is_understood_and_nothing_else() {
        for (line, expected) in [
            ("boot", Some(Said::Boot)),
            ("exit 7 12 0", Some(Said::Exit(7, Some([12, 0])))),
            ("exit 0", Some(Said::Exit(0, None))),
            ("exit 137 5", Some(Said::Exit(137, None))),
            ("exit 256 1 1", None),
            ("exit", None),
            ("", None),
        ] {
            assert_eq!(understand(line), expected, "{line}");
        }
    }

    #[test]
    fn the_command_has_ended_when_the_last_byte_is_here() {
        let mut events = vec![
            Event::Said(Said::Boot),
            Event::Said(Said::Exit(5, Some([10, 3]))),
            Event::Passed(Stream::Stderr, 3),
            Event::Passed(Stream::Stdout, 4),
            Event::Passed(Stream::Stdout, 10),
        ];
        let last = events.pop().unwrap();
        let incomplete = events.into_iter().chain([Event::Gone]).collect();
        let (followed, stages) = follow(incomplete);
        assert_eq!(followed.unwrap(), Followed::Gone, "six bytes are missing");
        assert_eq!(stages, [Stage::Running]);
        let complete = vec![Event::Said(Said::Exit(5, Some([10, 0]))), last, Event::Gone];
        assert_eq!(follow(complete).0.unwrap(), Followed::Exited(5));
    }

    #[test]
    fn where_nothing_was_counted_silence_has_to_do() {
        let (followed, _) = follow(vec![Event::Said(Said::Exit(5, None))]);
        assert_eq!(followed.unwrap(), Followed::Exited(5));
    }

    #[test]
    fn the_time_is_up_without_any_event() {
        let (_sender, events) = channel();
        let followed = Run::new(PathBuf::new()).follow(&events, Duration::ZERO, &mut |_| {});
        assert_eq!(followed.unwrap(), Followed::TimeUp);
    }

    #[test]
    fn a_reader_that_is_gone_ends_it() {
        let refused = Event::Refused(io::ErrorKind::BrokenPipe.into());
        assert!(matches!(
            follow(vec![refused]).0,
            Err(VmError::System { .. })
        ));
    }

    #[test]
    fn a_stream_is_passed_on_byte_by_byte_and_counted() {
        let sent: Vec<u8> = (0..=255).cycle().take(3 * CHUNK + 1).collect();
        let (sender, events) = channel();
        let mut sink = Vec::new();
        pass_on(sent.as_slice(), &mut sink, Stream::Stdout, &sender);
        drop(sender);
        assert!(sink == sent);
        let last = events.iter().last();
        let Some(Event::Passed(Stream::Stdout, bytes)) = last else {
            panic!("a count is events: {last:?}");
        };
        assert_eq!(bytes, sent.len() as u64);
    }
}
