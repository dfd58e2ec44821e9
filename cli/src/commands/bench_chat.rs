//! `warmq bench chat`: rooms of users who send messages through a server.

use std::time::Duration;

use clap::Args;
use warmq_bench::chat::{ChatSettings, ServerProgram, measure_chat, serve};
use warmq_bench::compare::Mode;

use crate::failure::Failure;
use crate::progress::Watch;
use crate::{chat, output};

use super::bench::time_limit;

const EXAMPLES: &str = "\
Examples:
  warmq bench chat
  warmq bench chat --rooms 10,20,30 --messages 500
  warmq bench chat --modes plain,hinted --json | jq '{mode, p99: .latency_us.p99.median}'

A message counts when it is delivered to one user. Its latency is the time from the sender's write
to the receiver's read; users send as fast as they may, so that most of it is waiting in queues.";

/// Rooms of users who send messages through a server: plain, bound by room, and hinted.
///
/// Each message goes over TCP on the loopback to a second process, and from there to every user of
/// its room. A user has four threads: two here, which send and receive, and two at the server. Plain:
/// the scheduler chooses where they run. Bound: on CPU room modulo CPUs, and nowhere else. Hinted:
/// each thread tells its room to a scheduler that listens. All modes are run in turn in each
/// repetition and compared within it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ChatArguments {
    /// Numbers of rooms; each is measured on its own [default: 5,10].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    rooms: Option<Vec<u32>>,
    /// Users in a room [default: 20].
    #[arg(long, value_name = "N")]
    users: Option<u32>,
    /// Messages that each user sends [default: 60].
    #[arg(long, value_name = "N")]
    messages: Option<u32>,
    /// Bytes of a message [default: 100].
    #[arg(long, value_name = "BYTES")]
    size: Option<u32>,
    /// The modes to measure [default: plain,bound,hinted].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    modes: Option<Vec<Mode>>,
    /// Times that everything is run; medians are shown [default: 6].
    #[arg(long, value_name = "N")]
    repetitions: Option<u32>,
    /// End after so many seconds with the repetitions that are complete [default: 300].
    #[arg(long, value_name = "S", value_parser = time_limit)]
    time_limit: Option<Duration>,
    /// Print one JSON row per line, and nothing else, on standard output.
    #[arg(long)]
    json: bool,
}

/// Measures and shows.
///
/// # Errors
/// Settings that make no sense; what the operating system refuses.
pub fn run(arguments: &ChatArguments) -> Result<(), Failure> {
    let settings = arguments.settings();
    settings.check()?;
    let server = server()?;
    let report = {
        let watch = Watch::over("runs", settings.runs());
        measure_chat(&settings, &server, &mut |step| {
            watch.see(step.done, step.total, &step.name);
        })?
    };
    output::print(&if arguments.json {
        chat::json_lines(&report)
    } else {
        chat::table(&report)
    })
}

/// The server's side, in a process of its own, which the client started.
///
/// # Errors
/// None: what goes wrong, the client tells.
pub fn run_server() -> Result<(), Failure> {
    // The client has been told, and it is the one whom people see.
    let _ = serve(std::io::stdin(), &mut std::io::stdout());
    Ok(())
}

/// This very program, with the hidden command that makes it a server.
fn server() -> Result<ServerProgram, Failure> {
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::system("find this program's file", &error))?;
    Ok(ServerProgram {
        program,
        arguments: ["bench", "chat-server"].map(Into::into).to_vec(),
    })
}

impl ChatArguments {
    fn settings(&self) -> ChatSettings {
        let usual = ChatSettings::default();
        ChatSettings {
            rooms: self.rooms.clone().unwrap_or(usual.rooms),
            users: self.users.unwrap_or(usual.users),
            messages: self.messages.unwrap_or(usual.messages),
            size: self.size.unwrap_or(usual.size),
            modes: self.modes.clone().unwrap_or(usual.modes),
            repetitions: self.repetitions.unwrap_or(usual.repetitions),
            time_limit: self.time_limit.unwrap_or(usual.time_limit),
        }
    }
}
