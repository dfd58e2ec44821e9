//! Which interrupt lines are those of network cards (/sys).

use std::fs;
use std::path::Path;

/// The lines whose handlers are named after a network interface or its device, as drivers do.
pub(crate) fn network_lines() -> Vec<u32> {
    let names = network_names();
    let mut lines = Vec::new();
    for entry in fs::read_dir("/sys/kernel/irq")
        .into_iter()
        .flatten()
        .flatten()
    {
        let actions = fs::read_to_string(entry.path().join("actions")).unwrap_or_default();
        let number = entry.file_name().to_string_lossy().parse();
        if let Ok(number) = number
            && actions
                .trim()
                .split(',')
                .any(|action| names.iter().any(|name| is_of(action, name)))
        {
            lines.push(number);
        }
    }
    lines.sort_unstable();
    lines
}

fn network_names() -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten()
    {
        // Loopback and other virtual interfaces have no device.
        let Ok(device) = fs::canonicalize(entry.path().join("device")) else {
            continue;
        };
        let device = device.file_name().unwrap_or(Path::new("").as_os_str());
        let both = [entry.file_name(), device.to_owned()];
        names.extend(both.map(|name| name.to_string_lossy().into()));
    }
    names.retain(|name: &String| !name.is_empty());
    names
}

/// `eth0-rx-1` and `virtio0-input.0` are of `eth0` and `virtio0`.
fn is_of(action: &str, name: &str) -> bool {
    let rest = action.strip_prefix(name);
    rest.is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_belongs_to_the_device_that_it_is_named_after() {
        for (action, name, is) in [
            ("eth0", "eth0", true),
            ("eth0-rx-1", "eth0", true),
            ("virtio1-input.0", "virtio1", true),
            ("virtio10-input.0", "virtio1", false),
            ("rtc0", "eth0", false),
        ] {
            assert_eq!(is_of(action, name), is, "{action} {name}");
        }
    }
}
