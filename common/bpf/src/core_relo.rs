//! CO-RE: what a field, type or enumerator of the object is in the kernel (libbpf's relo_core.c).

use crate::btf::{Btf, Kind, essential};
use crate::ext::Relo;
use crate::image::{Insn, To};
use crate::kernel::{Element, KernelTable, Layout};
use crate::missing::What;

/// What a relocation comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) value: u64,
    /// Bytes of the field in the kernel, if it is a number whose size differs.
    resized: Option<u64>,
    /// The field that is used: its struct and its path.
    pub(crate) field: Option<(String, String)>,
}

/// One step into a type.
enum Step {
    Name(String),
    Index(u64),
}

/// A way into a type: where it begins, the steps, and the type at its end.
struct Way {
    root: String,
    steps: Vec<Step>,
    end: u32,
}

/// A field of the kernel.
struct Found {
    offset: u64,
    size: u64,
    signed: bool,
}

/// What the table answers.
enum Asked<T> {
    Has(T),
    HasNot,
    Unknown,
}

/// What a relocation comes to in a kernel.
pub(crate) fn answer(btf: &Btf, relo: &Relo, kernel: &KernelTable) -> Result<Answer, What> {
    match relo.kind {
        0..=5 => field(btf, relo, kernel),
        6 => Ok(plain(relo.root.into())),
        8 | 12 => exists(kernel, &root_name(btf, relo.root)),
        9 => size(kernel, &root_name(btf, relo.root)),
        10 | 11 => enumerator(btf, relo, kernel),
        kind => Err(What::Other(format!(
            "has a CO-RE relocation of kind {kind}"
        ))),
    }
}

fn plain(value: u64) -> Answer {
    Answer {
        value,
        resized: None,
        field: None,
    }
}

/// The name that the kernel's table has for a type: its own, or a typedef's if it has none.
fn root_name(btf: &Btf, root: u32) -> String {
    let own = &btf.get(btf.resolve(root)).name;
    let name = if own.is_empty() {
        &btf.get(root).name
    } else {
        own
    };
    essential(name).to_owned()
}

fn exists(kernel: &KernelTable, name: &str) -> Result<Answer, What> {
    match layout(kernel, name) {
        Asked::Has(_) => Ok(plain(1)),
        Asked::HasNot => Ok(plain(0)),
        Asked::Unknown => Err(What::Type(name.to_owned())),
    }
}

fn size(kernel: &KernelTable, name: &str) -> Result<Answer, What> {
    match layout(kernel, name) {
        Asked::Has(layout) => Ok(plain(layout.size)),
        _ => Err(What::Type(name.to_owned())),
    }
}

fn layout<'k>(kernel: &'k KernelTable, name: &str) -> Asked<&'k Layout> {
    match kernel.structs.get(name) {
        Some(layout) => Asked::Has(layout),
        None if kernel.absent.contains(name) => Asked::HasNot,
        None => Asked::Unknown,
    }
}

fn enumerator(btf: &Btf, relo: &Relo, kernel: &KernelTable) -> Result<Answer, What> {
    let of = root_name(btf, relo.root);
    let index: Option<usize> = relo.spec.parse().ok();
    let value = match btf.kind(relo.root) {
        Kind::Enum { values, .. } => index.and_then(|index| values.get(index)),
        _ => None,
    };
    let Some((name, _)) = value else {
        return Err(What::EnumValue(of, relo.spec.clone()));
    };
    let name = essential(name).to_owned();
    let found = kernel.enums.get(&of).map(|values| values.get(&name));
    match (relo.kind, found) {
        (10, Some(found)) => Ok(plain(found.is_some().into())),
        (_, Some(Some(value))) => Ok(plain(*value as u64)),
        _ => Err(What::EnumValue(of, name)),
    }
}

