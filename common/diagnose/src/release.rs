//! Which kernel a trace is of.

use warmq_trace::Header;
use warmq_units::Release;

/// The kernel whose scheduler a trace is of, and what it is called there; the lab's schedulers are
/// named after kernels.
pub(crate) fn kernel_of(header: &Header) -> Option<(&str, Release)> {
    let simulated = header.scheduler.strip_prefix("eevdf-");
    let name = match simulated {
        Some(_) => &header.scheduler,
        None => &header.kernel,
    };
    let release = Release::at_start_of(simulated.unwrap_or(&header.kernel))?;
    Some((name, release))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_of_a_kernel_or_of_a_scheduler_that_is_named_after_one() {
        let of = |kernel: &str, scheduler: &str| {
            let header = Header {
                kernel: kernel.to_owned(),
                scheduler: scheduler.to_owned(),
                ..Header::default()
            };
            kernel_of(&header).map(|(name, release)| (name.to_owned(), release.minor))
        };
        assert_eq!(of("6.12.1", "kernel"), Some(("6.12.1".to_owned(), 12)));
        let simulated = Some(("eevdf-6.18".to_owned(), 18));
        assert_eq!(of("modern", "eevdf-6.18"), simulated);
        assert_eq!(of("", "o1"), None);
    }
}
