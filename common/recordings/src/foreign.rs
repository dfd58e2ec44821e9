//! What a file that is no trace of ours seems to be, by its content: names are not looked at.

use std::fmt;

use crate::text::Line;

/// The format of a file that is no trace of WarmQ, as far as its first bytes show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Foreign {
    /// Nothing is in it.
    Empty,
    /// What `perf record` writes to a file or a pipe.
    PerfData,
    /// What `perf record` of a machine with the other order of bytes writes.
    PerfDataSwapped,
    /// What `trace-cmd record` writes.
    TraceDat,
    /// The `trace` file of tracefs.
    FtraceText,
    /// What `trace-cmd report` prints.
    TraceCmdReport,
    /// What `perf script` prints.
    PerfScript,
    /// Packets of Perfetto.
    Perfetto,
    /// A page in HTML: systrace wrote the text of ftrace into one.
    Html,
    /// Pages of a ring buffer, as `trace_pipe_raw` of a CPU has them.
    RawPages,
    /// Files in one by `tar`.
    Tar,
    /// Trace events in JSON, as browsers write them.
    ChromeJson,
    /// A stream or the metadata of the Common Trace Format, as LTTng writes them.
    Ctf,
    /// Compressed by a program of this name.
    Compressed(&'static str),
    /// A program or an object file.
    Elf,
    /// JSON of another kind.
    Json,
    /// A workload in TOML, as `warmq run` takes it.
    Scenario,
    /// Text of another kind.
    Text,
    /// None of these.
    #[default]
    Unknown,
}

/// Formats that begin with bytes of their own.
const MAGICS: [(&[u8], Foreign); 15] = [
    (b"PERFILE2", Foreign::PerfData),
    (b"PERFFILE", Foreign::PerfData),
    (b"2ELIFREP", Foreign::PerfDataSwapped),
    (b"\x17\x08\x44tracing", Foreign::TraceDat),
    (b"\xc1\x1f\xfc\xc1", Foreign::Ctf),
    (b"\xc1\xfc\x1f\xc1", Foreign::Ctf),
    (b"\x75\xd1\x1f\xc1", Foreign::Ctf),
    (b"\xc1\x1f\xd1\x75", Foreign::Ctf),
    (b"\x1f\x8b", Foreign::Compressed("gzip")),
    (b"\x28\xb5\x2f\xfd", Foreign::Compressed("zstd")),
    (b"\xfd7zXZ\0", Foreign::Compressed("xz")),
    (b"\x04\x22\x4d\x18", Foreign::Compressed("lz4")),
    (b"BZh", Foreign::Compressed("bzip2")),
    (b"PK\x03\x04", Foreign::Compressed("zip")),
    (b"\x7fELF", Foreign::Elf),
];

impl Foreign {
    /// Whether it is a format of recordings, which are read here.
    pub fn is_recording(self) -> bool {
        matches!(
            self,
            Foreign::PerfData
                | Foreign::PerfDataSwapped
                | Foreign::TraceDat
                | Foreign::FtraceText
                | Foreign::TraceCmdReport
                | Foreign::PerfScript
                | Foreign::Perfetto
                | Foreign::Html
        )
    }

    /// What a file that begins with `head` seems to be. The more there is of it, the better: 4 KB
    /// are enough.
    pub fn of(head: &[u8]) -> Foreign {
        if head.is_empty() {
            return Foreign::Empty;
        }
        let magic = MAGICS.iter().find(|(magic, _)| head.starts_with(magic));
        if let Some((_, format)) = magic {
            return *format;
        }
        match text(head) {
            Some(text) => of_text(text),
            None if is_perfetto(head) => Foreign::Perfetto,
            None if head.get(257..262) == Some(b"ustar") => Foreign::Tar,
            None if is_raw_page(head) => Foreign::RawPages,
            // Names of tasks may have any bytes.
            None if !head.contains(&0) => {
                let text = String::from_utf8_lossy(head);
                let is_one = text.lines().any(|line| Line::parse(line).is_some());
                if is_one {
                    of_text(&text)
                } else {
                    Foreign::Unknown
                }
            }
            None => Foreign::Unknown,
        }
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Foreign::Empty => "an empty file",
            Foreign::PerfData => "perf.data, which `perf record` writes",
            Foreign::PerfDataSwapped => {
                "perf.data of a machine with the other order of bytes, which `perf record` writes"
            }
            Foreign::TraceDat => "trace.dat, which `trace-cmd record` writes",
            Foreign::FtraceText => "the text of tracefs' `trace` file",
            Foreign::TraceCmdReport => "the text that `trace-cmd report` prints",
            Foreign::PerfScript => "the text that `perf script` prints",
            Foreign::Perfetto => "a trace of Perfetto",
            Foreign::Html => "a page in HTML, as systrace writes one",
            Foreign::RawPages => "pages of a ring buffer of ftrace (`trace_pipe_raw`)",
            Foreign::Tar => "an archive (tar)",
            Foreign::ChromeJson => "a trace in JSON for chrome://tracing",
            Foreign::Ctf => "a trace in the Common Trace Format, which LTTng writes",
            Foreign::Compressed(by) => return write!(formatter, "a file compressed by {by}"),
            Foreign::Elf => "a program or an object file (ELF)",
            Foreign::Json => "JSON",
            Foreign::Scenario => "a scenario",
            Foreign::Text => "text",
            Foreign::Unknown => "data of no format that is known here",
        };
        formatter.write_str(name)
    }
}

