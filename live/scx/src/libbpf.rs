//! Messages of libbpf. With `verbose` all are printed at once. Otherwise its warnings are printed
//! only when something has failed, because libbpf also warns of harmless things.

use std::sync::Mutex;

use libbpf_rs::{PrintLevel, set_print};

use crate::say;

static WARNINGS: Mutex<String> = Mutex::new(String::new());

/// From now on libbpf's messages go to the standard error (`verbose`), or its warnings are kept.
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

/// Prints the warnings that were kept, because something failed.
pub fn said() {
    if let Ok(mut warnings) = WARNINGS.lock() {
        say::error(std::mem::take(&mut *warnings).trim_end());
    }
}
