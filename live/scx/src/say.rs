//! Output. The reader may be gone (`scx_warmq | head -1`), which must not end a scheduler.

use std::io::{self, ErrorKind, Write};

/// Prints a line to the standard output; false if the reader is gone.
pub fn line(text: &str) -> bool {
    put(&format!("{text}\n")).unwrap_or(false)
}

/// Prints a line to the standard error.
pub fn error(text: &str) {
    // There is nowhere else to report that this failed.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints a text as it is to the standard output; false if the reader is gone.
pub fn put(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        done => done.map(|()| true),
    }
}