/// `head` as text, without a letter that its end may have cut; nothing if it is no text.
fn text(head: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_text = |letter: char| !letter.is_control() || "\t\n\r\x1b\x0c".contains(letter);
    text.chars().all(is_text).then_some(text)
}

fn of_text(text: &str) -> Foreign {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    if start.starts_with("/* CTF ") {
        return Foreign::Ctf;
    }
    let is_json = start.starts_with(['{', '[']) && !start.starts_with("[task");
    if is_json && !Line::is_of_log(start) {
        let is_trace = text.contains("\"traceEvents\"") || text.contains("\"ph\"");
        return match is_trace {
            true => Foreign::ChromeJson,
            false if is_toml_table(start) => Foreign::Text,
            false => Foreign::Json,
        };
    }
    let is_html = |word: &&str| {
        let begins = start.get(..word.len());
        begins.is_some_and(|begins| begins.eq_ignore_ascii_case(word))
    };
    if ["<!doctype html", "<html"].iter().any(is_html) {
        return Foreign::Html;
    }
    let begins = |word: &str| text.lines().any(|line| line.trim_start().starts_with(word));
    if begins("# tracer:") {
        return Foreign::FtraceText;
    }
    if begins("[task.") {
        return Foreign::Scenario;
    }
    let lines = text.lines().filter_map(Line::parse);
    let of_lines = lines.map(|line| line.printed_by_perf).next();
    let of_lines = of_lines.map(|by_perf| match by_perf {
        true => Foreign::PerfScript,
        false => Foreign::FtraceText,
    });
    match of_lines {
        // Its first lines name the number of CPUs, or the version of the file.
        Some(Foreign::FtraceText) if begins("cpus=") || begins("version =") => {
            Foreign::TraceCmdReport
        }
        Some(format) => format,
        None if Line::is_of_log(start) => Foreign::FtraceText,
        None => Foreign::Text,
    }
}

/// Whether the first line of `text` is the head of a table of TOML.
fn is_toml_table(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default().trim_end();
    let name = line.trim_matches(['[', ']']);
    let plain = |letter: char| letter.is_alphanumeric() || "._-\"".contains(letter);
    line.ends_with(']') && !name.is_empty() && name.chars().all(plain)
}

/// Whether a page of a ring buffer begins here: a time, then the bytes in use of a page of 4 KB,
/// with at most two flags above them (Linux, `include/trace/ring_buffer.h`), and the head of an
/// event: of padding (29), of a time (30, 31), or of so many words that it fits.
fn is_raw_page(head: &[u8]) -> bool {
    let word = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
    let (Some(ns), Some(used), Some(first)) = (word(0), word(8), word(16)) else {
        return false;
    };
    let bytes = used & 0xfff;
    let fits = match first & 0x1f {
        0 => first >> 32 <= bytes,
        kind @ 1..=28 => kind * 4 <= bytes,
        _ => true,
    };
    let flags = used & 0xffff_ffff & !0xfff;
    let is_used = (8..=4080).contains(&bytes) && bytes.is_multiple_of(4);
    ns != 0 && used >> 32 == 0 && flags & !0xc000_0000 == 0 && is_used && fits
}

/// Whether the first packet of a protobuf `Trace` is one: field 1, its length, and within it fields
/// whose tags and lengths fit, as far as `head` reaches.
fn is_perfetto(head: &[u8]) -> bool {
    let Some((&0x0a, rest)) = head.split_first() else {
        return false;
    };
    let Some((length, rest)) = varint(rest) else {
        return false;
    };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    length > 0 && are_fields(&rest[..rest.len().min(length)], rest.len() >= length)
}

/// Whether `bytes` are fields of protobuf, `whole` or cut at their end.
fn are_fields(mut bytes: &[u8], whole: bool) -> bool {
    while !bytes.is_empty() {
        let Some((tag, rest)) = varint(bytes) else {
            return !whole && bytes.len() < 10;
        };
        let skipped = match tag & 7 {
            0 => varint(rest).map(|(_, after)| after),
            1 => rest.get(8..),
            2 => {
                varint(rest).and_then(|(length, after)| after.get(usize::try_from(length).ok()?..))
            }
            5 => rest.get(4..),
            _ => return false,
        };
        match skipped {
            Some(after) if tag >> 3 != 0 => bytes = after,
            Some(_) => return false,
            None => return !whole,
        }
    }
    true
}

