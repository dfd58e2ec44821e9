//! Fibers on real stacks, as short as it can be. What they take is this machine's business.

use serde_json::Value;

use super::support::Folder;

#[test]
fn fibers_are_measured_and_predicted_row_by_row() {
    let folder = Folder::new("fibers-rows");
    let options = "--fibers 20,64 --stack 16KB --colors auto,1 --rounds 2 --time 10us";
    let ran = folder.run(&format!("bench fibers {options} --json"));
    let lines = ran.fine();
    let rows: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let fibers: Vec<u64> = rows
        .iter()
        .map(|row| row["fibers"].as_u64().unwrap())
        .collect();
    assert_eq!(fibers, [20, 20, 64, 64]);
    for row in &rows {
        for side in ["plain", "colored"] {
            let median = row[format!("{side}_ns")]["median"].as_f64().unwrap();
            let predicted = row[side]["ns"].as_array().unwrap();
            assert!(median > 0.0 && !predicted.is_empty(), "{side}: {row}");
        }
        let ratio = &row["ratio"];
        assert!(ratio["low"].as_f64().unwrap() <= ratio["high"].as_f64().unwrap());
    }
    // One color is the plain stack.
    assert_eq!(rows[1]["colors"], 1);
    assert_eq!(rows[1]["plain"], rows[1]["colored"]);
    let table = folder.run(&format!("bench fibers {options}")).fine();
    assert!(
        table.contains("plain/colored") && table.contains("16 KB"),
        "{table}"
    );
}

#[test]
fn settings_of_which_no_fibers_can_be_made_are_refused_by_their_options() {
    let folder = Folder::new("fibers-refusals");
    for (options, named) in [
        ("--fibers 0", "--fibers"),
        ("--fibers 40000", "--fibers"),
        ("--stack 4KB", "--stack"),
        ("--stack 2GB", "--stack"),
        ("--colors 3", "--colors"),
        ("--colors few", "--colors"),
        ("--lines 9", "--lines"),
        ("--rounds 0", "--rounds"),
        ("--time 11s", "--time"),
    ] {
        let ran = folder.run(&format!("bench fibers {options}"));
        let said = (ran.code, ran.out.as_str());
        assert_eq!(said, (2, ""), "{options}: {}", ran.err);
        assert!(ran.err.contains(named), "{options}: {}", ran.err);
    }
}
