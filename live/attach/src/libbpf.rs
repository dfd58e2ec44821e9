//! What libbpf says. It is printed only when something has failed, because libbpf also warns of
//! harmless things.

use std::sync::Mutex;

use libbpf_rs::{PrintLevel, set_print};

/// So many lines are printed; whoever starts schedulers repeats a few of the last.
const LINES: usize = 4;
/// Lines that say nothing of why, behind which the verifier's reason would be lost.
const NOISE: &[&str] = &[
    "PROG LOAD LOG",
    "BPF program load failed",
    "failed to load object",
    "mark_read",
];

static SAID: Mutex<String> = Mutex::new(String::new());

/// From now on its warnings are kept.
pub fn keep() {
    set_print(Some((PrintLevel::Warn, |_, text| {
        if let Ok(mut said) = SAID.lock() {
            said.push_str(&text);
        }
    })));
}

/// Prints the last of what was kept.
pub fn print() {
    let said = SAID.lock().map(|said| said.clone()).unwrap_or_default();
    for line in last(&said) {
        eprintln!("{line}");
    }
}

fn last(said: &str) -> Vec<&str> {
    let is_noise = |line: &&str| NOISE.iter().any(|noise| line.contains(noise));
    let lines: Vec<&str> = said.lines().filter(|line| !is_noise(line)).collect();
    lines[lines.len().saturating_sub(LINES)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::last;

    #[test]
    fn the_verifier_s_reason_is_among_the_last_lines() {
        let said = "libbpf: x\nlibbpf: prog 'a': BPF program load failed: -EACCES\n\
                    libbpf: prog 'a': -- BEGIN PROG LOAD LOG --\n0: R1=ctx()\n\
                    R1 invalid mem access 'scalar'\nprocessed 16 insns (limit 1000000) mark_read 0\n\
                    -- END PROG LOAD LOG --\nlibbpf: prog 'a': failed to load: -EACCES\n\
                    libbpf: failed to load object 'x'\n";
        let expected = [
            "libbpf: x",
            "0: R1=ctx()",
            "R1 invalid mem access 'scalar'",
            "libbpf: prog 'a': failed to load: -EACCES",
        ];
        assert_eq!(last(said), expected);
        assert!(last("").is_empty());
    }
}
