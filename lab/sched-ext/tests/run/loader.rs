//! What a loader does before its scheduler attaches, as the program finds it.

use warmq_kernel::Boot;
use warmq_sched_ext::{Facts, Place, Profile, Source};

use crate::stage::*;

const LOADER: &[u8] = include_bytes!("../programs/loader.bpf.o");

const PROFILE: &str = r#"
name = "loader"
source = "ours"
runs_on = "last_cpu"

[arena]
task = "data"

[[update]]
map = "entries"
each = "cpu"
key = ["cpu"]
value = ["cpu*2", "nodes"]
"#;

/// Two cores without threads, each under a cache of its own.
fn facts() -> Facts {
    let place = |cpu| Place {
        core: cpu,
        llc: cpu,
        node: 0,
    };
    Facts::of_places((0..2).map(place).collect())
}

/// Of two CPUs: one node, two caches, two cores, two CPUs; their masks are 3, 3, 1, 2, 1, 2, 1, 2.
/// One task alone is kept once its first slice, of 20 ms, has ended.
#[test]
fn the_program_finds_what_its_loader_did() {
    let profile = Profile::read(PROFILE).expect("a profile");
    let source = Source::read(LOADER, |_| Some(profile)).expect("an object");
    let loaded = source.load("7.3", &facts(), &[]).expect("it fits");
    let workload = |boot: &mut Boot<'_>| hog(boot, called("a"));
    let said = said(&play(loaded, 2, 1_000, &workload));
    let expected = "bound to 1, entry 21, task 40, levels 1211, nodes 8 of 33121212, clocks 1";
    let counts = said
        .strip_prefix(expected)
        .unwrap_or_else(|| panic!("{said}"));
    assert_eq!(counts, ", counts 1 2");
}

#[test]
fn an_entry_that_does_not_fit_its_map_is_refused() {
    let text = PROFILE.replace("[\"cpu*2\", \"nodes\"]", "[\"cpu\"]");
    let profile = Profile::read(&text).expect("a profile");
    let source = Source::read(LOADER, |_| Some(profile)).expect("an object");
    let loaded = source.load("7.3", &facts(), &[]).expect("it fits");
    let refused = refused(loaded, 2);
    assert!(
        refused.contains("writes entries of the map entries"),
        "{refused}"
    );
}
