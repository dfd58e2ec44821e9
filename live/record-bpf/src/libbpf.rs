//! Messages of libbpf. They are printed only when something has failed, because libbpf also warns
//! of harmless things.

use std::sync::Mutex;

use libbpf_rs::{PrintLevel, set_print};

/// The last of them are kept: a verifier can be talkative, and says why it refused at the end.
const KEPT: usize = 4_000;

static WARNINGS: Mutex<String> = Mutex::new(String::new());

/// From now on libbpf's warnings are kept.
pub fn keep() {
    set_print(Some((PrintLevel::Warn, |_, text| {
        if let Ok(mut warnings) = WARNINGS.lock() {
            warnings.push_str(&text);
        }
    })));
}

/// Prints the warnings that were kept.
pub fn said() {
    if let Ok(warnings) = WARNINGS.lock() {
        let from = warnings.len().saturating_sub(KEPT);
        let from = (from..).find(|at| warnings.is_char_boundary(*at));
        for line in warnings[from.unwrap_or(0)..].lines() {
            eprintln!("  {line}");
        }
    }
}
