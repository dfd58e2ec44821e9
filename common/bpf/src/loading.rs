//! What a loader does with an object, as data: whoever works that out need not be who does it.
//!
//! ```text
//! let loading = Loading::between(&as_compiled, &as_set);       // what differs of an object
//! let file = Package { loading, object }.bytes("/bin/loader"); // a file that can be started
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::image::{Map, StructOps};
use crate::object::Object;

/// What a loader does with an object before it attaches it, and after.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loading {
    /// How many elements maps have, by their names.
    pub elements: BTreeMap<String, u32>,
    /// How many bytes sections of data have, by their names.
    pub sizes: BTreeMap<String, u32>,
    /// Programs that are loaded, and those that are not, where the object says otherwise.
    pub programs: BTreeMap<String, bool>,
    /// What is written before loading, of sections and of structs of callbacks.
    pub writes: Vec<Write>,
    /// What is written into maps that are loaded.
    pub entries: Vec<Entry>,
    /// Programs that run before the scheduler is attached.
    pub before: Vec<Run>,
    /// Programs that run after that.
    pub after: Vec<Run>,
    /// The CPU that the loader's thread is bound to.
    pub cpu: Option<u16>,
}

/// Bytes of what a map has at first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// The section's name, or that of the variable of a struct of callbacks.
    pub map: String,
    /// Where the first one is.
    pub at: usize,
    /// These.
    pub bytes: Vec<u8>,
}

/// An entry of a map, as bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The map's name.
    pub map: String,
    /// Its key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

/// A program of kind syscall that is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its name.
    pub program: String,
    /// The bytes of its argument.
    pub argument: Vec<u8>,
}

impl Loading {
    /// What makes `after` of `before`: of one object, as it is compiled and as it is set.
    pub fn between(before: &Object, after: &Object) -> Loading {
        let mut loading = Loading::default();
        for (old, new) in before.image.maps.iter().zip(&after.image.maps) {
            loading.of_map(old, new);
        }
        for (old, new) in before.programs().iter().zip(after.programs()) {
            if old.optional != new.optional {
                loading.programs.insert(new.name.clone(), !new.optional);
            }
        }
        if let (Some(old), Some(new)) = (before.ops(), after.ops()) {
            loading.of_callbacks(before, old, new);
        }
        loading
    }

    fn of_map(&mut self, old: &Map, new: &Map) {
        let name = || new.name.clone();
        if old.max_entries != new.max_entries {
            self.elements.insert(name(), new.max_entries);
        }
        if old.value_size != new.value_size {
            self.sizes.insert(name(), new.value_size);
        }
        let was = |at: usize| old.initial.get(at).copied().unwrap_or(0);
        let bytes = new.initial.iter().copied().enumerate();
        let others: Vec<(usize, u8)> = bytes.filter(|(at, byte)| was(*at) != *byte).collect();
        for row in others.chunk_by(|(at, _), (next, _)| at + 1 == *next) {
            let bytes = row.iter().map(|(_, byte)| *byte).collect();
            self.write(&new.name, row[0].0, bytes);
        }
    }

    /// Callbacks that are taken out, whose programs cannot be loaded then, and numbers.
    fn of_callbacks(&mut self, object: &Object, old: &StructOps, new: &StructOps) {
        let names = old.callbacks.iter();
        let gone = names.filter(|(name, _)| !new.callbacks.contains_key(*name));
        for (name, function) in gone {
            self.write(&new.variable, new.place(name), vec![0; 8]);
            let function = object.image.functions.get(*function as usize);
            let program = function.map(|function| (function.name.clone(), false));
            self.programs.extend(program);
        }
        for (name, number) in &new.numbers {
            if old.numbers.get(name) != Some(number) {
                let size = new.members.get(name).map_or(0, |(_, size)| *size as usize);
                let bytes = number.to_le_bytes()[..size.min(8)].to_vec();
                self.write(&new.variable, new.place(name), bytes);
            }
        }
    }

    fn write(&mut self, map: &str, at: usize, bytes: Vec<u8>) {
        let map = map.to_owned();
        self.writes.push(Write { map, at, bytes });
    }
}

/// An object, and what its loader does: a file that a system starts as a script of the loader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package<'b> {
    /// What its loader does.
    pub loading: Loading,
    /// As it was compiled.
    pub object: &'b [u8],
}

impl<'b> Package<'b> {
    /// The bytes of the file. The first line names the loader, the second is for it.
    pub fn bytes(&self, loader: &str) -> Vec<u8> {
        let loading = serde_json::to_string(&self.loading).expect("names, numbers and lists");
        let mut bytes = format!("#!{loader}\n{loading}\n").into_bytes();
        bytes.extend(self.object);
        bytes
    }

    /// Reads such a file, or that of an object alone, for which a loader does nothing else.
    ///
    /// # Errors
    /// It is neither.
    pub fn read(bytes: &'b [u8]) -> Result<Package<'b>, String> {
        if is_object(bytes) {
            let loading = Loading::default();
            return Ok(Package {
                loading,
                object: bytes,
            });
        }
        let mut parts = bytes.splitn(3, |byte| *byte == b'\n');
        let (first, loading, object) = (parts.next(), parts.next(), parts.next());
        let is_ours = first.is_some_and(|line| line.starts_with(b"#!"));
        let (true, Some(loading), Some(object)) = (is_ours, loading, object) else {
            return Err("it is no compiled scheduler".to_owned());
        };
        let loading = serde_json::from_slice(loading);
        let loading = loading.map_err(|error| format!("what its loader does: {error}"))?;
        Ok(Package { loading, object })
    }
}

/// Whether a file is an object of BPF itself, not a program that has one inside.
pub fn is_object(bytes: &[u8]) -> bool {
    let machine = crate::bytes::u16_at(bytes, 18);
    bytes.starts_with(b"\x7fELF") && machine == Some(object::elf::EM_BPF.0)
}
