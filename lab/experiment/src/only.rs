//! The points of a sweep that somebody wants alone.

use std::collections::BTreeMap;

use warmq_config::{Pair, Value};

use crate::experiment::Experiment;
use crate::not_done::NotDone;
use crate::point::Filter;
use crate::run::Options;

impl Experiment {
    /// `options`, with only the points where each key of `wanted` has one of the values that are
    /// given for it.
    ///
    /// # Errors
    /// A key that is not swept; no such point.
    pub fn only(&self, options: Options, wanted: &[Pair]) -> Result<Options, NotDone> {
        let mut filter: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for Pair { key, value } in wanted {
            let axis = self.parts.axis(key).ok_or_else(|| self.not_swept(key))?;
            let meant = axis.values.iter().filter(|known| known.is_written(value));
            filter
                .entry(key.clone())
                .or_default()
                .extend(meant.cloned());
        }
        let only = Options {
            only: Filter(filter),
            ..options.clone()
        };
        match self.points_of(&only).is_empty() {
            true => Err(self.no_such_point(&options)),
            false => Ok(only),
        }
    }

    fn not_swept(&self, key: &str) -> NotDone {
        let axes = self.parts.axes.iter();
        let keys = itertools::join(axes.map(|axis| &axis.key), ", ");
        let help = format!("the sweep has {keys}");
        NotDone::Usage(format!("--point: `{key}` is not swept"), help)
    }

    fn no_such_point(&self, options: &Options) -> NotDone {
        let points = self.points_of(options).into_iter();
        let names = itertools::join(points.map(|point| self.name_of(point)), "; ");
        let help = format!("use one of: {names}");
        NotDone::Usage("--point: the sweep has no such point".to_owned(), help)
    }
}
