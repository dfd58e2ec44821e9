//! The real Simplex, as short as it can be. What it measures is this machine's business.

use serde_json::Value;

use super::support::{Folder, Ran};

/// Whether the machine cannot do it at all, and says so.
fn has_one_cpu(ran: &Ran) -> bool {
    ran.code == 6 && ran.err.contains("a CPU of its own")
}

#[test]
fn every_rate_is_measured_in_every_policy() {
    let folder = Folder::new("simplex-rows");
    let options = "--kpps 1,5 --work 0.02 --repetitions 2 --receivers 2";
    let ran = folder.run(&format!("bench simplex {options} --json"));
    if has_one_cpu(&ran) {
        return;
    }
    let rows: Vec<Value> = ran
        .fine()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told = |row: &Value| {
        (
            row["kpps"].as_u64(),
            row["policy"].as_str().unwrap().to_owned(),
        )
    };
    let (other, batch) = ("other".to_owned(), "batch".to_owned());
    let expected = [(1, &other), (1, &batch), (5, &other), (5, &batch)];
    let expected = expected.map(|(kpps, policy)| (Some(kpps), policy.clone()));
    assert_eq!(rows.iter().map(told).collect::<Vec<_>>(), expected);
    for row in &rows {
        let repetitions = row["repetitions"].as_array().unwrap();
        assert_eq!(repetitions.len(), 2);
        for it in repetitions {
            let (sent, receivers) = (it["sender"]["count"].as_u64(), &it["receivers"]);
            let got = receivers["received"].as_u64().unwrap() + receivers["lost"].as_u64().unwrap();
            assert_eq!(Some(got), sent, "what was sent arrived or was lost");
            assert!(it["simplex"]["finished_share"].as_f64().unwrap() > 0.0);
        }
        assert_eq!(row["facts"]["receivers"], 2);
        assert!(row["clusters"][0]["count"].as_u64().unwrap() >= 1);
    }
}

#[test]
fn people_get_a_table_and_what_follows() {
    let options = "--kpps 2 --work 0.01 --repetitions 1";
    let ran = Folder::new("simplex-table").run(&format!("bench simplex {options}"));
    if has_one_cpu(&ran) {
        return;
    }
    assert!(
        ran.err.contains("measurements of Simplex"),
        "progress: {}",
        ran.err
    );
    let text = ran.fine();
    for word in ["Kpps", "other", "batch", "wakeups/s", "pay", "rather than"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn settings_that_cannot_be_meant_are_refused_by_their_options() {
    let folder = Folder::new("simplex-refusals");
    for (options, named) in [
        ("--receivers 0", "--receivers"),
        ("--kpps 0", "--kpps"),
        ("--kpps 40,1001", "--kpps"),
        ("--kpps 40,40", "--kpps"),
        ("--work 0", "--work"),
        ("--payload 16", "--payload"),
        ("--repetitions 0", "--repetitions"),
        ("--time-limit 0.1", "--time-limit"),
        ("--policies batch,fifo", "--policies"),
        ("--link ether", "--link"),
    ] {
        let ran = folder.run(&format!("bench simplex {options}"));
        let told = (ran.code, ran.out.as_str());
        assert_eq!(told, (2, ""), "{options}: {}", ran.err);
        assert!(ran.err.contains(named), "{options}: {}", ran.err);
    }
}

#[test]
fn a_scheduler_that_cannot_be_loaded_is_refused_with_the_fix() {
    let ran = Folder::new("simplex-scheduler").run("bench simplex --scheduler false --kpps 1");
    if has_one_cpu(&ran) {
        return;
    }
    // Which of the three it is depends on the kernel: no sched_ext, one loaded, or a bad command.
    assert_eq!((ran.code, ran.out.as_str()), (6, ""), "{}", ran.err);
    assert!(ran.err.contains("--scheduler"), "{}", ran.err);
}
