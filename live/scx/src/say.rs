//! Lines to people. Nobody may be reading any more (`scx_warmq | head -1`), and that must not end a scheduler.

use std::io::{self, ErrorKind, Write};

/// A line to the standard output; false when nobody reads any more.
pub fn line(text: &str) -> bool {
    put(&format!("{text}\n")).unwrap_or(false)
}

/// A line to the standard error.
pub fn error(text: &str) {
    // There is nowhere else to say that this failed.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// As it is to the standard output; false when nobody reads any more.
pub fn put(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        done => done.map(|()| true),
    }
}
