//! Spans of scheduling domains: which CPUs a CPU balances with, from near to far, and in which
//! groups.

use warmq_kernel::Attach;
use warmq_machine::CpuPlace;
use warmq_units::CpuId;

/// Which CPUs are together with one, in number order.
type SpanOf<'a> = dyn Fn(CpuId) -> Vec<CpuId> + 'a;

/// Whether CPUs at two places are together.
pub(crate) type Together = fn(CpuPlace, CpuPlace) -> bool;

/// The CPUs of a domain. `groups` divide `span`; the first is the CPU's own.
pub(crate) struct Span<L> {
    pub(crate) level: L,
    pub(crate) span: Vec<CpuId>,
    pub(crate) groups: Vec<Vec<CpuId>>,
}

/// The spans of `cpu`, the smallest first. A level that has no more CPUs than the one below is left
/// out.
pub(crate) fn spans<L: Copy>(
    attach: &Attach<'_>,
    cpu: CpuId,
    levels: &[(L, Together)],
) -> Vec<Span<L>> {
    let span_of = |together: Together, of: CpuId| -> Vec<CpuId> {
        let all = (0..attach.cpus()).map(CpuId);
        let place = attach.place(of);
        all.filter(|cpu| together(attach.place(*cpu), place))
            .collect()
    };
    let mut below: Box<SpanOf<'_>> = Box::new(|of| vec![of]);
    let mut spans = Vec::new();
    for (level, together) in levels {
        let span = span_of(*together, cpu);
        if span.len() > below(cpu).len() {
            spans.push(Span {
                level: *level,
                groups: groups(cpu, &span, &*below),
                span,
            });
            below = Box::new(|of| span_of(*together, of));
        }
    }
    spans
}

/// The CPU that is reached from `from` by going to the idlest of a domain, if `idlest_in` says one,
/// from the largest domain down. `sizes` are those of a CPU's domains, the smallest first.
pub(crate) fn descend(
    from: CpuId,
    sizes: impl Fn(CpuId) -> Vec<usize>,
    mut idlest_in: impl FnMut(CpuId, usize) -> Option<CpuId>,
) -> CpuId {
    let (mut cpu, mut domains) = (from, sizes(from));
    while let Some(size) = domains.pop() {
        if let Some(idlest) = idlest_in(cpu, domains.len()) {
            cpu = idlest;
            // Domains of the new CPU that are smaller than the one just looked at.
            domains = sizes(cpu);
            domains.retain(|of| *of < size);
        }
    }
    cpu
}

/// The groups of a span, each what `below` says of one CPU; that of `cpu` is the first, and the
/// others follow in a ring.
fn groups(cpu: CpuId, span: &[CpuId], below: &SpanOf<'_>) -> Vec<Vec<CpuId>> {
    let mut groups: Vec<Vec<CpuId>> = Vec::new();
    for other in span {
        if !groups.iter().any(|group| group.contains(other)) {
            groups.push(below(*other));
        }
    }
    let own = groups.iter().position(|group| group.contains(&cpu));
    groups.rotate_left(own.unwrap_or(0));
    groups
}
