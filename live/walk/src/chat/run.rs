//! One run: a server of its own, and all users of a case, in one mode.

use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use hdrhistogram::Histogram;

use crate::compare::{Limit, Mode, Sample};
use crate::error::BenchError;

use super::client::{Client, Delivered};
use super::control::{self, Account, Answer, Order};
use super::settings::Case;
use super::sockets;

/// The program that is the server: it shall call [`super::serve`] with its standard input and
/// output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerProgram {
    /// The file.
    pub program: PathBuf,
    /// What to start it with.
    pub arguments: Vec<OsString>,
}

/// The result of one run.
#[derive(Clone, Debug)]
pub(super) struct ChatSample {
    pub sample: Sample,
    /// In ns.
    pub latency: Histogram<u64>,
    /// Hints that a scheduler heard, in both processes.
    pub heard: u64,
}

impl AsRef<Sample> for ChatSample {
    fn as_ref(&self) -> &Sample {
        &self.sample
    }
}

/// Starts a server and lets everybody chat. `None` where the time was up before everybody had
/// received everything.
pub(super) fn run(
    program: &ServerProgram,
    case: &Case,
    mode: Mode,
    limit: &Limit,
) -> Result<Option<ChatSample>, BenchError> {
    // Before the server is started, which inherits what is allowed.
    sockets::allow(case)?;
    let mut server = Process::start(program)?;
    let mut input = server.child.stdin.take().expect("it is piped");
    let mut output = BufReader::new(server.child.stdout.take().expect("it is piped"));
    let order = Order {
        case: *case,
        mode,
        token: RandomState::new().hash_one(std::process::id()),
    };
    talk(order, limit, &mut input, &mut output)
}

/// Orders a server that speaks through `input` and `output`, and chats with it.
fn talk<I: Write>(
    order: Order,
    limit: &Limit,
    input: &mut I,
    output: &mut dyn BufRead,
) -> Result<Option<ChatSample>, BenchError> {
    control::say(input, &order)?;
    let Answer::Listening(port) = answer(output)? else {
        return Err(BenchError::Astray(
            "the server did not say where it listens".to_owned(),
        ));
    };
    let client = Client::new(order)?;
    let ready = || answer(output).map(|_| ());
    let chatted = client.run(port, limit, ready);
    control::say(input, &"end")?;
    let account = answer(output);
    // Where both failed, the server's reason is the cause.
    let (delivered, account) = match (chatted, account) {
        (Ok(None), _) => return Ok(None),
        (Err(error), Ok(_)) | (_, Err(error)) => return Err(error),
        (Ok(Some(delivered)), Ok(Answer::Ended(account))) => (delivered, account),
        (Ok(Some(_)), Ok(_)) => {
            return Err(BenchError::Astray("the server gave no account".to_owned()));
        }
    };
    check(&order.case, &delivered, &account)?;
    Ok(Some(sample(&order.case, delivered, account)))
}

/// The server's next answer, where it did not fail.
fn answer(output: &mut dyn BufRead) -> Result<Answer, BenchError> {
    match control::hear(output)? {
        Answer::Failed(reason) => Err(BenchError::Server(reason)),
        answer => Ok(answer),
    }
}

/// Refuses a run whose counts do not add up.
fn check(case: &Case, delivered: &Delivered, account: &Account) -> Result<(), BenchError> {
    let counted = [account.read, account.written, delivered.latency.len()];
    let expected = [case.sent(), case.delivered(), case.delivered()];
    if counted == expected {
        return Ok(());
    }
    let text = format!(
        "sent, written out and received were {counted:?} messages and should be {expected:?}"
    );
    Err(BenchError::Astray(text))
}

fn sample(case: &Case, delivered: Delivered, account: Account) -> ChatSample {
    ChatSample {
        sample: Sample {
            elapsed_ns: delivered.elapsed.as_nanos() as u64,
            work: case.delivered(),
            usage: delivered.usage + account.usage,
        },
        latency: delivered.latency,
        heard: delivered.heard + account.heard,
    }
}

/// A server that does not outlive this value.
struct Process {
    child: Child,
}

impl Process {
    fn start(program: &ServerProgram) -> Result<Process, BenchError> {
        let mut command = Command::new(&program.program);
        command
            .args(&program.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let child = command.spawn().map_err(|error| {
            let action = format!("start the server ({})", program.program.display());
            BenchError::system(action, error, "see whether the file is still there")
        })?;
        Ok(Process { child })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended by itself where all went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;
    use crate::chat::serve;

    /// One run with a server on a thread of this process.
    fn chat(case: Case, mode: Mode, limit: Duration) -> Result<Option<ChatSample>, BenchError> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let order = Order {
            case,
            mode,
            token: 77,
        };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // What fails is said to the client.
                let _ = serve(&theirs, &mut &theirs);
            });
            let mut output = BufReader::new(ours.try_clone().unwrap());
            let talked = talk(order, &Limit::after(limit), &mut &ours, &mut output);
            ours.shutdown(std::net::Shutdown::Both).unwrap();
            talked
        })
    }

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn every_message_reaches_every_user_of_its_room_in_every_mode() {
        for mode in Mode::ALL {
            for (rooms, users, messages, size) in
                [(1, 1, 1, 20), (3, 4, 25, 100), (2, 3, 9, 65_536)]
            {
                let case = Case {
                    rooms,
                    users,
                    messages,
                    size,
                };
                // The ledgers and the counts were checked on the way.
                let sample = chat(case, mode, LONG).unwrap().unwrap();
                let expected = u64::from(rooms * users * users * messages);
                assert_eq!(sample.latency.len(), expected, "{mode}, {case:?}");
                assert_eq!(sample.sample.work, expected);
            }
        }
    }

    #[test]
    fn a_run_whose_time_is_up_ends_without_a_sample() {
        let case = Case {
            rooms: 2,
            users: 5,
            messages: 1 << 20,
            size: 100,
        };
        let cut = chat(case, Mode::Plain, Duration::from_millis(50)).unwrap();
        assert!(cut.is_none());
        let late = chat(case, Mode::Plain, Duration::ZERO).unwrap();
        assert!(late.is_none());
    }

    #[test]
    fn counts_that_do_not_add_up_are_refused() {
        let case = Case {
            rooms: 1,
            users: 2,
            messages: 3,
            size: 20,
        };
        let mut latency = Histogram::new(2).unwrap();
        latency.record_n(5, 12).unwrap();
        let delivered = Delivered {
            elapsed: Duration::from_secs(1),
            usage: Default::default(),
            latency,
            heard: 0,
        };
        let account = Account {
            read: 6,
            written: 12,
            ..Account::default()
        };
        check(&case, &delivered, &account).unwrap();
        let lost = Account {
            written: 11,
            ..account
        };
        assert!(check(&case, &delivered, &lost).is_err());
        let unread = Account { read: 5, ..account };
        assert!(check(&case, &delivered, &unread).is_err());
    }

    #[test]
    fn a_server_that_cannot_be_started_is_named() {
        let program = ServerProgram {
            program: "/nonexistent/server".into(),
            arguments: Vec::new(),
        };
        let case = Case {
            rooms: 1,
            users: 1,
            messages: 1,
            size: 20,
        };
        let refused = run(&program, &case, Mode::Plain, &Limit::after(LONG)).unwrap_err();
        assert!(
            refused.to_string().contains("/nonexistent/server"),
            "{refused}"
        );
    }
}
