//! What a loader does before its scheduler attaches, as the program finds it.

use warmq_bpf::Package;
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
        ..Place::default()
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

fn packed(profile: &str) -> Result<Vec<u8>, String> {
    let profile = Profile::read(profile).expect("a profile");
    let source = Source::read(LOADER, |_| Some(profile)).expect("an object");
    let for_kernel = ("/bin/loader", "7.3");
    let packed = source.packed(LOADER, for_kernel, &facts(), &[]);
    packed.map_err(|why| why.to_string())
}

#[test]
fn a_kernel_s_loader_is_told_what_the_profile_says() {
    let more = "flags = [\"ENQ_LAST\"]\nwithout = [\"tick\"]\n\
                [set]\ntask_size = \"cpus*4\"\n\
                [[call]]\nprogram = \"arena_init\"\narguments = [8]\n\
                [[call]]\nprogram = \"arena_init\"\nafter = true\n\
                [[update]]";
    let text = PROFILE.replace("[arena]\ntask = \"data\"\n", "");
    let bytes = packed(&text.replace("[[update]]", more)).expect("packed");
    let package = Package::read(&bytes).expect("a package");
    assert_eq!(package.object, LOADER);
    let loading = package.loading;
    assert_eq!((loading.cpu, loading.entries.len()), (Some(1), 2));
    assert_eq!(loading.entries[1].value, [2, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(loading.before[0].argument, [8, 0, 0, 0]);
    assert!(loading.after[0].argument.is_empty());
    assert_eq!(loading.programs.get("loader_tick"), Some(&false));
    let written = |map: &str| {
        let writes = loading.writes.iter().filter(move |one| one.map == map);
        writes.map(|one| &one.bytes[..]).collect::<Vec<_>>()
    };
    assert_eq!(written(".bss"), [[8]]);
    let flags = u64::to_le_bytes(2);
    assert_eq!(written("loader"), [[0; 8], flags]);
}

#[test]
fn an_arena_needs_its_own_loader() {
    let refused = packed(PROFILE).expect_err("it has an arena");
    assert!(refused.contains("give its program"), "{refused}");
}

#[test]
fn an_object_is_packed_for_a_kernel_that_is_known() {
    let source = Source::read(LOADER, |_| None).expect("an object");
    let packed = source.packed(LOADER, ("/bin/loader", "6.12"), &facts(), &[]);
    let refused = packed.expect_err("there is no table").to_string();
    assert!(refused.contains("knows no kernel 6.12"), "{refused}");
}
