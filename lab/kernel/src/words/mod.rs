//! The words of the engine: what programs ask for, the steps that follow, reasons, settings, costs, endings.
//! They know neither the state of the system nor each other's users.

pub(crate) mod answer;
pub(crate) mod change;
pub(crate) mod costs;
pub(crate) mod ending;
pub(crate) mod figures;
pub(crate) mod group;
pub(crate) mod note;
pub(crate) mod object;
pub(crate) mod operation;
pub(crate) mod operator;
pub(crate) mod program;
pub(crate) mod reason;
pub(crate) mod settings;
pub(crate) mod spec;
pub(crate) mod step;
pub(crate) mod table;
pub(crate) mod weight;
