//! The steps of a task in a row: loops are jumps, so that a task needs no recursion to run them.

use std::sync::Arc;

use warmq_scenario::{Action, Bound, Expr, Moment, Recorded, Step};

use super::inbox::Parts;

/// One thing that a task does next.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// A step other than a loop.
    Do(Action),
    /// Does what was recorded; the actions are those that moments name.
    Row {
        moments: Arc<[Moment]>,
        parts: Parts,
        actions: Vec<Option<Action>>,
    },
    /// Begins a loop: its counter takes a new slot. `after` is the first op behind its [`Op::Again`].
    Repeat {
        times: Expr,
        except: Option<Expr>,
        after: usize,
    },
    /// The end of a loop's body, which begins at `first`.
    Again { first: usize },
}

/// What a task does, from its first op to its last, over and over or once.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    pub(super) ops: Vec<Op>,
}

impl Program {
    /// Those of `steps` that the settings ask for.
    pub(super) fn of(steps: &[Step], bound: &Bound) -> Program {
        let mut program = Program::default();
        program.append(steps, bound);
        program
    }

    fn append(&mut self, steps: &[Step], bound: &Bound) {
        for step in steps.iter().filter(|step| bound.holds(step.when)) {
            match &step.action {
                Action::Repeat {
                    times,
                    except,
                    body,
                } => {
                    let at = self.ops.len();
                    // `after` is known when the body is there.
                    self.ops.push(Op::Again { first: at });
                    self.append(body, bound);
                    self.ops.push(Op::Again { first: at + 1 });
                    self.ops[at] = Op::Repeat {
                        times: times.clone(),
                        except: except.clone(),
                        after: self.ops.len(),
                    };
                }
                Action::Recorded(row) => {
                    let Recorded { moments, steps, .. } = row;
                    let action = |step: &Step| bound.holds(step.when).then(|| step.action.clone());
                    self.ops.push(Op::Row {
                        moments: moments.clone(),
                        parts: Parts::of(row),
                        actions: steps.iter().map(action).collect(),
                    });
                }
                action => self.ops.push(Op::Do(action.clone())),
            }
        }
    }
}
