//! What is done to an object before it is loaded.

use libbpf_rs::{MapType, OpenMapMut, OpenObject};
use warmq_bpf::{Loading, Write};

use crate::AttachError;

/// `BPF_F_LINK`: the kernel takes a scheduler out when its loader has ended, however it ended.
const LINK: u32 = 1 << 13;

/// Sets an object as its loader does.
///
/// # Errors
/// It is for another object.
pub fn shape(object: &mut OpenObject, loading: &Loading) -> Result<(), AttachError> {
    for (name, elements) in &loading.elements {
        let set = map(object, name)?.set_max_entries(*elements);
        set.map_err(AttachError::refused(format!("elements of {name}")))?;
    }
    for (name, bytes) in &loading.sizes {
        let set = map(object, name)?.set_value_size(*bytes);
        set.map_err(AttachError::refused(format!("the size of {name}")))?;
    }
    for one in &loading.writes {
        write(map(object, &one.map)?, one)?;
    }
    for mut program in object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        if let Some(is_loaded) = loading.programs.get(&name) {
            program.set_autoload(*is_loaded);
        }
    }
    let callbacks = object.maps_mut();
    for mut map in callbacks.filter(|map| map.map_type() == MapType::StructOps) {
        let flags = map.map_flags() | LINK;
        let set = map.set_map_flags(flags);
        set.map_err(AttachError::refused("callbacks"))?;
    }
    Ok(())
}

/// The map of a section, or of a variable. libbpf calls some sections by the object's name and
/// theirs.
fn map<'o>(object: &'o mut OpenObject, name: &str) -> Result<OpenMapMut<'o>, AttachError> {
    let is_it = |map: &OpenMapMut<'_>| {
        let has = map.name().to_string_lossy();
        has == name || name.starts_with('.') && has.ends_with(name)
    };
    let found = object.maps_mut().find(is_it);
    found.ok_or_else(|| AttachError::File(format!("the object has no map {name}")))
}

fn write(mut map: OpenMapMut<'_>, one: &Write) -> Result<(), AttachError> {
    let end = one.at.saturating_add(one.bytes.len());
    let place = map.initial_value_mut();
    let place = place.and_then(|bytes| bytes.get_mut(one.at..end));
    let wrong = || AttachError::File(format!("{} has no byte {end}", one.map));
    place.ok_or_else(wrong)?.copy_from_slice(&one.bytes);
    Ok(())
}
