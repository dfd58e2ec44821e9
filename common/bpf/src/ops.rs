//! The struct of callbacks of an object, `.struct_ops` or `.struct_ops.link`.

use crate::btf::{Btf, Kind, essential};
use crate::bytes::{number_at, text_at};
use crate::elf::{Elf, Section};
use crate::image::{Function, StructOps};

/// The first struct of callbacks.
pub(crate) fn read(elf: &Elf, btf: &Btf, functions: &[Function]) -> Option<StructOps> {
    let sections = [".struct_ops.link", ".struct_ops"];
    sections.iter().find_map(|name| {
        let section = elf.sections.iter().find(|section| section.name == *name)?;
        let (variable, offset, _) = btf.section(name).first()?;
        Some(read_one(elf, btf, section, (*variable, *offset), functions))
    })
}

fn read_one(
    elf: &Elf,
    btf: &Btf,
    section: &Section,
    (variable, base): (u32, u32),
    functions: &[Function],
) -> StructOps {
    let mut ops = StructOps {
        variable: btf.get(variable).name.clone(),
        type_name: essential(&btf.get(btf.resolve(variable)).name).to_owned(),
        ..StructOps::default()
    };
    let members = btf
        .composite(variable)
        .map(|composite| &composite.members[..]);
    for member in members.unwrap_or_default() {
        let at = base.saturating_add(member.bits / 8) as usize;
        let name = member.name.clone();
        let place = (member.bits / 8, btf.size(member.of) as u32);
        ops.members.insert(name.clone(), place);
        let relocation = section.relocations.iter().find(|one| one.offset == at);
        if let Some(relocation) = relocation {
            let symbol = elf
                .symbols
                .get(relocation.symbol)
                .map(|symbol| &symbol.name);
            let function = functions
                .iter()
                .position(|function| Some(&function.name) == symbol);
            ops.callbacks
                .extend(function.map(|function| (name, function as u32)));
            continue;
        }
        match btf.kind(member.of) {
            Kind::Array(of, count) if btf.size(*of) == 1 => {
                let end = at.saturating_add(*count as usize).min(section.bytes.len());
                let text = section
                    .bytes
                    .get(..end)
                    .and_then(|bytes| text_at(bytes, at));
                ops.texts.insert(name, text.unwrap_or_default());
            }
            Kind::Int { .. } | Kind::Enum { .. } => {
                let number = number_at(&section.bytes, at, btf.size(member.of) as usize);
                ops.numbers.insert(name, number.unwrap_or_default());
            }
            _ => {}
        }
    }
    ops
}
