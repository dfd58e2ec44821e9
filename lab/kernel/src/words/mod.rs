//! The words of the engine: what programs ask for, the steps that follow, reasons, settings, costs,
//! endings. They know nothing of the state of the system.

mod answer;
mod change;
mod costs;
mod ending;
mod figures;
mod group;
mod note;
mod object;
mod operation;
mod operator;
mod program;
mod reason;
mod settings;
mod spec;
mod step;
mod table;
mod timer;
mod weight;

pub(crate) use self::table::*;
pub use self::{
    answer::*, change::*, costs::*, ending::*, figures::*, group::*, note::*, object::*,
    operation::*, operator::*, program::*, reason::*, settings::*, spec::*, step::*, timer::*,
    weight::*,
};
