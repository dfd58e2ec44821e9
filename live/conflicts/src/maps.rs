//! Mappings of a process, as /proc/PID/maps lists them.

/// A mapping.
///
/// Invariant: `start < end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The address after its last one.
    pub end: u64,
    /// Whether it may be read and written.
    pub writable: bool,
    /// Whether it may not be touched: a guard.
    pub guard: bool,
    /// Whether it has code.
    pub executable: bool,
    /// Where in its file it begins.
    pub offset: u64,
    /// Its file, or a name in brackets; empty for anonymous memory.
    pub path: String,
}

impl Mapping {
    /// All mappings of `text`, ascending as the kernel lists them.
    pub fn all(text: &str) -> Vec<Mapping> {
        text.lines().filter_map(Mapping::of_line).collect()
    }

    /// Whether `address` lies in it.
    pub fn has(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.end - self.start
    }

    /// Whether it is memory of no file. Kernels since 5.17 show names that programs give to it.
    pub fn is_anonymous(&self) -> bool {
        self.path.is_empty() || self.path.starts_with("[anon")
    }

    /// `7f1c00000000-7f1c00021000 rw-p 00000000 00:00 0    [stack]`
    fn of_line(line: &str) -> Option<Mapping> {
        let mut rest = line;
        let mut word = || {
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = after.trim_start();
            word
        };
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (range, rights, offset) = (word(), word(), word());
        let (_device, _inode) = (word(), word());
        let (start, end) = range.split_once('-')?;
        let (start, end) = (hex(start)?, hex(end)?);
        (start < end).then(|| Mapping {
            start,
            end,
            writable: rights.starts_with("rw"),
            guard: rights.starts_with("---"),
            executable: rights.as_bytes().get(2) == Some(&b'x'),
            offset: hex(offset).unwrap_or(0),
            path: rest.trim_end().to_owned(),
        })
    }
}

/// The one of `mappings`, which are ascending, that has `address`.
pub(crate) fn holding(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let after = mappings.partition_point(|mapping| mapping.start <= address);
    let last = mappings.get(after.checked_sub(1)?)?;
    last.has(address).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_and_without_a_path() {
        let text = "\
00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a program (deleted)
7f0000000000-7f0000001000 ---p 00000000 00:00 0
7f0000001000-7f0000201000 rw-p 00000000 00:00 0 \n\
nonsense
7ffe00000000-7ffe00021000 rw-p 00000000 00:00 0                          [stack]";
        let all = Mapping::all(text);
        assert_eq!(all.len(), 4);
        assert_eq!(all[0].path, "/usr/bin/a program (deleted)");
        assert_eq!((all[0].offset, all[0].size()), (0x1000, 0x52000));
        assert!(all[0].executable && !all[2].executable);
        assert!(all[1].guard && !all[1].writable && all[1].is_anonymous());
        assert!(all[2].writable && all[2].is_anonymous());
        assert!(!all[3].is_anonymous());
        assert_eq!(holding(&all, 0x7f00_0000_1000), Some(&all[2]));
        assert_eq!(holding(&all, 0x7f00_0020_1000), None);
        assert_eq!(holding(&all, 0), None);
    }
}
