//! In which order everything is measured.

use super::policy::Policy;
use super::settings::SimplexSettings;

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Whether the scheduler of the settings is loaded.
    pub loaded: bool,
    /// Thousand datagrams a second; `None` for Simplex alone.
    pub kpps: Option<u32>,
    /// The receivers' policy.
    pub policy: Policy,
}

/// The measurements of repetition `repetition`, from 0 on: Simplex alone first, then each rate with
/// all policies one after the other. Who begins changes from one repetition to the next, so that a
/// machine that grows faster or slower is nobody's gain.
pub fn cells(settings: &SimplexSettings, repetition: u32) -> Vec<Cell> {
    let mut states = vec![false];
    states.extend(settings.scheduler.is_some().then_some(true));
    let policies = rotated(&settings.policies, repetition);
    let mut cells = Vec::new();
    for loaded in rotated(&states, repetition) {
        let cell = |kpps| {
            move |policy| Cell {
                loaded,
                kpps,
                policy,
            }
        };
        cells.extend(policies.iter().copied().take(1).map(cell(None)));
        for kpps in &settings.kpps {
            cells.extend(policies.iter().copied().map(cell(Some(*kpps))));
        }
    }
    cells
}

fn rotated<T: Clone>(list: &[T], by: u32) -> Vec<T> {
    let mut list = list.to_vec();
    let by = by as usize % list.len().max(1);
    list.rotate_left(by);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(scheduler: bool) -> SimplexSettings {
        SimplexSettings {
            kpps: vec![5, 40],
            scheduler: scheduler.then(|| "scx".to_owned()),
            ..SimplexSettings::default()
        }
    }

    fn told(cells: &[Cell]) -> String {
        let one = |cell: &Cell| {
            let kpps = cell.kpps.map_or("solo".to_owned(), |kpps| kpps.to_string());
            format!(
                "{}{kpps}{}",
                if cell.loaded { "+" } else { "" },
                cell.policy
            )
        };
        cells.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn who_begins_changes() {
        let plain = settings(false);
        assert_eq!(
            told(&cells(&plain, 0)),
            "soloother 5other 5batch 40other 40batch"
        );
        assert_eq!(
            told(&cells(&plain, 1)),
            "solobatch 5batch 5other 40batch 40other"
        );
        assert_eq!(cells(&plain, 0), cells(&plain, 2));
    }

    #[test]
    fn the_scheduler_is_loaded_once_a_repetition() {
        for repetition in 0..4 {
            let cells = cells(&settings(true), repetition);
            let changes = cells
                .windows(2)
                .filter(|two| two[0].loaded != two[1].loaded);
            assert_eq!(changes.count(), 1);
            assert_eq!(
                cells.iter().filter(|cell| cell.loaded).count(),
                cells.len() / 2
            );
            assert_eq!(cells[0].loaded, repetition % 2 == 1);
        }
    }
}
