//! Objects of our own, compiled by scripts/bpf-programs.sh, fitted to kernels.

use std::collections::BTreeSet;

use warmq_bpf::{
    Image, KernelTable, MapKind, Object, Offer, Program, ProgramKind, SpecialKind, To, Unreadable,
    What,
};

const FITTED: &[u8] = include_bytes!("../programs/fitted.bpf.o");
const LACKING: &[u8] = include_bytes!("../programs/lacking.bpf.o");
const SIZED: &[u8] = include_bytes!("../programs/sized.bpf.o");
const MAPS: &[u8] = include_bytes!("../../../../lab/bpf-run/tests/programs/maps.bpf.o");

/// All fields, arrays, and one kfunc.
fn offer() -> Offer {
    Offer {
        kfuncs: BTreeSet::from(["scx_bpf_kick_cpu".to_owned()]),
        maps: BTreeSet::from([MapKind::Array.number()]),
        events: BTreeSet::from(["tp_btf/sched_switch".to_owned()]),
        ..Offer::default()
    }
}

fn kernel(series: &str) -> KernelTable {
    KernelTable::of(series).expect("a table")
}

fn fit(object: &Object, series: &str) -> Image {
    let image = object.fit(&kernel(series), &offer());
    image.unwrap_or_else(|missing| panic!("{missing:?}"))
}

fn fitted() -> Object {
    Object::read(FITTED).expect("an object")
}

/// Code and offset of each live instruction of a program.
fn live<'i>(image: &'i Image, name: &str) -> impl Iterator<Item = &'i warmq_bpf::Insn> {
    let function = image.program(name).expect("a program").function;
    let function = &image.functions[function as usize];
    let range = function.start as usize..function.end as usize;
    range.filter(|at| image.live[*at]).map(|at| &image.code[at])
}

#[test]
fn every_table_that_is_shipped_can_be_read() {
    for series in KernelTable::known() {
        let kernel = KernelTable::of(series).unwrap_or_else(|| panic!("{series}"));
        assert!(kernel.version.starts_with(series));
        assert!(kernel.structs["task_struct"].fields.len() > 200);
        assert!(kernel.kfuncs.contains_key("scx_bpf_kick_cpu"));
        assert_eq!(
            kernel.helper_name(1).as_deref(),
            Some("bpf_map_lookup_elem")
        );
        assert_eq!(kernel.enum_value("SCX_ENQ_WAKEUP"), Some(1));
    }
}

#[test]
fn a_line_of_a_table_that_is_no_line_is_named() {
    let error = KernelTable::read("kernel 7.3.4\nstruct a 8\n b 0 q4q 5\n").expect_err("no line");
    assert_eq!((error.line, error.text.as_str()), (3, " b 0 q4q 5"));
}

#[test]
fn fields_are_where_the_kernel_has_them() {
    let kernel = kernel("7.3");
    let image = fit(&fitted(), "7.3");
    let offsets: Vec<u64> = live(&image, "choose")
        .filter(|insn| insn.code & 7 == 1)
        .map(|insn| insn.off as u64)
        .collect();
    let of = |path: &str| kernel.field("task_struct", path).expect(path).0;
    let expected = [of("scx.weight"), of("scx.slice"), of("comm[3]")];
    assert!(
        expected.iter().all(|offset| offsets.contains(offset)),
        "{offsets:?} {expected:?}"
    );
    assert!(
        offsets.contains(&16),
        "{offsets:?}: cpumask_t.bits[2], by the name of its struct"
    );
    assert!(
        !offsets.contains(&4),
        "{offsets:?}: atomic_t.counter, by that of its typedef"
    );
    assert_eq!(kernel.field("task_struct", "comm"), Some((of("comm"), 16)));
    assert_eq!(kernel.field("task_struct", "scx.nothing"), None);
}

