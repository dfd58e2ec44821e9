//! Conflicts of addresses in caches, of blocks that are named and of processes.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::support::{Folder, Ran};

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
fn addresses_in_a_profile_of_perf_are_read_from_a_file_and_from_a_pipe() {
    let folder = Folder::new("conflicts-perf");
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../common/recordings/tests/recorded/touched.data.gz"
    );
    let of = |options: &str| {
        let ran = folder.run(&format!("conflicts --json --samples {options}"));
        serde_json::from_str::<Value>(ran.fine().trim()).expect("JSON")
    };
    let found = of(path);
    // 40 blocks of 16 KB, and lines of the program itself.
    assert_eq!(found["kinds"][0]["kind"], "samples");
    assert_eq!(number(&found, "/kinds/0/stride"), 16 << 10);
    assert!(number(&found, "/kinds/0/by_offset/1") >= 40);
    let mut cat = Command::new("cat")
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("cat");
    let mut piped = folder.command("conflicts --json --samples -");
    let piped = piped.stdin(cat.stdout.take().expect("a pipe")).output();
    cat.wait().expect("it ends");
    let piped = Ran::of(piped.unwrap()).fine();
    assert_eq!(
        serde_json::from_str::<Value>(piped.trim()).expect("JSON"),
        found
    );
}

#[test]
fn profiles_without_addresses_of_another_process_or_cut_off_are_refused_with_a_fix() {
    let folder = Folder::new("conflicts-profiles");
    let recorded = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../common/recordings/tests/recorded"
    );
    let whole = std::fs::read(format!("{recorded}/touched.data.gz")).unwrap();
    std::fs::write(folder.0.join("cut.data"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(folder.0.join("of.data"), whole).unwrap();
    let why = |arguments: &str| {
        let ran = folder.run(&format!("conflicts {arguments}"));
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
        ran.err
    };
    let fix = "record with data addresses";
    let scheduler = why(&format!("--samples {recorded}/perf.data.gz"));
    assert!(scheduler.contains("no sample with an address") && scheduler.contains(fix));
    let own = std::process::id();
    let other = why(&format!("{own} --samples of.data"));
    assert!(
        other.contains(&format!("of.data of process {own}: there is no sample")),
        "{other}"
    );
    let cut = why("--samples cut.data");
    assert!(
        cut.contains("cut.data: this is perf.data") && cut.contains("record it again"),
        "{cut}"
    );
}

#[test]
fn a_page_shows_how_lines_lie_over_places_and_sets_beside_the_json() {
    let folder = Folder::new("conflicts-page");
    let ran = folder.run("conflicts --blocks 0,16KB,100 --json --out page");
    assert!(ran.err.contains("page/conflicts.html"), "{}", ran.err);
    let out = Folder(folder.0.join("page"));
    assert_eq!(out.names(), ["conflicts.html", "conflicts.json"]);
    assert_eq!(out.text("conflicts.json"), ran.fine());
    let page = out.text("conflicts.html");
    for words in [
        "warmq conflicts --blocks 0,16KB,100 --json --out page",
        "lines at each place in a page, by line, as it is: 1 of 64 used, 100 at most",
        "lines in each set of level 1",
        "The sets of level 2 are not known",
    ] {
        assert!(page.contains(words), "{words}");
    }
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
