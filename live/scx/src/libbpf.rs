//! What libbpf says: all of it and at once when asked for, else its warnings, and only once
//! something failed: it also warns of what does no harm.

use std::sync::Mutex;

use libbpf_rs::{PrintLevel, set_print};

use crate::say;

static WARNINGS: Mutex<String> = Mutex::new(String::new());

/// From now on libbpf's words go to the standard error (`verbose`), or are kept.
pub fn say(verbose: bool) {
    if verbose {
        set_print(Some((PrintLevel::Debug, |_, text| {
            say::error(text.trim_end())
        })));
    } else {
        set_print(Some((PrintLevel::Warn, |_, text| {
            if let Ok(mut warnings) = WARNINGS.lock() {
                warnings.push_str(&text);
            }
        })));
    }
}

/// Something failed: prints what was kept.
pub fn said() {
    if let Ok(mut warnings) = WARNINGS.lock() {
        say::error(std::mem::take(&mut *warnings).trim_end());
    }
}
