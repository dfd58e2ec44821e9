//! A line of an event:
//!
//! ```text
//!     bash-123   ( 12) [000] d..2.  12.345678: sched_switch: ...       tracefs, trace-cmd report
//!     bash-123         0d..2.       12.345678: sched_switch: ...       trace-cmd report -l
//!     bash-123         0d..2.       345us+: sched_switch: ...          tracefs with latency-format
//!     bash   12/123  [000]  12.345678901:   1  sched:sched_switch: ... perf script
//! [   12.345678]     bash-123   0d..2. 12345678us : sched_switch: ...  the kernel's log
//! ```
//!
//! What varies stands before the time: the time is looked for first.

use warmq_trace::Context;
use warmq_units::CpuId;

use super::cpu_of;
use crate::decode::context;
use crate::event::Name;

/// A line of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// The thread that ran, and its name and process, as far as they are printed.
    pub tid: Option<u32>,
    pub comm: Name,
    pub tgid: Option<u32>,
    pub cpu: CpuId,
    pub context: Context,
    /// When; `None` if its clock counts no time.
    pub ns: Option<u64>,
    /// The event's name, without its system, and what is printed of it.
    pub event: &'a str,
    pub values: &'a str,
    /// The trace instance, of which trace-cmd prints the names if there are several.
    pub instance: &'a str,
    /// perf prints threads otherwise than all others.
    pub printed_by_perf: bool,
}

impl<'a> Line<'a> {
    /// Reads a line; `None` if it is none of an event.
    pub fn parse(line: &'a str) -> Option<Line<'a>> {
        if line.starts_with('#') {
            return None;
        }
        let (before, time, after) = at_time(without_time_of_log(line))?;
        let (before, cpu, flags) = cpu_and_flags(before)?;
        let Thread {
            tid,
            tgid,
            comm,
            instance,
            printed_by_perf,
        } = thread(before)?;
        let (event, values) = event(after)?;
        let has = |letters: &[char]| flags.contains(letters);
        Some(Line {
            tid,
            comm: Name::new(comm.as_bytes()),
            tgid,
            cpu,
            context: match flags {
                // An interrupt looks as the thread that it interrupts.
                "" => Context::Unknown,
                _ => context(has(&['h', 'H', 'z', 'Z']), has(&['s']), tid.unwrap_or(0)),
            },
            ns: time,
            event,
            values,
            instance,
            printed_by_perf,
        })
    }

    /// Whether a line is one of the kernel's log.
    pub fn is_of_log(line: &str) -> bool {
        without_time_of_log(line).len() < line.len()
    }

    /// Whether a line that is none of an event has a time, as events have.
    pub fn is_like_one(line: &str) -> bool {
        !line.starts_with('#') && at_time(line).is_some()
    }
}

/// The option of tracefs (`trace_options`) with which a line was written that does not say who ran
/// where and when, or not in words.
///
/// ```text
///     sched_switch: prev_comm=...                                          nocontext-info
///     bash 1 0 1 00000002 00000001 [aa05f82a] 8.688ms (+0.003ms): ...      verbose, latency-format
///     13377 1 2853865964931 type: 363                                      raw
///     00003443 00000000 00000298a161aeef type: 366                         hex
/// ```
pub(super) fn option(line: &str) -> Option<&'static str> {
    if line.starts_with("sched_") && event(line).is_some() {
        return Some("nocontext-info");
    }
    if line.contains("ms (+") && line.contains("ms): ") {
        return Some("verbose");
    }
    let words: Vec<&str> = line.split_once(" type: ")?.0.split(' ').collect();
    let of_digits = |word: &&str| word.bytes().all(|byte| byte.is_ascii_hexdigit());
    match words[..] {
        [pid, _, time] if !words.iter().all(of_digits) || pid.is_empty() || time.is_empty() => None,
        [pid, _, time] if (pid.len(), time.len()) == (8, 16) => Some("hex"),
        [_, _, _] => Some("raw"),
        _ => None,
    }
}

/// A thread as a line has it.
#[derive(Clone, Copy, Debug, Default)]
struct Thread<'a> {
    tid: Option<u32>,
    tgid: Option<u32>,
    comm: &'a str,
    instance: &'a str,
    printed_by_perf: bool,
}

/// A line without the time in brackets that the kernel's log has before it: the kernel dumps its
/// buffer there when it panics, or is asked to (`ftrace_dump_on_oops`, SysRq-Z).
fn without_time_of_log(line: &str) -> &str {
    let inside = |line: &'_ str| -> Option<usize> {
        let end = line.strip_prefix('[')?.find(']')?;
        let time = line[1..=end].trim_start();
        let is_time = |letter: u8| letter.is_ascii_digit() || letter == b'.';
        (time.contains('.') && time.bytes().all(is_time)).then_some(end + 2)
    };
    inside(line).map_or(line, |end| &line[end..])
}

/// What stands before the time, the time, and what follows. The time is the first word of digits
/// that ends with a colon.
fn at_time(line: &str) -> Option<(&str, Option<u64>, &str)> {
    let mut from = 0;
    loop {
        let colon = from + memchr::memchr(b':', line.as_bytes().get(from..)?)?;
        from = colon + 1;
        let (before, after) = (&line[..colon], &line[from..]);
        if !after.starts_with([' ', '\t']) {
            continue;
        }
        // Of latency-format a space, or the mark of a long time, stands between.
        let before = match before.strip_suffix("us ") {
            Some(_) => before.trim_end(),
            None => before,
        };
        let begins = before.rfind([' ', '\t']).map_or(0, |space| space + 1);
        let word = before[begins..].trim_end_matches(['+', '!', '#', '*', '@', '$']);
        if let Some(time) = time(word) {
            return Some((&before[..begins], time, after));
        }
    }
}

