//! The set that comes with WarmQ, and what is wrong with others.

use std::collections::BTreeSet;

use warmq_experiment::judgement::{Contest, Family, Set, Setup};
use warmq_experiment::{Engine, Simulator, Used};
use warmq_law::Columns;

#[test]
fn every_figure_of_the_set_is_one_that_its_scenario_has() {
    let (set, engine) = (Set::shipped().unwrap(), Engine::default());
    let mut families = BTreeSet::new();
    for scenario in &set.scenarios {
        let workloads = vec![scenario.name.as_str()];
        let used = Used {
            workloads,
            ..Used::default()
        };
        let known = engine.metrics(&used);
        for figure in &scenario.figures {
            let is_known = known.iter().any(|metric| metric.name == figure.name);
            assert!(is_known, "{}: {}", scenario.name, figure.name);
            families.insert(figure.family);
        }
    }
    assert_eq!(families.len(), Family::ALL.len());
}

#[test]
fn every_machine_of_the_set_is_played_and_every_setting_is_known() {
    let (set, engine) = (Set::shipped().unwrap(), Engine::default());
    let setups = set.scenarios.iter().flat_map(|scenario| {
        let on = scenario.machines.iter().map(|name| {
            let machine = set.machines.iter().find(|machine| machine.name == *name);
            Setup {
                scenario: scenario.clone(),
                machine: machine.unwrap().clone(),
            }
        });
        on.collect::<Vec<_>>()
    });
    let setups: Vec<Setup> = setups.collect();
    for machine in &set.machines {
        assert!(
            setups.iter().any(|setup| setup.machine == *machine),
            "{}",
            machine.name
        );
    }
    let (count, columns) = (setups.len(), Columns::default().all().unwrap());
    let contest = Contest {
        set,
        setups,
        columns,
        seeds: vec![1, 2],
    };
    let jobs = contest
        .jobs(&engine)
        .unwrap_or_else(|wrong| panic!("{wrong:?}"));
    assert_eq!(jobs.all().len(), 2 * count);
}

#[test]
fn what_is_wrong_with_a_set_is_said_with_its_place_and_a_fix() {
    let head = "version = 1\nseeds = 3\nmargin_percent = 2\nequal_percent = 10\nmost = 10\n[machine.small]\nis = \"small-4llc\"\n";
    let scenario = "[scenario.hog]\nmachines = \"small\"\nwarmup = \"1ms\"\ntime = \"1ms\"\n";
    let figure = "figure = { name = \"hog_share\", family = \"fairness\", better = \"higher\", floor = 1 }\n";
    assert!(Set::read("set.toml", &format!("{head}{scenario}{figure}")).is_ok());
    let table = [
        (head.to_owned(), "write at least one [scenario.NAME]"),
        (format!("{head}{scenario}"), "nothing counts of it"),
        (
            format!("{head}{scenario}{figure}").replace("\"small\"\nw", "\"smal\"\nw"),
            "did you mean `small`",
        ),
        (
            format!("{head}{scenario}{figure}").replace("fairness", "luck"),
            "throughput",
        ),
        (
            format!("{head}{scenario}{figure}").replace("floor = 1", "floor = 0"),
            "a floor is above 0",
        ),
        (
            format!("{head}{scenario}{figure}").replace("most = 10", "most = 0.5"),
            "write at least 1",
        ),
        (
            format!("{head}{scenario}{figure}")
                .replace("equal_percent = 10", "equal_percent = 100"),
            "write a number below 100",
        ),
        (
            format!("{head}{scenario}{figure}").replace("seeds = 3", "seed = 3"),
            "`seeds` is missing",
        ),
    ];
    for (text, said) in table {
        let error = Set::read("set.toml", &text)
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(said) && error.contains("set.toml:"),
            "{said}: {error}"
        );
    }
}