#[test]
fn what_only_other_kernels_run_is_not_live() {
    let image = fit(&fitted(), "7.3");
    assert_eq!(
        image.kfuncs,
        ["scx_bpf_kick_cpu"],
        "no weak one, none of another signature"
    );
    assert_eq!(image.kernel_variables, Vec::<String>::new());
    let helpers = live(&image, "queue").filter(|insn| matches!(insn.to, To::Helper(_)));
    assert_eq!(helpers.count(), 0, "slice_max is 5");
}

/// The constant 31 is in the program only where the kernel has the type.
#[test]
fn types_that_a_kernel_has_decide_what_is_live() {
    let has = |series| {
        let image = fit(&fitted(), series);
        live(&image, "queue").any(|insn| insn.imm == 31)
    };
    assert!(has("7.3"));
    assert!(!has("6.18"));
}

#[test]
fn variables_that_are_set_decide_what_is_live() {
    let mut object = fitted();
    object.set("never", 1).expect("a variable");
    object.set("slice_max", 20_000_000).expect("a variable");
    let missing = object
        .fit(&kernel("7.3"), &offer())
        .expect_err("it needs more");
    let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
    assert_eq!(missing.len(), 2, "{missing:?}");
    assert!(
        missing[0].starts_with("calls bpf_cpumask_create (fitted.bpf.c:"),
        "{missing:?}"
    );
    assert!(
        missing[1].starts_with("calls bpf_spin_lock (fitted.bpf.c:"),
        "{missing:?}"
    );
}

#[test]
fn variables_are_found_by_their_paths() {
    let mut object = fitted();
    let place = |object: &Object, path: &str| {
        let place = object.variable(path).expect(path);
        (place.offset, place.size, place.signed)
    };
    let (first, ..) = place(&object, "parts");
    assert_eq!(place(&object, "parts"), (first, 48, false));
    assert_eq!(place(&object, "parts[2].low"), (first + 36, 2, true));
    assert_eq!(place(&object, "parts[1].narrow[1]"), (first + 28, 4, false));
    for path in ["parts[3]", "parts[0].nothing", "parts.id", "nothing", ""] {
        assert!(object.variable(path).is_err(), "{path}");
    }
    object.set("parts[2].low", -3).expect("it fits");
    object.set_bytes("parts[1]", &[1, 2]).expect("it fits");
    for (path, value) in [
        ("small", 128),
        ("small", -129),
        ("never", 256),
        ("parts[0].id", -1),
    ] {
        assert!(object.set(path, value).is_err(), "{path} {value}");
    }
    assert!(object.set("parts", 1).is_err(), "no number");
    assert!(object.set_bytes("small", &[1, 2]).is_err(), "too many");
    let image = fit(&object, "7.3");
    let data = &image.maps[object.variable("parts").expect("parts").map as usize].initial;
    let first = first as usize;
    assert_eq!(data[first], 9, "as it was compiled");
    assert_eq!(data[first + 16..first + 20], [1, 2, 0, 0]);
    assert_eq!(data[first + 36..first + 38], [0xfd, 0xff]);
}

#[test]
fn user_spaces_enumerators_and_options_are_filled_in() {
    let image = fit(&fitted(), "7.3");
    let place = image.variable("__SCX_ENQ_WAKEUP").expect("a variable");
    assert_eq!(
        image.maps[place.map as usize].initial[place.offset as usize],
        1
    );
    let (_, options) = image.map(".kconfig").expect("options");
    let has = |value: u32| {
        options
            .initial
            .windows(4)
            .any(|four| four == value.to_le_bytes())
    };
    assert!(has(250), "CONFIG_HZ");
    assert!(has(7 << 16 | 3 << 8 | 4), "LINUX_KERNEL_VERSION");
    assert!(options.frozen);
}

#[test]
fn callbacks_and_settings_are_read() {
    let object = fitted();
    assert_eq!(object.name(), Some("mine"));
    let ops = object.ops().expect("callbacks");
    assert_eq!(
        (ops.variable.as_str(), ops.type_name.as_str()),
        ("mine_ops", "sched_ext_ops")
    );
    assert_eq!((ops.numbers["flags"], ops.numbers["timeout_ms"]), (5, 700));
    let image = fit(&object, "7.3");
    let name = |callback: &str| {
        image.functions[ops.callbacks[callback] as usize]
            .name
            .clone()
    };
    assert_eq!(
        (name("select_cpu"), name("enqueue")),
        ("choose".into(), "queue".into())
    );
}

