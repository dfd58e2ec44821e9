//! Conflicts of addresses in caches, of blocks that are named and of processes.

use serde_json::Value;

use super::support::Folder;

fn number(value: &Value, path: &str) -> u64 {
    let found = value.pointer(path).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("no number at {path} of {value}"))
}

#[test]
fn blocks_of_pages_are_found_in_one_line_of_a_page_and_are_held_when_colored() {
    let folder = Folder::new("conflicts-blocks");
    let ran = folder.run("conflicts --blocks 0x7f0000000000,16KB,100 --json");
    let found: Value = serde_json::from_str(ran.fine().trim()).expect("JSON");
    assert_eq!(found["process"], Value::Null);
    assert_eq!(number(&found, "/kinds/0/lines"), 100);
    assert_eq!(number(&found, "/kinds/0/stride"), 16 << 10);
    assert_eq!(number(&found, "/kinds/0/by_offset/0"), 100);
    // The caches are this machine's; what holds for any of them is asked.
    let least = number(&found, "/kinds/0/levels/0/least");
    assert!(least < 100 && least >= number(&found, "/kinds/0/levels/0/ways"));
    assert!(number(&found, "/kinds/0/colors") > 1);
    let missed = |which: &str| {
        let missed = &found["kinds"][0][which]["simulated"][0]["missed"]["1"];
        missed.as_f64().expect("a share")
    };
    assert!(missed("plain") > missed("colored"));
}

#[test]
fn a_command_is_started_looked_at_and_ended() {
    let folder = Folder::new("conflicts-command");
    let options = "--after 100ms --blocks 0,4KB,64 --json";
    let ran = folder.run(&format!("conflicts {options} -- sleep 600"));
    let found: Value = serde_json::from_str(ran.fine().trim()).expect("JSON");
    assert_eq!(found["process"]["name"], "sleep");
    assert_eq!(number(&found, "/process/threads"), 1);
    let pid = number(&found, "/process/pid");
    assert!(
        !std::path::Path::new(&format!("/proc/{pid}")).exists(),
        "it has ended"
    );
}

#[test]
fn addresses_that_a_profiler_sampled_are_read_as_text() {
    let rows = (1..40).map(|page| format!("  7f00{page:04x}0040\n").repeat(2));
    let folder = Folder::new("conflicts-samples").with("addr.txt", &rows.collect::<String>());
    let text = folder.run("conflicts --samples addr.txt").fine();
    assert!(text.contains("lines that samples hit: 39 lines"), "{text}");
    assert!(text.contains("line 1 by 39"), "{text}");
}

#[test]
fn few_blocks_conflict_with_nothing() {
    let folder = Folder::new("conflicts-none");
    let text = folder.run("conflicts --blocks 0,64,32").fine();
    assert!(
        text.contains("Nothing to color: level 1 holds all of them"),
        "{text}"
    );
}