fn field(btf: &Btf, relo: &Relo, kernel: &KernelTable) -> Result<Answer, What> {
    let unreadable = || What::Other(format!("has a CO-RE relocation `{}`", relo.spec));
    let way = way(btf, relo).ok_or_else(unreadable)?;
    let missing = || What::Field(way.root.clone(), path(&way.steps));
    let found = match (walk(kernel, &way), relo.kind) {
        (Asked::Has(found), _) => found,
        (Asked::HasNot, 2) => return Ok(plain(0)),
        (Asked::Unknown, 2) => return Err(What::Type(way.root.clone())),
        _ => return Err(missing()),
    };
    let own = btf.size(way.end);
    let number = matches!(
        btf.kind(way.end),
        Kind::Int { .. } | Kind::Enum { .. } | Kind::Ptr(_)
    );
    let resized = (number && own != found.size).then_some(found.size);
    let value = match relo.kind {
        0 => found.offset,
        1 => found.size,
        2 => 1,
        3 => found.signed.into(),
        // Bit fields are in no table: a field is read as 8 bytes, shifted up and down again.
        _ => 64_u64.saturating_sub(8 * found.size),
    };
    let field = (relo.kind == 0).then(|| (way.root.clone(), path(&way.steps)));
    Ok(Answer {
        value,
        resized: resized.filter(|_| relo.kind == 0),
        field,
    })
}

/// The steps that a relocation takes in the object's own types.
fn way(btf: &Btf, relo: &Relo) -> Option<Way> {
    let mut indexes = relo.spec.split(':').map(str::parse::<u32>);
    let first = indexes.next()?.ok()?;
    let mut steps = Vec::new();
    let mut end = relo.root;
    if first != 0 {
        steps.push(Step::Index(first.into()));
    }
    for index in indexes {
        let index = index.ok()?;
        if let Kind::Array(of, _) = btf.kind(end) {
            steps.push(Step::Index(index.into()));
            end = *of;
            continue;
        }
        let member = btf.composite(end)?.members.get(index as usize)?;
        end = member.of;
        if !member.name.is_empty() {
            steps.push(Step::Name(member.name.clone()));
        }
    }
    Some(Way {
        root: root_name(btf, relo.root),
        steps,
        end,
    })
}

/// The path of steps: `scx.weight`, `bits[]`.
fn path(steps: &[Step]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Name(name) if path.is_empty() => path.push_str(name),
            Step::Name(name) => path.extend([".", name]),
            Step::Index(_) if path.ends_with("[]") => {}
            Step::Index(_) => path.push_str("[]"),
        }
    }
    path.trim_end_matches("[]").to_owned()
}

/// The same steps in the kernel's types.
fn walk(kernel: &KernelTable, way: &Way) -> Asked<Found> {
    let root = match layout(kernel, &way.root) {
        Asked::Has(root) => root,
        Asked::HasNot => return Asked::HasNot,
        Asked::Unknown => return Asked::Unknown,
    };
    let mut found = Found {
        offset: 0,
        size: root.size,
        signed: false,
    };
    let mut within = Some(root);
    let mut lengths: &[u64] = &[];
    for step in &way.steps {
        match step {
            Step::Name(name) => {
                let Some(layout) = within else {
                    return Asked::HasNot;
                };
                let Some(field) = layout.fields.get(name) else {
                    let known = !layout.fields.is_empty() || layout.size == 0;
                    return if known { Asked::HasNot } else { Asked::Unknown };
                };
                found.offset = found.offset.saturating_add(field.offset);
                found.size = kernel.size(field);
                found.signed = matches!(field.of, Element::Number { signed: true, .. });
                lengths = &field.lengths;
                within = match &field.of {
                    Element::Struct(name) => kernel.structs.get(name),
                    _ => None,
                };
                if lengths.contains(&0) {
                    found.size = kernel.element_size(&field.of);
                }
            }
            Step::Index(index) => {
                let length = lengths.split_first().map(|(length, rest)| {
                    lengths = rest;
                    *length
                });
                found.size = found
                    .size
                    .checked_div(length.unwrap_or(0))
                    .unwrap_or(found.size);
                let more = found.size.saturating_mul(*index);
                found.offset = found.offset.saturating_add(more);
            }
        }
    }
    Asked::Has(found)
}

/// Writes an answer into an instruction; false, if it has no place for it.
pub(crate) fn patch(insn: &mut Insn, answer: &Answer) -> bool {
    match insn.code & 7 {
        0 if insn.code == 0x18 => insn.to = To::Number(answer.value),
        4 | 7 => match u32::try_from(answer.value) {
            Ok(value) => insn.imm = value as i32,
            Err(_) => return false,
        },
        1..=3 => {
            let Ok(offset) = i16::try_from(answer.value) else {
                return false;
            };
            insn.off = offset;
            let size = match answer.resized {
                Some(1) => 0x10,
                Some(2) => 0x08,
                Some(4) => 0x00,
                Some(8) => 0x18,
                _ => insn.code & 0x18,
            };
            insn.code = insn.code & !0x18 | size;
        }
        _ => return false,
    }
    true
}
