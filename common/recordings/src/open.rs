//! Opens a file by what is in it, whatever it is called.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use warmq_trace::file::{Reader, is_trace};

use crate::damage::Damage;
use crate::foreign::Foreign;
use crate::input::Input;
use crate::perf::Touched;
use crate::records::{Records, Unreadable};
use crate::source::Source;
use crate::{perf, perfetto, text, trace_dat};

/// So many bytes at the beginning show of what format a file is.
const HEAD: usize = 8 << 10;
/// No temporary file is longer, in bytes: it might fill the disk.
const MOST_KEPT: u64 = 64 << 30;
/// What was packed is so many times as long as what it was packed into, at most; recordings are
/// packed into a fifth to a thirtieth. Of small files a GiB is believed.
const MOST_TIMES: u64 = 200;
const BELIEVED: u64 = 1 << 30;
/// Files are packed so many times at most.
const MOST_PACKED: usize = 3;

/// A recording in a file, which can be read several times, one after the other.
#[derive(Debug)]
pub struct Recorded {
    file: File,
    format: Option<Foreign>,
    /// What is wrong with what it was packed into.
    cut: Option<Damage>,
}

/// The records of a recording of another program that is in memory. It is not unpacked.
///
/// # Errors
/// It is none, or damaged before its first event.
pub fn records_of(bytes: Vec<u8>) -> Result<Records, Unreadable> {
    let format = Foreign::of(&bytes[..bytes.len().min(HEAD)]);
    if !format.is_recording() {
        return Err(Unreadable::NotOne(format));
    }
    opened(format, Input::of_bytes(bytes), None)
}

fn opened(format: Foreign, input: Input, cut: Option<Damage>) -> Result<Records, Unreadable> {
    let source = source(format, input.clone());
    let source = source.map_err(|damage| Unreadable::Damaged { format, damage })?;
    Ok(Records::foreign(source, format, input.counted(), cut))
}

impl Recorded {
    /// The recording that `file` has. What comes out of a pipe is put into a temporary file first,
    /// and so is what was compressed by gzip or zstd, when unpacked.
    ///
    /// # Errors
    /// What cannot be read, kept or unpacked, and what is no recording.
    pub fn of(file: File) -> Result<Recorded, Unreadable> {
        let mut file = match file.metadata()?.is_file() {
            true => file,
            false => of_pipe(file)?,
        };
        let mut cut = None;
        for _ in 0..=MOST_PACKED {
            let head = head(&mut file)?;
            let format = Foreign::of(&head);
            if is_trace(&head) || format.is_recording() {
                let format = (!is_trace(&head)).then_some(format);
                return Ok(Recorded { file, format, cut });
            }
            let Foreign::Compressed(by) = format else {
                return Err(Unreadable::NotOne(format));
            };
            let (unpacked, damage) = unpacked(file, by)?;
            (file, cut) = (unpacked, damage.or(cut));
        }
        Err(Unreadable::NotOne(Foreign::of(&head(&mut file)?)))
    }

    /// How many bytes there are, unpacked.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// The addresses of data in samples of perf.data; none where nobody asked perf for them.
    ///
    /// # Errors
    /// It is damaged, or no perf.data.
    pub fn touched(&self) -> Result<Vec<Touched>, Unreadable> {
        let format = self.format.unwrap_or(Foreign::Unknown);
        if !matches!(format, Foreign::PerfData | Foreign::PerfDataSwapped) {
            return Err(Unreadable::NotOne(format));
        }
        let data = perf::PerfData::open(Input::of(self.file.try_clone()?)?);
        let touched = data.and_then(perf::PerfData::touched);
        let whole = touched.and_then(|touched| self.cut.clone().map_or(Ok(touched), Err));
        whole.map_err(|damage| Unreadable::Damaged { format, damage })
    }

    /// Its records, from the first one on. No other reader of this may be in use.
    ///
    /// # Errors
    /// It is damaged before its first event.
    pub fn records(&self) -> Result<Records, Unreadable> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        let Some(format) = self.format else {
            return Ok(Records::own(Reader::new(file)?));
        };
        opened(format, Input::of(file)?, self.cut.clone())
    }
}

fn source(format: Foreign, input: Input) -> Result<Box<dyn Source>, Damage> {
    Ok(match format {
        Foreign::PerfData | Foreign::PerfDataSwapped => Box::new(perf::PerfData::open(input)?),
        Foreign::TraceDat => Box::new(trace_dat::TraceDat::open(input)?),
        Foreign::Perfetto => Box::new(perfetto::Trace::open(input)?),
        _ => Box::new(text::Text::open(input)?),
    })
}

fn head(file: &mut File) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    Read::by_ref(file)
        .take(HEAD as u64)
        .read_to_end(&mut head)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(head)
}

/// What a pipe gives, in a temporary file, if it begins like a recording: one that is none may have
/// no end.
fn of_pipe(mut pipe: File) -> Result<File, Unreadable> {
    let mut head = Vec::new();
    Read::by_ref(&mut pipe)
        .take(HEAD as u64)
        .read_to_end(&mut head)?;
    let format = Foreign::of(&head);
    let known = matches!(format, Foreign::Compressed(_)) || format.is_recording();
    match known || is_trace(&head) {
        true => Ok(kept(head.as_slice().chain(pipe), MOST_KEPT)?),
        false => Err(Unreadable::NotOne(format)),
    }
}

/// What `from` gives, in a temporary file.
fn kept(from: impl Read, most: u64) -> io::Result<File> {
    let (file, error) = begun(from, most)?;
    error.map_or(Ok(file), Err)
}

/// What `from` gives up to its end or its first error, which comes with it.
fn begun(mut from: impl Read, most: u64) -> io::Result<(File, Option<io::Error>)> {
    let mut file = tempfile::tempfile()?;
    let mut limited = Read::by_ref(&mut from).take(most);
    let copied = io::copy(&mut limited, &mut file);
    if limited.limit() == 0 {
        let what = format!("there are more than {} MiB in it", most >> 20);
        return Err(io::Error::other(what));
    }
    file.flush()?;
    Ok((file, copied.err()))
}

/// What was compressed in `file`, in a temporary file; of one that is damaged what stands before
/// the damage, if anything does.
fn unpacked(file: File, by: &'static str) -> Result<(File, Option<Damage>), Unreadable> {
    let failed = |why: String| Unreadable::Packed { by, why };
    let most = file.metadata()?.len().saturating_mul(MOST_TIMES);
    let most = most.clamp(BELIEVED, MOST_KEPT);
    let packed = io::BufReader::new(file);
    let begun = match by {
        "gzip" => begun(MultiGzDecoder::new(packed), most),
        "zstd" => {
            let decoder = StreamingDecoder::new(packed);
            begun(decoder.map_err(|error| failed(error.to_string()))?, most)
        }
        _ => return Err(Unreadable::NotOne(Foreign::Compressed(by))),
    };
    let (unpacked, error) = begun.map_err(|error| failed(error.to_string()))?;
    let length = unpacked.metadata()?.len();
    match error {
        None => Ok((unpacked, None)),
        Some(error) if length == 0 => Err(failed(error.to_string())),
        Some(error) => {
            let what = format!("what {by} compressed is cut off or damaged: {error}");
            Ok((unpacked, Some(Damage::at(length, what))))
        }
    }
}
