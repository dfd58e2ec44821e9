//! Caches as /sys has them, and without it.

use std::fs;
use std::path::Path;

use warmq_color::coloring::Cache;
use warmq_color::machine::caches;

fn describe(root: &Path, index: u32, texts: [(&str, &str); 5]) {
    let folder = root.join(format!("sys/devices/system/cpu/cpu0/cache/index{index}"));
    fs::create_dir_all(&folder).expect("a folder");
    for (name, text) in texts {
        fs::write(folder.join(name), format!("{text}\n")).expect("a file");
    }
}

fn texts<'a>(
    level: &'a str,
    kind: &'a str,
    ways: &'a str,
    sets: &'a str,
) -> [(&'a str, &'a str); 5] {
    [
        ("level", level),
        ("type", kind),
        ("ways_of_associativity", ways),
        ("number_of_sets", sets),
        ("coherency_line_size", "64"),
    ]
}

#[test]
fn data_caches_are_read_the_nearest_first() {
    let root = tempfile::tempdir().expect("a folder");
    describe(root.path(), 2, texts("2", "Unified", "8", "1024"));
    describe(root.path(), 0, texts("1", "Data", "12", "64"));
    describe(root.path(), 1, texts("1", "Instruction", "8", "64"));
    describe(root.path(), 3, texts("3", "Unified", "0", "many"));
    let expected = [Cache::new(48 << 10, 12, 64), Cache::new(512 << 10, 8, 64)];
    assert_eq!(
        caches(root.path()),
        expected.map(|cache| cache.expect("a cache"))
    );
}

#[test]
fn without_sys_the_usual_ones_are_assumed() {
    let root = tempfile::tempdir().expect("a folder");
    let sizes: Vec<u64> = caches(root.path())
        .iter()
        .map(|cache| cache.size())
        .collect();
    assert_eq!(sizes, [32 << 10, 512 << 10]);
}
