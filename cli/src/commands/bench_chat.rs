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

A message is counted once for each user who receives it. Its latency is the time from the sender's
write to the receiver's read. Users send as fast as they can, so most of it is time in queues.";

/// Rooms of users who send messages through a server: plain, bound by room, and hinted.
///
/// Each message goes over TCP on the loopback to a second process, and from there to every user of
/// its room. A user has four threads: two here, which send and receive, and two at the server. In
/// mode plain, the scheduler chooses where they run; in mode bound, each thread is bound to one
/// CPU, by the number of its room modulo the CPUs; in mode hinted, each thread names its room by a
/// hint. Each repetition runs all modes in turn and compares them.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ChatArguments {
    /// Numbers of rooms, each of them measured [default: 5,10].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    rooms: Option<Vec<u32>>,
    /// Users per room [default: 20].
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
    /// How often everything is measured; the medians are shown [default: 6].
    #[arg(long, value_name = "N")]
    repetitions: Option<u32>,
    /// Stop after S seconds and show the repetitions that are complete [default: 300].
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
/// None: the client reports what goes wrong.
pub fn run_server() -> Result<(), Failure> {
    // The client has been told, and it is the one whom people see.
    let _ = serve(std::io::stdin(), &mut std::io::stdout());
    Ok(())
}

/// This program, with the hidden command that makes it the server.
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
