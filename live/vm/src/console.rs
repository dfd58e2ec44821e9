//! The kernel's console messages.

use std::collections::VecDeque;
use std::io::Read;

/// How much is kept: enough for a panic with its backtraces.
const KEPT: usize = 64 * 1024;

/// The kernel's message when it panics. The command's output does not get here.
const PANIC: &str = "Kernel panic - not syncing";

/// The end of the messages.
#[derive(Debug, Default)]
pub(crate) struct Console {
    last: VecDeque<u8>,
}

impl Console {
    /// Reads everything up to the end.
    pub(crate) fn listen(mut port: impl Read) -> Console {
        let mut console = Console::default();
        let mut chunk = [0; 4096];
        while let Ok(length @ 1..) = port.read(&mut chunk) {
            console.hear(&chunk[..length]);
        }
        console
    }

    fn hear(&mut self, said: &[u8]) {
        self.last.extend(said);
        let surplus = self.last.len().saturating_sub(KEPT);
        self.last.drain(..surplus);
    }

    pub(crate) fn panicked(&self) -> bool {
        self.text().contains(PANIC)
    }

    /// The messages, without carriage returns and colors.
    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> = self
            .last
            .iter()
            .copied()
            .filter(|byte| *byte != b'\r')
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_kept_and_a_panic_is_noticed() {
        let mut said = "noise\r\n".repeat(KEPT).into_bytes();
        let calm = Console::listen(said.as_slice());
        assert!(!calm.panicked());
        assert!(calm.text().len() <= KEPT && calm.text().ends_with("noise\n"));
        said.extend(b"Kernel panic - not syncing: for a test\r\n");
        let console = Console::listen(said.as_slice());
        assert!(console.panicked());
        assert!(
            console
                .text()
                .ends_with("noise\nKernel panic - not syncing: for a test\n")
        );
    }
}
