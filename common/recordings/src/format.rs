//! The kernel's descriptions of its events (`events/SYSTEM/NAME/format`).

use std::ops::Range;

use crate::order::Order;

/// The layout of one kind of event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The number by which events refer to it.
    pub id: u16,
    fields: Vec<(String, Field)>,
    /// How the kernel prints it: where the names of flags and symbols are.
    print: String,
}

/// Where a field is in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    offset: usize,
    size: usize,
    signed: bool,
    order: Order,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A number, or an array of bytes.
    Here,
    /// A word with the offset (low half) and length (high half) of the data.
    Elsewhere,
    /// The same, but the offset counts from the end of this field.
    FromHere,
}

impl Format {
    /// Reads a description of events, whose numbers are in this order of bytes; `None` if it is
    /// none.
    pub fn parse(text: &str, order: Order) -> Option<Format> {
        let id = line_after(text, "ID:")?.parse().ok()?;
        let print = line_after(text, "print fmt:").unwrap_or_default();
        Some(Format {
            id,
            fields: text.lines().filter_map(|line| field(line, order)).collect(),
            print: print.to_owned(),
        })
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<Field> {
        let (_, field) = self.fields.iter().find(|(known, _)| known == name)?;
        Some(*field)
    }

    /// The numbers and names of flags or symbols: every `{ NUMBER, "NAME" }` of how it is printed.
    pub fn symbols(&self) -> impl Iterator<Item = (u64, &str)> {
        self.print.split('{').skip(1).filter_map(|text| {
            let (number, rest) = text.split_once(',')?;
            let name = rest.trim().strip_prefix('"')?.split('"').next()?;
            Some((number_of(number.trim())?, name))
        })
    }
}

fn line_after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix(key)).map(str::trim)
}

/// A number as C writes it.
fn number_of(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `field:unsigned char common_flags; offset:2; size:1; signed:0;`
pub(crate) fn field(line: &str, order: Order) -> Option<(String, Field)> {
    let mut parts = line.split(';').map(str::trim);
    let declared = parts.next()?.strip_prefix("field:")?;
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", value)) => offset = value.parse().ok(),
            Some(("size", value)) => size = value.parse().ok(),
            Some(("signed", value)) => signed = value == "1",
            _ => {}
        }
    }
    let name = declared.split('[').next()?;
    let name = match declared.contains("_loc ") {
        // The brackets belong to the type: `__data_loc char[] name`.
        true => declared,
        false => name,
    };
    let name = name.rsplit([' ', '*']).next()?;
    let kind = match declared {
        _ if declared.starts_with("__data_loc ") => Kind::Elsewhere,
        _ if declared.starts_with("__rel_loc ") => Kind::FromHere,
        _ => Kind::Here,
    };
    let field = Field {
        offset: offset?,
        size: size?,
        signed,
        order,
        kind,
    };
    Some((name.to_owned(), field))
}

impl Field {
    /// The offset in the event, and the size, in bytes.
    pub fn place(self) -> (usize, usize) {
        (self.offset, self.size)
    }

    fn range(self) -> Option<Range<usize>> {
        Some(self.offset..self.offset.checked_add(self.size)?)
    }

    /// The number in `event`; negative ones have their upper bits set. `None` if the event is too
    /// short or the field is no number.
    #[inline]
    pub fn number(self, event: &[u8]) -> Option<u64> {
        let bytes = event.get(self.range()?)?;
        let order = self.order;
        let number = match bytes.len() {
            1 => bytes[0].into(),
            2 => order.half(bytes.try_into().ok()?).into(),
            4 => order.word(bytes.try_into().ok()?).into(),
            8 => order.long(bytes.try_into().ok()?),
            _ => return None,
        };
        // The sign is in the upper bits, too.
        let unused = if self.signed { 64 - 8 * bytes.len() } else { 0 };
        Some(((number << unused).cast_signed() >> unused).cast_unsigned())
    }

    /// The text in `event` up to its first zero byte. `None` if the event is too short.
    pub fn text(self, event: &[u8]) -> Option<&[u8]> {
        let range = match self.kind {
            Kind::Here => self.range()?,
            kind => {
                let word = event.get(self.range()?)?.first_chunk::<4>()?;
                let word = self.order.word(*word);
                let base = match kind {
                    Kind::FromHere => self.offset.checked_add(self.size)?,
                    _ => 0,
                };
                let start = base.checked_add((word & 0xffff) as usize)?;
                start..start.checked_add((word >> 16) as usize)?
            }
        };
        event.get(range)?.split(|byte| *byte == 0).next()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RENAME: &str = "\
name: task_rename
ID: 204
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;
\tfield:char oldcomm[16];\toffset:12;\tsize:16;\tsigned:0;
\tfield:__data_loc char[] name;\toffset:28;\tsize:4;\tsigned:0;
\tfield:__rel_loc char[] near;\toffset:32;\tsize:4;\tsigned:0;
\tfield:const void * skaddr;\toffset:40;\tsize:8;\tsigned:0;
\tfield:short adjust;\toffset:48;\tsize:2;\tsigned:1;

print fmt: \"state=%s\", __print_flags(REC->state & (0x1 | 0x2), \"|\", { 0x00000001, \"S\" }, { 2, \"D\" }) : \"R\"
";

    #[test]
    fn fields_are_found_by_name_whatever_their_type() {
        let format = Format::parse(RENAME, Order::Little).unwrap();
        assert_eq!(format.id, 204);
        let mut event = vec![0; 50];
        event[8..12].copy_from_slice(&(-2_i32).to_le_bytes());
        event[12..16].copy_from_slice(b"bash");
        event[28..32].copy_from_slice(&(5_u32 << 16 | 50).to_le_bytes());
        event[32..36].copy_from_slice(&(3_u32 << 16 | 14).to_le_bytes());
        event[48..50].copy_from_slice(&(-7_i16).to_le_bytes());
        event.extend_from_slice(b"lo0\0!");
        let number = |name| {
            format
                .field(name)
                .and_then(|field| field.number(&event))
                .map(u64::cast_signed)
        };
        let text = |name| format.field(name).and_then(|field| field.text(&event));
        assert_eq!(number("pid"), Some(-2));
        assert_eq!(number("adjust"), Some(-7));
        assert_eq!(number("skaddr"), Some(0));
        assert_eq!(text("oldcomm"), Some(b"bash".as_slice()));
        assert_eq!(text("name"), Some(b"lo0".as_slice()));
        assert_eq!(text("near"), Some(b"lo0".as_slice()));
        assert_eq!(number("absent"), None);
        assert_eq!(number("oldcomm"), None);
    }

    #[test]
    fn symbols_are_read_from_how_an_event_is_printed() {
        let format = Format::parse(RENAME, Order::Little).unwrap();
        assert!(format.symbols().eq([(1, "S"), (2, "D")]));
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "(field:|ID:|offset:|size:|[ -~\\n;:\\[\\]{}])*", event in any::<Vec<u8>>()) {
            if let Some(format) = Format::parse(&text, Order::Big) {
                for (_, field) in &format.fields {
                    field.number(&event);
                    field.text(&event);
                }
                let _ = format.symbols().count();
            }
        }
    }
}
