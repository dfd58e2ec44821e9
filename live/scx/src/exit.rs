//! Why the kernel ended the scheduler, as the BPF program recorded it.

use std::mem::offset_of;

use crate::bpf_skel::types::{data, user_exit_info};

/// The kernel's scx_exit_kind: from this value on, the scheduler is at fault.
const FIRST_FAULT: i32 = 1024;

/// The end of a scheduler that did not end itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    kind: i32,
    code: u64,
    /// The kernel's reason.
    reason: String,
    /// The details, which may be empty.
    message: String,
    /// The kernel's dump of tasks and CPUs.
    pub dump: String,
}

impl Exit {
    /// Reads it from a copy of the program's .data and of its dump. `None` while the program runs.
    pub fn read(section: &[u8], dump: impl FnOnce() -> Vec<u8>) -> Option<Exit> {
        let recorded = section.get(offset_of!(data, uei)..)?;
        let kind = i32::from_ne_bytes(field(recorded, offset_of!(user_exit_info, kind))?);
        if kind == 0 {
            return None;
        }
        Some(Exit {
            kind,
            code: u64::from_ne_bytes(field(recorded, offset_of!(user_exit_info, exit_code))?),
            reason: text(recorded.get(offset_of!(user_exit_info, reason)..)?),
            message: text(recorded.get(offset_of!(user_exit_info, msg)..)?),
            dump: text(&dump()),
        })
    }

    /// The scheduler broke a rule, stalled, or failed.
    pub fn is_fault(&self) -> bool {
        self.kind >= FIRST_FAULT
    }

    /// The kernel asks to load it again, because CPUs went online or offline.
    pub fn asks_for_restart(&self, restart: u64) -> bool {
        !self.is_fault() && self.code & restart != 0
    }

    /// The reason and its details.
    pub fn why(&self) -> String {
        match (self.reason.as_str(), self.message.as_str()) {
            ("", "") => format!("kind {}, code {:#x}", self.kind, self.code),
            (reason, "") => reason.to_owned(),
            (reason, message) => format!("{reason} ({message})"),
        }
    }
}

/// For how many cgroups a quota was set that is not obeyed, from a copy of the program's .data.
pub fn quotas_refused(section: &[u8]) -> u64 {
    field(section, offset_of!(data, quotas_refused)).map_or(0, u64::from_ne_bytes)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

/// Up to the first zero, whatever the kernel wrote.
fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESTART: u64 = 1 << 48;

    fn recorded(kind: i32, code: u64, reason: &str, message: &str) -> Option<Exit> {
        let mut section = vec![0; size_of::<data>()];
        let mut put = |at: usize, bytes: &[u8]| {
            let at = offset_of!(data, uei) + at;
            section[at..at + bytes.len()].copy_from_slice(bytes);
        };
        put(offset_of!(user_exit_info, kind), &kind.to_ne_bytes());
        put(offset_of!(user_exit_info, exit_code), &code.to_ne_bytes());
        put(offset_of!(user_exit_info, reason), reason.as_bytes());
        put(offset_of!(user_exit_info, msg), message.as_bytes());
        Exit::read(&section, || b"tasks\0rest".to_vec())
    }

    #[test]
    fn one_that_runs_has_no_exit() {
        assert_eq!(recorded(0, 0, "", ""), None);
        assert_eq!(Exit::read(&[], Vec::new), None);
    }

    #[test]
    fn hotplug_asks_for_a_restart_and_a_fault_never_does() {
        let exit = recorded(
            66,
            RESTART | 1 << 32,
            "unregistered from the main kernel",
            "cpu 1 online",
        );
        let exit = exit.expect("it ended");
        assert!(exit.asks_for_restart(RESTART) && !exit.is_fault());
        assert_eq!(
            exit.why(),
            "unregistered from the main kernel (cpu 1 online)"
        );
        let stall = recorded(1026, RESTART, "runnable task stall", "").expect("it ended");
        assert!(stall.is_fault() && !stall.asks_for_restart(RESTART));
        assert_eq!(stall.why(), "runnable task stall");
        assert_eq!(stall.dump, "tasks");
    }

    #[test]
    fn refused_quotas_are_read_beside_it() {
        let mut section = vec![0; size_of::<data>()];
        assert_eq!(quotas_refused(&section), 0);
        section[offset_of!(data, quotas_refused)] = 3;
        assert_eq!(quotas_refused(&section), 3);
        assert_eq!(quotas_refused(&[]), 0);
    }

    #[test]
    fn an_exit_without_words_shows_its_numbers() {
        assert_eq!(
            recorded(67, 3, "", "").expect("it ended").why(),
            "kind 67, code 0x3"
        );
    }
}
