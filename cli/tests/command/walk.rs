//! The real walk, as short as it can be. What it measures is this machine's business.

use serde_json::Value;

use super::support::Folder;

#[test]
fn a_walk_is_measured_and_simulated_row_by_row() {
    let folder = Folder::new("walk-rows");
    let options = "--blocks 16,64 --colors 1,4 --repetitions 1 --min-time 10us --search-time 0s";
    let ran = folder.run(&format!("bench walk {options} --json --out page"));
    let rows: Vec<Value> = ran
        .fine()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let pairs: Vec<(u64, u64)> = rows
        .iter()
        .map(|row| {
            (
                row["blocks"].as_u64().unwrap(),
                row["colors"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(pairs, [(16, 1), (16, 4), (64, 1), (64, 4)]);
    for row in &rows {
        let measured = row["ns_per_visit"]["median"].as_f64().unwrap();
        // Nobody looked for the sets, so that there is a range and no number.
        assert_eq!(row["facts"]["sets"]["by"], "unknown");
        assert_eq!(row["facts"]["sets"]["why"], "not_asked");
        assert!(row.get("simulated").is_none() && row.get("simulated_over_measured").is_none());
        let number = |name: &str, field: &str| row[name][field].as_f64().unwrap();
        let least = number("simulated_least", "ns_per_visit");
        let most = number("simulated_most", "ns_per_visit");
        assert!(measured > 0.0 && 0.0 < least && least <= most);
        let ratio = row["simulated_over_measured_most"].as_f64().unwrap();
        assert!((ratio - most / measured).abs() < 1e-9);
        assert!(row["needed_colors"].as_u64().unwrap() >= 1);
        let levels = |when: &str| row[when].as_array().unwrap().len();
        assert!(levels("latencies") > 0);
        assert_eq!(levels("latencies"), levels("latencies_after"));
    }
    let page = folder.text("page/report.html");
    assert!(page.contains("measured") && page.contains("simulated"));
}

#[test]
fn settings_of_which_no_walk_can_be_made_are_refused_by_their_options() {
    let folder = Folder::new("walk-refusals");
    for (options, named) in [
        ("--colors 3", "--colors"),
        ("--blocks 0", "--blocks"),
        ("--block-size 3KB", "--block-size"),
        ("--lines 0", "--lines"),
        ("--repetitions 0", "--repetitions"),
        ("--color-bits 2 --colors 1,4", "--color-bits"),
        ("--min-time 1ns", "--min-time"),
        ("--search-time 11min", "--search-time"),
        ("--search-time 700s", "--search-time"),
    ] {
        let ran = folder.run(&format!("bench walk {options}"));
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (2, ""),
            "{options}: {}",
            ran.err
        );
        assert!(ran.err.contains(named), "{options}: {}", ran.err);
    }
    let absent = folder.run("bench walk --cpu 65000");
    assert!(absent.code == 6 || absent.code == 2, "{}", absent.err);
    assert!(absent.err.contains("65000"), "{}", absent.err);
}
