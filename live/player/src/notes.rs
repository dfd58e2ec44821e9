//! What is not played exactly as the scenario says: a line on standard error each.

use crate::sys::process;

/// Says them, each once.
#[derive(Debug, Default)]
pub struct Notes {
    said: std::cell::RefCell<Vec<String>>,
}

impl Notes {
    /// `note: WHAT: WHY`
    pub fn say(&self, what: &str, why: &str) {
        let line = format!("note: {what}: {why}");
        let mut said = self.said.borrow_mut();
        if !said.contains(&line) {
            // One write, so that lines of several processes do not mix.
            process::complain(&format!("{line}\n"));
            said.push(line);
        }
    }
}
