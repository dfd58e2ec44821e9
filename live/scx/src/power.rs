//! Who chooses clock frequencies.

use std::fs;
use std::path::Path;

/// Whether the kernel asks schedulers: a CPU's governor is schedutil. `root` is "/", or a recorded
/// tree.
pub fn asks_schedulers(root: &Path) -> bool {
    let Ok(policies) = fs::read_dir(root.join("sys/devices/system/cpu/cpufreq")) else {
        return false;
    };
    policies.flatten().any(|policy| {
        let governor = fs::read_to_string(policy.path().join("scaling_governor"));
        governor.is_ok_and(|name| name.trim() == "schedutil")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(governors: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for (number, governor) in governors.iter().enumerate() {
            let policy = format!("sys/devices/system/cpu/cpufreq/policy{number}");
            let policy = root.path().join(policy);
            fs::create_dir_all(&policy).expect("a folder");
            fs::write(policy.join("scaling_governor"), format!("{governor}\n")).expect("a file");
        }
        root
    }

    #[test]
    fn schedulers_are_asked_where_a_governor_is_schedutil() {
        let asks = |governors| asks_schedulers(machine(governors).path());
        assert!(!asks(&[]));
        assert!(!asks(&["performance", "powersave"]));
        assert!(asks(&["performance", "schedutil"]));
    }
}
