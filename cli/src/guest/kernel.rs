//! What is reported while a kernel is looked for.

use warmq_vm::Step;

use crate::output::say;
use crate::progress::Watch;

/// Reports each step: what takes long as progress until the next one, the rest as a message.
#[derive(Default)]
pub struct Reporter(Option<Watch>);

impl Reporter {
    /// Reports `step`.
    pub fn report(&mut self, step: &Step) {
        // The step before is over.
        self.0 = None;
        match step {
            Step::Broken { .. } | Step::Agreeing { .. } => {
                say(&format!("warmq: {}", sentence(step)));
            }
            step => self.0 = Some(Watch::until_done(&sentence(step))),
        }
    }
}

fn sentence(step: &Step) -> String {
    match step {
        Step::Broken { release, problem } => {
            format!("the kernel {release} in the cache is damaged and is not used: {problem}")
        }
        Step::Agreeing {
            release,
            between: [older, newer],
        } => format!(
            "the mirror has no configuration of {release}: taking what those of {older} and \
             {newer} agree on"
        ),
        Step::Listing => "looking for kernels at the mirror".to_owned(),
        Step::Downloading { release, bytes } => {
            format!(
                "downloading the kernel {release}, {} MB",
                bytes.div_ceil(1_000_000)
            )
        }
    }
}
