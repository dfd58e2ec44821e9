//! Spans of scheduling domains: which CPUs a CPU balances with, from near to far, and in which
//! groups.

use warmq_units::CpuId;

/// Which CPUs are together with one, in number order.
pub(crate) type SpanOf<'a> = dyn Fn(CpuId) -> Vec<CpuId> + 'a;

/// The CPUs of a domain. `groups` divide `span`; the first is the CPU's own.
pub(crate) struct Span<L> {
    pub(crate) level: L,
    pub(crate) span: Vec<CpuId>,
    pub(crate) groups: Vec<Vec<CpuId>>,
}

/// The spans of `cpu`, the smallest first. A level that has no more CPUs than the one below is left
/// out.
pub(crate) fn spans<'a, L>(
    cpu: CpuId,
    levels: impl IntoIterator<Item = (L, &'a SpanOf<'a>)>,
) -> Vec<Span<L>> {
    let alone = |of: CpuId| vec![of];
    let mut below: &SpanOf<'_> = &alone;
    let mut spans = Vec::new();
    for (level, span_of) in levels {
        let span = span_of(cpu);
        if span.len() > below(cpu).len() {
            let groups = groups(cpu, &span, below);
            spans.push(Span {
                level,
                span,
                groups,
            });
            below = span_of;
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
