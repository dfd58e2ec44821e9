//! What is decided of a table of sources before anything is made.

use warmq_scenario::{Arrivals, Bound, ObjectId, ObjectKind, Source};

use crate::program::{Compiler, Draws, Program};

/// The compiled arrivals of a table of sources.
#[derive(Clone, Debug)]
pub struct SourceProgram {
    /// The table.
    pub id: ObjectId,
    /// What the scenario says.
    pub source: Source,
    /// The number of its first source among all sources.
    pub first: usize,
    /// Where the time between bursts is drawn, and its streams.
    pub(super) every: Option<Draws>,
    pub(super) program: Program,
}

/// Compiles all sources of a scenario.
pub fn compile(bound: &Bound, compiler: &mut Compiler<'_>) -> Vec<SourceProgram> {
    let mut first = 0;
    let mut compiled = Vec::new();
    for (id, object) in (0..).map(ObjectId).zip(bound.scenario().objects()) {
        let ObjectKind::Source(source) = &object.kind else {
            continue;
        };
        let mut program = Program::default();
        let every = match &source.arrivals {
            Arrivals::Every(amount) => Some(compiler.draws(amount, &mut program)),
            Arrivals::Rate(_) => None,
            Arrivals::Listed(_) => unreachable!("a source with gaps is not played"),
        };
        compiled.push(SourceProgram {
            id,
            source: source.clone(),
            first,
            every,
            program,
        });
        first += bound.objects(id) as usize;
    }
    compiled
}