#[test]
fn all_that_is_missing_is_named_at_once_with_its_lines() {
    let object = Object::read(LACKING).expect("an object");
    let missing = object
        .fit(&kernel("7.3"), &offer())
        .expect_err("much is missing");
    let text: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let expected = [
        "calls scx_bpf_not_there (lacking.bpf.c:21)",
        "calls bpf_map_push_elem (lacking.bpf.c:23)",
        "calls bpf_spin_lock (lacking.bpf.c:22)",
        "has map ring of kind RingBuffer",
        "uses nobody_knows.field (lacking.bpf.c:19)",
        "uses task_struct.not_there (lacking.bpf.c:18)",
        "reads the kernel's variable not_there_either (lacking.bpf.c:20)",
    ];
    assert_eq!(
        text, expected,
        "and nothing of the program that is left out"
    );
}

#[test]
fn a_field_that_nobody_keeps_is_named() {
    let few = Offer {
        fields: Some(BTreeSet::from([(
            "task_struct".to_owned(),
            "scx.weight".to_owned(),
        )])),
        ..offer()
    };
    let missing = fitted()
        .fit(&kernel("7.3"), &few)
        .expect_err("fields are missing");
    let fields: Vec<&What> = missing.iter().map(|missing| &missing.what).collect();
    let field = |path: &str| What::Field("task_struct".to_owned(), path.to_owned());
    let all = ["comm", "cpus_ptr", "scx.slice"].map(field);
    let of_tasks: Vec<&What> = fields
        .into_iter()
        .filter(|what| all.contains(what))
        .collect();
    assert_eq!(of_tasks, all.iter().collect::<Vec<_>>());
}

