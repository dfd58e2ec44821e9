//! Pipes, streams and datagrams.

use crate::support::{play, play_ms};

#[test]
fn bytes_go_through_a_pipe_that_holds_fewer() {
    let text = "
        [pipe.p]
        buffer = \"4KB\"
        [task.send]
        times = 5
        body = [{ send = \"p\", bytes = \"100KB\" }, { count = \"sent\" }]
        [task.receive]
        times = 50
        body = [{ receive = \"p\", bytes = \"10KB\" }, { count = \"received\" }]";
    let played = play_ms(text, 20_000);
    assert_eq!(
        (played.counted("sent"), played.counted("received")),
        (5, 50)
    );
}

#[test]
fn a_pipe_of_another_size_than_asked_is_said() {
    let text = "
        [pipe.p]
        buffer = \"5000B\"
        [task.both]
        times = 1
        body = [{ send = \"p\", bytes = \"1B\" }, { receive = \"p\", bytes = \"1B\" }]";
    let played = play_ms(text, 20_000);
    assert!(
        played
            .said
            .contains("note: pipe `p`: it holds 8192 bytes, not 5000"),
        "{}",
        played.said
    );
}

#[test]
fn both_ends_of_a_stream_send_and_receive() {
    let text = "
        [stream.s]
        for = { n = 3 }
        buffer = \"4KB\"
        [task.client]
        for = { n = 3 }
        times = 10
        body = [
          { begin = \"trip\" }, { send = \"s[n].near\", bytes = \"20KB\" }, { receive = \"s[n].near\", bytes = \"1B\" }, { end = \"trip\" },
        ]
        [task.server]
        for = { n = 3 }
        times = 10
        body = [{ receive = \"s[n].far\", bytes = \"20KB\" }, { send = \"s[n].far\", bytes = \"1B\" }, { count = \"served\" }]";
    let played = play_ms(text, 20_000);
    assert_eq!(
        (played.spans("trip").len(), played.counted("served")),
        (30, 30)
    );
}

#[test]
fn a_datagram_is_received_as_one() {
    let text = "
        [datagram.d]
        for = { n = 2 }
        buffer = \"64KB\"
        [datagram.back]
        [task.send]
        times = 10
        body = [{ each = \"n\", of = 2, body = [{ send = \"d[n]\", bytes = \"100B\" }, { receive = \"back\" }] }]
        [task.receive]
        for = { n = 2 }
        times = 10
        body = [{ receive = \"d[n]\" }, { count = \"received\" }, { send = \"back\", bytes = \"0B\" }]";
    assert_eq!(play_ms(text, 20_000).counted("received"), 20);
}

#[test]
fn a_datagram_that_is_too_long_ends_the_run_with_a_reason() {
    let text = "
        [datagram.d]
        [task.send]
        body = [{ send = \"d\", bytes = \"200KB\" }]
        [task.receive]
        body = [{ receive = \"d\" }]";
    let played = play(text, "--warmup 0s --time 5s");
    assert_eq!(played.code, Some(3));
    assert!(
        played
            .said
            .contains("`send`, at `task.send.body[0].send`: `d` fails: 204800 bytes are too many"),
        "{}",
        played.said
    );
}

#[test]
fn a_source_sends_no_more_than_its_packets_and_nothing_before_its_start() {
    let text = "
        [datagram.d]
        buffer = \"200KB\"
        [source.first]
        to = \"d\"
        bytes = \"20B\"
        rate = \"20000 per s\"
        packets = 45
        burst = 10
        start = \"5ms\"
        [source.second]
        to = \"d\"
        bytes = \"1B\"
        every = { exponential = \"100us\", stream = \"arrivals\" }
        packets = 30
        on = \"1ms\"
        off = \"1ms\"
        start = \"5ms\"
        [task.receive]
        times = 75
        body = [{ receive = \"d\" }, { begin = \"first\" }, { end = \"first\" }, { count = \"received\" }]";
    let played = play_ms(text, 20_000);
    assert_eq!(played.counted("received"), 75);
    assert!(played.spans("first")[0].0 >= crate::support::ms(5));
    assert!(played.said.contains("note: sources: "), "{}", played.said);
}

#[test]
fn a_source_whose_rate_rises_sends_more_and_more() {
    let text = "
        [datagram.d]
        buffer = \"1000KB\"
        [source.s]
        to = \"d\"
        bytes = \"20B\"
        rate = \"1000 per s\"
        ramp_to = \"9000 per s\"
        over = \"100ms\"
        packets = 500
        [task.receive]
        times = 500
        body = [{ receive = \"d\" }, { begin = \"got\" }, { end = \"got\" }]";
    let spans = play_ms(text, 20_000).spans("got");
    assert_eq!(spans.len(), 500);
    // Evenly rising from 1 to 9 a millisecond: 500 after 100 ms, and 150 after half of that.
    assert!(spans[499].0 >= crate::support::ms(99), "{:?}", spans[499]);
    assert!(spans[151].0 >= crate::support::ms(49), "{:?}", spans[151]);
}
