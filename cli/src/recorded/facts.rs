//! What a recording of this machine is of.

use std::fs;

use warmq_trace::Header;

use crate::failure::Failure;
use crate::machines;

/// The header of its trace.
///
/// # Errors
/// /sys does not describe this machine.
pub fn header() -> Result<Header, Failure> {
    let machine = machines::host()?;
    Ok(Header {
        world: "host".to_owned(),
        kernel: text("/proc/sys/kernel/osrelease"),
        scheduler: match text("/sys/kernel/sched_ext/root/ops").as_str() {
            "" => "kernel".to_owned(),
            loaded => loaded.to_owned(),
        },
        clock: "monotonic".to_owned(),
        preemption: chosen(&text("/sys/kernel/debug/sched/preempt"))
            .unwrap_or_default()
            .to_owned(),
        places: machine.cpus.iter().map(|cpu| (cpu.core, cpu.llc)).collect(),
        machine: machine.title,
        ..Header::default()
    })
}

fn text(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.trim().to_owned()
}

/// The model in parentheses: `none voluntary (full) lazy`.
fn chosen(models: &str) -> Option<&str> {
    let (_, rest) = models.split_once('(')?;
    rest.split_once(')').map(|(model, _)| model)
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn the_model_in_parentheses_is_the_one_that_is_used() {
        assert_eq!(chosen("none voluntary (full) lazy"), Some("full"));
        assert_eq!(chosen(""), None);
    }
}
