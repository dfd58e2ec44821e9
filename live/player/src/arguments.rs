//! The command line, read by hand: it is short, and the program should stay small.

use std::str::FromStr;

use warmq_player::Counter;
use warmq_units::{Bytes, Duration, Seed};

/// What is printed for `--help`.
pub const HELP: &str = "\
Plays a scenario with real threads on this machine and writes a trace.

Usage: warmq-player --scenario FILE [OPTIONS]

  --scenario FILE   the scenario (docs/scenarios.md)
  --set NAME=VALUE  a setting of it; may be repeated
  --warmup TIME     played before anything is measured [200ms]
  --time TIME       played after that [1s]
  --seed N          what makes this run differ from the next [1]
  --trace FILE      where the trace goes; - is standard output [-]
  --no-record       do not record what the kernel does
  --world WORD      host or guest: guest allows what only a machine of its own can [host]
  --scheduler NAME  what the trace calls the scheduler [what the system says]
  --load PROGRAM    load this scheduler of sched_ext before the run, and unload it afterwards
  --options TEXT    options of that program, separated by spaces
  --counters TEXT   what that scheduler counts, separated by spaces, each as
                    NAME:MAP:VALUE_SIZE:KEY:OFFSET:SIZE:COPIES:DISTANCE
  --log SIZE        memory for what tasks log [64MB]
  --rounds N        rounds of the calibrated loop in a second [measured]
  --parent PID      end the run when its parent, which is this process, ends

Exit codes: 0 played; 2 bad input; 3 the run ended early; 4 the system refused what is needed.
What is not played exactly as the scenario says is said on standard error: `note: WHAT: WHY`.
";

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    pub scenario: String,
    pub set: Vec<(String, String)>,
    pub warmup: Duration,
    pub time: Duration,
    pub seed: Seed,
    pub trace: String,
    pub record: bool,
    pub world: String,
    pub scheduler: Option<String>,
    pub load: Option<String>,
    pub options: String,
    pub counters: Vec<Counter>,
    pub log: Bytes,
    pub rounds_per_s: Option<u64>,
    pub parent: Option<i32>,
}

/// A command line that makes sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    Play(Box<Arguments>),
    Help,
}

/// Reads the words after the command's name.
///
/// # Errors
/// What is wrong, and what can be written instead.
pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Parsed, String> {
    let mut scenario = None;
    let mut arguments = Arguments {
        scenario: String::new(),
        set: Vec::new(),
        warmup: Duration::from_ms(200),
        time: Duration::from_s(1),
        seed: Seed(1),
        trace: "-".to_owned(),
        record: true,
        world: "host".to_owned(),
        scheduler: None,
        load: None,
        options: String::new(),
        counters: Vec::new(),
        log: Bytes::from_mb(64),
        rounds_per_s: None,
        parent: None,
    };
    while let Some(word) = words.next() {
        let (option, mut attached) = match word.split_once('=') {
            Some((option, value)) if word.starts_with("--") => {
                (option.to_owned(), Some(value.to_owned()))
            }
            _ => (word, None),
        };
        let mut value = || {
            let value = attached.take().or_else(|| words.next());
            value.ok_or_else(|| format!("{option} needs a value; see --help"))
        };
        match option.as_str() {
            "--help" | "-h" => return Ok(Parsed::Help),
            "--scenario" => scenario = Some(value()?),
            "--set" => arguments.set.push(setting(&value()?)?),
            "--warmup" => arguments.warmup = read(&option, &value()?)?,
            "--time" => arguments.time = read(&option, &value()?)?,
            "--seed" => arguments.seed = Seed(read(&option, &value()?)?),
            "--trace" => arguments.trace = value()?,
            "--no-record" => arguments.record = false,
            "--world" => arguments.world = world(value()?)?,
            "--scheduler" => arguments.scheduler = Some(value()?),
            "--load" => arguments.load = Some(value()?),
            "--options" => arguments.options = value()?,
            "--counters" => {
                let texts = value()?;
                let read = texts.split_whitespace().map(str::parse);
                arguments.counters = read.collect::<Result<_, String>>()?;
            }
            "--log" => arguments.log = read(&option, &value()?)?,
            "--rounds" => arguments.rounds_per_s = Some(read(&option, &value()?)?),
            "--parent" => arguments.parent = Some(read(&option, &value()?)?),
            other => return Err(format!("`{other}` is not an option; see --help")),
        }
    }
    arguments.scenario =
        scenario.ok_or("name the file of a scenario with --scenario; see --help")?;
    if arguments.load.is_none() && !arguments.options.is_empty() {
        return Err("--options are those of a scheduler: name it with --load".to_owned());
    }
    Ok(Parsed::Play(Box::new(arguments)))
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("--set {text}: write NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn world(word: String) -> Result<String, String> {
    match word.as_str() {
        "host" | "guest" => Ok(word),
        _ => Err(format!("--world {word}: write host or guest")),
    }
}

fn read<T: FromStr<Err: std::fmt::Display>>(option: &str, text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|error| format!("{option} {text}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Parsed, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_take_their_value_with_a_space_or_an_equals_sign() {
        let Ok(Parsed::Play(arguments)) = parsed(
            "--scenario a.toml --set n=3 --set=b=4KB --time=2s --warmup 0s --no-record --seed 7",
        ) else {
            panic!("refused");
        };
        assert_eq!(arguments.scenario, "a.toml");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(arguments.set, [pair("n", "3"), pair("b", "4KB")]);
        assert_eq!(
            (arguments.time, arguments.warmup),
            (Duration::from_s(2), Duration::ZERO)
        );
        assert_eq!((arguments.record, arguments.seed), (false, Seed(7)));
        assert_eq!((arguments.load, arguments.options), (None, String::new()));
    }

    #[test]
    fn the_options_of_a_scheduler_are_one_word() {
        let words = [
            "--scenario",
            "a",
            "--load",
            "scx_some",
            "--options",
            "--slice-us 700",
            "--counters",
            "granted:.bss:8:0:0:8:1:0 kept:stats:8:1:0:8:1:0",
        ];
        let Ok(Parsed::Play(arguments)) = parse(words.into_iter().map(str::to_owned)) else {
            panic!("refused");
        };
        assert_eq!(arguments.load.as_deref(), Some("scx_some"));
        assert_eq!(arguments.options, "--slice-us 700");
        let counters = arguments.counters.iter();
        let names: Vec<&str> = counters.map(|counter| counter.name.as_str()).collect();
        assert_eq!(names, ["granted", "kept"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_reason() {
        for (line, part) in [
            ("", "--scenario"),
            ("--scenario", "needs a value"),
            ("--scenario a --time 5", "--time 5"),
            ("--scenario a --seed x", "--seed x"),
            ("--scenario a --world lab", "host or guest"),
            ("--scenario a --set b", "NAME=VALUE"),
            ("--scenario a --options=-v", "--load"),
            ("--scenario a --counters granted:.bss", "is no counter"),
            ("--frob", "not an option"),
        ] {
            let problem = parsed(line).expect_err(line);
            assert!(problem.contains(part), "{line}: {problem}");
        }
        assert_eq!(parsed("--help"), Ok(Parsed::Help));
    }
}