/// A time in ns; `Some(None)` if it is a count of something else.
fn time(word: &str) -> Option<Option<u64>> {
    let number = |text: &str| -> Option<u64> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok())?
    };
    if let Some(us) = word.strip_suffix("us") {
        return Some(number(us)?.checked_mul(1_000));
    }
    let Some((whole, part)) = word.split_once('.') else {
        return number(word).map(|_| None);
    };
    if part.len() > 9 {
        return None;
    }
    let part_ns = number(part)? * 10_u64.pow(9 - part.len() as u32);
    Some(
        number(whole)?
            .checked_mul(1_000_000_000)?
            .checked_add(part_ns),
    )
}

/// What stands before the CPU, the CPU, and the flags of latency, which may be missing.
fn cpu_and_flags(before: &str) -> Option<(&str, CpuId, &str)> {
    let before = before.trim_end();
    let (rest, last) = before.rsplit_once([' ', '\t'])?;
    if let Some(cpu) = bracketed(last) {
        return Some((rest, cpu, ""));
    }
    let rest = rest.trim_end();
    if let Some((earlier, word)) = rest.rsplit_once([' ', '\t'])
        && let Some(cpu) = bracketed(word)
    {
        return Some((earlier, cpu, last));
    }
    // The CPU and the flags are one word.
    let digits = last.bytes().take_while(u8::is_ascii_digit).count();
    let (cpu, flags) = last.split_at(digits);
    let is_flag = |letter: char| letter == '.' || letter.is_ascii_alphanumeric();
    (flags.len() >= 4 && flags.chars().all(is_flag)).then_some((rest, cpu_of(cpu)?, flags))
}

fn bracketed(word: &str) -> Option<CpuId> {
    cpu_of(word.strip_prefix('[')?.strip_suffix(']')?)
}

fn thread(text: &str) -> Option<Thread<'_>> {
    let mut text = text.trim();
    let mut tgid = None;
    if let Some(inside) = text.strip_suffix(')')
        && let Some((before, number)) = inside.rsplit_once('(')
    {
        // Dashes stand where the kernel does not know it.
        tgid = number.trim().parse().ok();
        text = before.trim_end();
    }
    // perf script: the numbers are a word of their own.
    if let Some((name, word)) = text.rsplit_once([' ', '\t']) {
        let (process, tid) = word.split_once('/').unwrap_or(("", word));
        if let (true, Ok(tid)) = (
            process.parse::<u32>().is_ok() || process.is_empty(),
            tid.parse(),
        ) {
            return Some(Thread {
                tid: Some(tid),
                tgid: process.parse().ok(),
                comm: named(name),
                instance: "",
                printed_by_perf: true,
            });
        }
        if word == "-1" {
            let printed_by_perf = true;
            return Some(Thread {
                printed_by_perf,
                ..Thread::default()
            });
        }
    }
    if let Ok(tid) = text.parse() {
        return Some(Thread {
            tid: Some(tid),
            printed_by_perf: true,
            ..Thread::default()
        });
    }
    let (instance, text) = match text.split_once(": ") {
        Some((instance, text)) if !instance.contains(' ') => (instance, text.trim()),
        _ => ("", text),
    };
    let (name, tid) = text.rsplit_once('-')?;
    Some(Thread {
        instance,
        tid: Some(tid.parse().ok()?),
        tgid,
        comm: named(name),
        printed_by_perf: false,
    })
}

/// A name, if the line has it.
fn named(name: &str) -> &str {
    match name.trim() {
        "<...>" | "<idle>" => "",
        name => name,
    }
}

/// The name of the event, without its system, and what is printed of it. perf may count before it,
/// and trace-cmd say how much later it is than the one before (`(+12)`).
fn event(after: &str) -> Option<(&str, &str)> {
    let mut text = after.trim_start();
    while let Some((word, rest)) = text.split_once([' ', '\t'])
        && (word.bytes().all(|byte| byte.is_ascii_digit()) || word.starts_with("(+"))
    {
        text = rest.trim_start();
    }
    let end = text.find([' ', '\t']).unwrap_or(text.len());
    let name = text[..end].strip_suffix(':')?;
    let name = name.rsplit_once(':').map_or(name, |(_, name)| name);
    (!name.is_empty()).then(|| (name, text[end..].trim()))
}

/// That events of a CPU are missing, and how many (0: nobody knows):
///
/// ```text
///     CPU:0 [LOST 123 EVENTS]       tracefs
///     CPU:0 [123 EVENTS DROPPED]    trace-cmd report
///     CPU:0 [EVENTS DROPPED]
/// ```
pub(super) fn lost(line: &str) -> Option<(CpuId, u64)> {
    let (cpu, what) = line.trim().strip_prefix("CPU:")?.split_once(' ')?;
    let what = what.trim().strip_prefix('[')?.strip_suffix(']')?;
    let words: Vec<&str> = what.split(' ').collect();
    let is_loss = words.iter().any(|word| ["LOST", "DROPPED"].contains(word));
    let events = words.iter().find_map(|word| word.parse().ok());
    is_loss.then(|| Some((cpu_of(cpu)?, events.unwrap_or(0))))?
}
