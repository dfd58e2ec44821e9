//! `.BTF.ext`: which line an instruction is of, and what must fit the kernel (CO-RE).

use std::sync::Arc;

use crate::btf::Btf;
use crate::bytes::u32_at;
use crate::image::Line;

/// What is said of the instructions of a section.
pub(crate) struct Said<T> {
    pub(crate) section: String,
    /// The instruction's byte in its section, and what is said.
    pub(crate) of: Vec<(u32, T)>,
}

/// A relocation by CO-RE: `struct bpf_core_relo`.
#[derive(Clone, Debug)]
pub(crate) struct Relo {
    /// The type where it begins, in the object's BTF.
    pub(crate) root: u32,
    /// `0:1:2`: an index, then members or indexes.
    pub(crate) spec: String,
    /// A number of `enum bpf_core_relo_kind`.
    pub(crate) kind: u32,
}

/// A part of the section: records of one size after headers of sections.
fn part<T>(
    bytes: &[u8],
    btf: &Btf,
    at: usize,
    mut read: impl FnMut(&[u8]) -> Option<T>,
) -> Option<Vec<Said<T>>> {
    let header = u32_at(bytes, 4)? as usize;
    let from = header.checked_add(u32_at(bytes, at)? as usize)?;
    let end = from.checked_add(u32_at(bytes, at + 4)? as usize)?;
    let bytes = bytes.get(from..end)?;
    let mut all = Vec::new();
    if bytes.is_empty() {
        return Some(all);
    }
    let size = u32_at(bytes, 0)? as usize;
    if size < 16 {
        return None;
    }
    let mut at = 4;
    while at < bytes.len() {
        let (section, count) = (btf.string(u32_at(bytes, at)?), u32_at(bytes, at + 4)?);
        at += 8;
        let mut of = Vec::new();
        for _ in 0..count {
            let record = bytes.get(at..at.checked_add(size)?)?;
            of.push((u32_at(record, 0)?, read(record)?));
            at += size;
        }
        all.push(Said { section, of });
    }
    Some(all)
}

/// `struct bpf_line_info`: where each line begins.
pub(crate) fn lines(bytes: &[u8], btf: &Btf) -> Option<Vec<Said<Line>>> {
    let mut texts = std::collections::BTreeMap::<u32, Arc<str>>::new();
    let mut text = |at: u32| {
        texts
            .entry(at)
            .or_insert_with(|| btf.string(at).into())
            .clone()
    };
    part(bytes, btf, 16, |record| {
        let (file, source) = (text(u32_at(record, 4)?), text(u32_at(record, 8)?));
        Some(Line {
            file,
            line: u32_at(record, 12)? >> 10,
            text: source.trim().into(),
        })
    })
}

/// `struct bpf_core_relo`.
pub(crate) fn relocations(bytes: &[u8], btf: &Btf) -> Option<Vec<Said<Relo>>> {
    // Objects without any have a shorter header.
    if u32_at(bytes, 4)? < 32 {
        return Some(Vec::new());
    }
    part(bytes, btf, 24, |record| {
        let spec = btf.string(u32_at(record, 8)?);
        Some(Relo {
            root: u32_at(record, 4)?,
            spec,
            kind: u32_at(record, 12)?,
        })
    })
}
