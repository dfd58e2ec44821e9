//! The chat, as short as it can be, in two real processes.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use super::support::{Folder, Ran};

const TINY: &str = "bench chat --rooms 1,3 --users 4 --messages 10 --size 50 --repetitions 2";

#[test]
fn every_message_is_delivered_in_every_mode() {
    let folder = Folder::new("chat-rows");
    let ran = folder.run(&format!("{TINY} --json"));
    let rows: Vec<Value> = ran
        .fine()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let seen: Vec<(u64, &str)> = rows
        .iter()
        .map(|row| {
            (
                row["rooms"].as_u64().unwrap(),
                row["mode"].as_str().unwrap(),
            )
        })
        .collect();
    let modes = |rooms| ["plain", "bound", "hinted"].map(|mode| (rooms, mode));
    assert_eq!(seen, [modes(1), modes(3)].concat());
    for row in &rows {
        let delivered = row["rooms"].as_u64().unwrap() * 4 * 4 * 10;
        assert_eq!(row["delivered"].as_u64(), Some(delivered));
        let latency = |name: &str| row["latency_us"][name]["median"].as_f64().unwrap();
        let in_order = [
            latency("p50"),
            latency("p99"),
            latency("p999"),
            latency("max"),
        ];
        assert!(in_order.is_sorted() && in_order[0] > 0.0, "{row}");
        assert_eq!(row["against_plain"].is_null(), row["mode"] == "plain");
    }
}

#[test]
fn the_table_says_what_follows_for_each_mode() {
    let text = Folder::new("chat-table").run(TINY).fine();
    for said in [
        "1 room, bound: ",
        "3 rooms, hinted: ",
        "times plain",
        "p99.9",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn the_time_limit_ends_both_processes() {
    let folder = Folder::new("chat-limit");
    // Standard error is the server's as well: that it is read to its end means that both are gone.
    let ran = folder.run("bench chat --rooms 2 --messages 100000000 --time-limit 200ms");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
    assert!(
        ran.err.contains("write a longer --time-limit"),
        "{}",
        ran.err
    );
}

#[test]
fn a_server_without_a_client_ends() {
    let folder = Folder::new("chat-server");
    let order = r#"{"case":{"rooms":1,"users":1,"messages":1,"size":20},"mode":"plain","token":1}"#;
    for (input, answer) in [
        ("", "failed"),
        ("nonsense\n", "failed"),
        (order, "listening"),
    ] {
        let mut command = folder.command("bench chat-server");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(format!("{input}\n").as_bytes()).unwrap();
        drop(stdin);
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert!(ran.out.contains(answer), "{input}: {}", ran.out);
    }
}