#[test]
fn programs_are_known_by_their_sections() {
    let object = Object::read(LACKING).expect("an object");
    let kinds: Vec<(&str, ProgramKind)> = object
        .programs()
        .iter()
        .map(|Program { name, kind, .. }| (name.as_str(), kind.clone()))
        .collect();
    let expected = [
        (
            "lacking",
            ProgramKind::Tracepoint("sched_switch".to_owned()),
        ),
        ("left_out", ProgramKind::Other("kprobe/nobody".to_owned())),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn maps_have_what_they_are_declared_with() {
    let object = Object::read(MAPS).expect("an object");
    let mut offer = offer();
    offer.maps.extend(0..40);
    offer.helpers.extend(0..220);
    let masks = ["create", "release", "set_cpu"].map(|name| format!("bpf_cpumask_{name}"));
    offer.kfuncs.extend(masks);
    let image = object.fit(&kernel("7.3"), &offer).expect("it fits");
    let map = |name: &str| image.map(name).unwrap_or_else(|| panic!("no {name}")).1;
    let shape = |name: &str| {
        let map = map(name);
        (map.kind, map.key_size, map.value_size, map.max_entries)
    };
    assert_eq!(shape("array"), (MapKind::Array, 4, 32, 4));
    assert_eq!(shape("percpu"), (MapKind::PerCpuArray, 4, 8, 2));
    assert_eq!(shape("hash"), (MapKind::Hash, 8, 8, 2));
    assert_eq!(shape("queue"), (MapKind::Queue, 0, 4, 2));
    assert_eq!(shape("storage"), (MapKind::TaskStorage, 4, 8, 0));
    assert_eq!(map("storage").flags, 1);
    let special: Vec<(u32, &SpecialKind)> = map("array")
        .special
        .iter()
        .map(|special| (special.offset, &special.kind))
        .collect();
    let kptr = SpecialKind::Kptr("bpf_cpumask".to_owned());
    assert_eq!(special, [(8, &kptr), (16, &SpecialKind::SpinLock)]);
    assert_eq!(map("timers").special[0].kind, SpecialKind::Timer);
    let (one, two) = (
        image.map("one").expect("one").0,
        image.map("two").expect("two").0,
    );
    assert_eq!(map("outer").values, [Some(one), None, Some(two)]);
    assert_eq!(
        map("outer").inner.as_ref().map(|inner| inner.value_size),
        Some(8)
    );
}

/// `RESIZABLE_ARRAY` and maps without `max_entries`: a kernel refuses these, or the program has one
/// element of what it takes for many.
#[test]
fn what_its_loader_sizes_is_named_until_that_is_said() {
    let mut offer = offer();
    offer.maps.insert(MapKind::Queue.number());
    offer.helpers.extend([5, 87]);
    let mut object = Object::read(SIZED).expect("an object");
    let sizes = |object: &Object| -> Vec<String> {
        let missing = object.fit(&kernel("7.3"), &offer).err().unwrap_or_default();
        missing.iter().map(ToString::to_string).collect()
    };
    let missing = sizes(&object);
    assert_eq!(missing.len(), 2, "{missing:?}");
    assert!(missing[0].starts_with("has queue, whose size its loader sets"));
    assert!(missing[1].starts_with("has per_cpu, whose size its loader sets"));
    object.resize("queue", 3).expect("a map");
    object.resize("per_cpu", 5).expect("an array");
    let unknown = object.resize("one", 5).unwrap_err();
    assert_eq!(unknown, "there is no map or array one");
    let image = object.fit(&kernel("7.3"), &offer).expect("it fits");
    let (_, array) = image.map(".data.per_cpu").expect("a section");
    assert_eq!((array.value_size, array.initial.len()), (80, 80));
    assert_eq!(image.map("queue").expect("a map").1.max_entries, 3);
}

/// What nobody calls needs nothing: callbacks that are not called or are taken out, programs that
/// are not turned on, and those at events that there are not.
#[test]
fn what_nobody_calls_is_not_asked_for() {
    let mut object = Object::read(SIZED).expect("an object");
    object.resize("per_cpu", 1).expect("an array");
    let names = |missing: Result<Image, Vec<warmq_bpf::Missing>>| -> Vec<String> {
        let missing = missing.err().unwrap_or_default();
        missing
            .iter()
            .map(|one| format!("{:?}", one.what))
            .collect()
    };
    let mut few = offer();
    few.callbacks = Some(BTreeSet::from(["tick".to_owned()]));
    assert_eq!(names(object.fit(&kernel("7.3"), &few)), [""; 0]);
    let mut without = object.clone();
    without.take_out("running");
    assert_eq!(names(without.fit(&kernel("7.3"), &offer())), [""; 0]);
    object.turn_on("on_switch").expect("a program");
    let helper = names(object.fit(&kernel("7.3"), &few));
    assert_eq!(helper, ["Helper(\"bpf_ktime_get_ns\")"]);
    few.events.clear();
    assert_eq!(names(object.fit(&kernel("7.3"), &few)), [""; 0]);
    assert!(object.turn_on("on_tick").is_err());
}

#[test]
fn a_struct_is_known_by_its_name() {
    let object = Object::read(SIZED).expect("an object");
    assert_eq!(object.size_of("pair"), Some(16));
    assert_eq!(object.size_of("per_cpu"), None);
}

#[test]
fn an_object_within_a_program_is_found() {
    let mut program = b"\x7fELF\x02\x01\x01 some program of another machine".to_vec();
    program.extend(LACKING);
    program.extend(FITTED);
    program.extend(b"and more of it");
    let object = Object::read(&program).expect("an object");
    assert_eq!(object.name(), Some("mine"), "the one with callbacks");
}

#[test]
fn what_is_no_object_is_refused() {
    assert_eq!(Object::read(b"").err(), Some(Unreadable::NoObject));
    assert_eq!(
        Object::read(b"\x7fELF\x02\x01\x01").err(),
        Some(Unreadable::NoObject)
    );
    assert_eq!(
        Object::read(&FITTED[..200]).err(),
        Some(Unreadable::NoObject)
    );
}