fn varint(mut bytes: &[u8]) -> Option<(u64, &[u8])> {
    let number = prost::encoding::decode_varint(&mut bytes).ok()?;
    Some((number, bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FTRACE: &str =
        "          <idle>-0     [000] d..2.  1234.567890: sched_switch: prev_comm=swapper/0\n";
    const WITH_TGID: &str =
        "  kworker/0:1-42  (   42) [001] .....  1234.567890: sched_waking: comm=a\n";
    const SCRIPT: &str =
        "swapper     0 [000]  1234.567890: sched:sched_switch: swapper/0:0 [120] S ==> a:1\n";
    const SCRIPT_OF_THREADS: &str = "my app  12/34  [003] 99.000001:  sched:sched_wakeup: a:1\n";

    #[test]
    fn formats_are_known_by_their_content() {
        let of_commands = format!("cpus=2\n{FTRACE}");
        let of_tracefs = format!("# tracer: nop\n#\n{FTRACE}");
        let mut archive = vec![0; 512];
        archive[..5].copy_from_slice(b"a.dat");
        archive[257..262].copy_from_slice(b"ustar");
        // A time, 40 bytes in use, an event of 8 words.
        let page = [7_u64 << 30, 40, 8].map(u64::to_le_bytes).concat();
        let commented = format!("# captured on : now\n{SCRIPT}");
        let cases: [(&[u8], Foreign); 28] = [
            (b"", Foreign::Empty),
            (b"PERFILE2\x68\0\0\0\0\0\0\0", Foreign::PerfData),
            (b"2ELIFREP\0\0\0\0\0\0\0\x68", Foreign::PerfDataSwapped),
            (b"\x17\x08\x44tracing6\0", Foreign::TraceDat),
            (of_tracefs.as_bytes(), Foreign::FtraceText),
            (FTRACE.as_bytes(), Foreign::FtraceText),
            (WITH_TGID.as_bytes(), Foreign::FtraceText),
            (of_commands.as_bytes(), Foreign::TraceCmdReport),
            (SCRIPT.as_bytes(), Foreign::PerfScript),
            (SCRIPT_OF_THREADS.as_bytes(), Foreign::PerfScript),
            (commented.as_bytes(), Foreign::PerfScript),
            (
                b"\x0a\x04\x50\x01\x58\x02\x0a\x02\x50\x01",
                Foreign::Perfetto,
            ),
            (b"[    0.000000] Linux version 6.1\n", Foreign::FtraceText),
            (b"[0.5, 1]", Foreign::Json),
            (b"<!DOCTYPE html>\n<html><head>", Foreign::Html),
            (b"\n<HTML>\n", Foreign::Html),
            (&archive, Foreign::Tar),
            (&page, Foreign::RawPages),
            (b"{\"traceEvents\": [{\"ph\": \"X\"}]}", Foreign::ChromeJson),
            (b" [{\"name\": \"a\", \"ph\": \"B\"}]", Foreign::ChromeJson),
            (b"{\"law\": \"nice\"}", Foreign::Json),
            (b"/* CTF 1.8 */", Foreign::Ctf),
            (b"\x1f\x8b\x08\0", Foreign::Compressed("gzip")),
            (b"\x28\xb5\x2f\xfd\x04", Foreign::Compressed("zstd")),
            (b"\x7fELF\x02\x01", Foreign::Elf),
            (b"title = \"x\"\n[task.hog]\nbody = []\n", Foreign::Scenario),
            (b"hello [12] 3.4: world\n", Foreign::Text),
            (b"\x0a\xff\xff", Foreign::Unknown),
        ];
        for (head, format) in cases {
            let shown = String::from_utf8_lossy(head);
            assert_eq!(Foreign::of(head), format, "{shown:?}");
        }
        assert_eq!(Foreign::of(b"[task.a]\nbody = []\n"), Foreign::Scenario);
        assert_eq!(Foreign::of(b"[law]\nfamily = \"x\"\n"), Foreign::Text);
        assert_eq!(
            Foreign::of(
                "text that is cut within \u{e4}"
                    .as_bytes()
                    .split_last()
                    .unwrap()
                    .1
            ),
            Foreign::Text
        );
    }

    #[test]
    fn what_we_write_for_perfetto_is_perfetto() {
        use warmq_trace::{Observer, Perfetto, Record};
        let mut bytes = Vec::new();
        let mut perfetto = Perfetto::new(&mut bytes, "tiny");
        let idle = Record::Switch {
            cpu: warmq_units::CpuId(0),
            prev: None,
            prev_runnable: false,
            next: Some(warmq_units::TaskId(0)),
        };
        perfetto.see(warmq_units::Instant(7), &idle);
        perfetto.finish().unwrap();
        for end in 24..bytes.len() {
            assert_eq!(Foreign::of(&bytes[..end]), Foreign::Perfetto, "{end}");
        }
    }

    proptest! {
        #[test]
        fn whatever_a_file_begins_with_it_has_a_format(head in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(!Foreign::of(&head).to_string().is_empty());
        }

        #[test]
        fn so_has_text(head in "[ -~\n]{0,200}") {
            let format = Foreign::of(head.as_bytes());
            prop_assert!(!matches!(format, Foreign::Unknown | Foreign::Elf | Foreign::Perfetto));
        }
    }
}
