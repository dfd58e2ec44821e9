//! Fragments, as short as they can be. How fast they are is this machine's business.

use serde_json::Value;

use super::support::Folder;

const TINY: &str = "bench fragments --threads 3,5 --fragments 2 --size 10,100 --iterations 5000";

#[test]
fn every_case_is_measured_in_every_mode() {
    let folder = Folder::new("fragments-rows");
    let ran = folder.run(&format!("{TINY} --repetitions 2 --json"));
    let rows: Vec<Value> = ran
        .fine()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut expected = Vec::new();
    for (threads, size) in [(3, 10), (3, 100), (5, 10), (5, 100)] {
        for mode in ["plain", "bound", "hinted"] {
            expected.push((threads, size, mode.to_owned()));
        }
    }
    let number = |row: &Value, key: &str| row[key].as_u64().unwrap();
    let mode = |row: &Value| row["mode"].as_str().unwrap().to_owned();
    let cases = rows
        .iter()
        .map(|row| (number(row, "threads"), number(row, "size"), mode(row)));
    assert_eq!(cases.collect::<Vec<_>>(), expected);
    for row in &rows {
        let elapsed = row["elapsed_s"]["median"].as_f64().unwrap();
        let share = row["together"]["median"].as_f64().unwrap();
        assert!(elapsed > 0.0 && share > 0.0 && share <= 1.0, "{row}");
        assert_eq!(row["against_plain"].is_null(), mode(row) == "plain");
        assert_eq!(
            (number(row, "repetitions"), row["cut"].as_bool()),
            (2, Some(false))
        );
        if mode(row) == "bound" {
            assert_eq!(
                (share, row["moves"]["max"].as_f64()),
                (1.0, Some(0.0)),
                "{row}"
            );
        }
    }
}

#[test]
fn the_table_says_what_follows_for_each_mode() {
    let folder = Folder::new("fragments-table");
    let text = folder.run(&format!("{TINY} --repetitions 2")).fine();
    for said in [
        "3 threads, size 10, bound: ",
        "5 threads, size 100, hinted: ",
        "times plain",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let rounds = text.contains("too few repetitions to tell: at least 6 are needed");
    assert!(rounds, "{text}");
}

#[test]
fn a_thousand_threads_are_no_trouble() {
    let folder = Folder::new("fragments-many");
    let options =
        "--threads 1000 --size 100 --iterations 100 --repetitions 1 --modes hinted --json";
    let row: Value =
        serde_json::from_str(&folder.run(&format!("bench fragments {options}")).fine()).unwrap();
    assert_eq!(
        (row["threads"].as_u64(), row["mode"].as_str()),
        (Some(1000), Some("hinted"))
    );
    assert!(
        row["against_plain"].is_null(),
        "there is nothing to compare with"
    );
}

#[test]
fn the_time_limit_ends_it_with_a_word_on_the_mend() {
    let folder = Folder::new("fragments-limit");
    let ran =
        folder.run("bench fragments --threads 4 --iterations 1000000000000 --time-limit 50ms");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
    assert!(
        ran.err.contains("write a longer --time-limit"),
        "{}",
        ran.err
    );
}
