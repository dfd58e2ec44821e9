//! The runs of an experiment in order, by number: point by point, seed by seed.

use crate::experiment::{Experiment, Extent};
use crate::grid::Grid;
use crate::point::Point;
use crate::run::{Job, Options};

/// The runs that an experiment needs. Each is made when it is asked for, so that the list of a
/// large sweep takes no memory.
pub struct Jobs<'e> {
    experiment: &'e Experiment,
    extent: Extent,
    points: Points<'e>,
}

enum Points<'e> {
    Listed(Vec<&'e Point>),
    Grid(Grid),
}

impl Experiment {
    /// The runs that this experiment needs, in order.
    pub fn job_list(&self, options: &Options) -> Jobs<'_> {
        let points = match &self.grid {
            Some(grid) if options.quick => {
                Points::Grid(grid.filtered(&self.quick_points).filtered(&options.only))
            }
            Some(grid) => Points::Grid(grid.filtered(&options.only)),
            None => Points::Listed(self.points_of(options)),
        };
        Jobs {
            experiment: self,
            extent: self.extent(options),
            points,
        }
    }
}

impl Jobs<'_> {
    /// Points that are run.
    pub fn points(&self) -> u64 {
        match &self.points {
            Points::Listed(points) => points.len() as u64,
            Points::Grid(grid) => grid.count(),
        }
    }

    /// Seeds and times of the runs.
    pub fn extent(&self) -> &Extent {
        &self.extent
    }

    /// Runs, counting equal plans at different points each.
    pub fn count(&self) -> u64 {
        self.points() * self.extent.seeds.len() as u64
    }

    /// The run with this number, counted from 0; none if there are fewer.
    pub fn get(&self, number: u64) -> Option<Job> {
        let seeds = self.extent.seeds.len() as u64;
        let seed = self.extent.seeds[(number % seeds) as usize];
        let point = match &self.points {
            Points::Listed(points) => (*points.get((number / seeds) as usize)?).clone(),
            Points::Grid(grid) => grid.point(number / seeds)?,
        };
        let experiment = self.experiment;
        Some(Job {
            plan: experiment.parts.plan(&point, seed, &self.extent),
            name: format!("{}: {}", experiment.id, experiment.name_of(&point)),
            point,
        })
    }

    /// All runs, in order.
    pub fn iter(&self) -> impl Iterator<Item = Job> {
        (0..self.count()).map_while(|number| self.get(number))
    }
}
