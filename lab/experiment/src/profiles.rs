//! The profiles of an experiment: one a point, of all its seeds together.

use warmq_config::Value;
use warmq_report::Profile;

use crate::experiment::{Axis, Experiment, Target};
use crate::plan::Part;
use crate::point::Point;
use crate::run::{Options, Runs};

impl Experiment {
    /// One for each point, also where there was nothing to profile; none, if nobody profiled.
    pub fn profiles(&self, options: &Options, runs: &Runs) -> Vec<Profile> {
        let profiled = |run: &Result<_, _>| {
            matches!(
                run,
                Ok(crate::Measured {
                    profile: Some(_),
                    ..
                })
            )
        };
        if !runs.0.values().any(profiled) {
            return Vec::new();
        }
        let points = self.points_of(options).into_iter();
        points
            .map(|point| self.profile_at(point, options, runs))
            .collect()
    }

    /// What else than the scheduler differs from point to point.
    fn beside_scheduler(&self, point: &Point) -> Point {
        let axes = self.parts.axes.iter();
        let differs =
            |axis: &&Axis| axis.values.len() > 1 && axis.target != Target::Name(Part::Scheduler);
        let keys: Vec<&str> = axes.filter(differs).map(|axis| axis.key.as_str()).collect();
        let of = |(key, _): &(&String, &Value)| keys.contains(&key.as_str());
        let values = point.0.iter().filter(of);
        Point(
            values
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        )
    }

    fn profile_at(&self, point: &Point, options: &Options, runs: &Runs) -> Profile {
        let extent = self.extent(options);
        let mut profile = Profile {
            scheduler: short(&self.parts.name_at(Part::Scheduler, point)),
            point: self.name_of(&self.beside_scheduler(point)),
            ..Profile::default()
        };
        for seed in &extent.seeds {
            let measured = runs.measured(&self.parts.plan(point, *seed, &extent));
            if let Some(found) = measured.and_then(|measured| measured.profile.as_ref()) {
                profile.merge(found);
            }
        }
        profile
    }
}

/// The name of a file without its folder and ending.
fn short(name: &str) -> String {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.trim_end_matches(".bpf.o").to_owned()
}
