//! What `scx_bpf_error()` prints: a format with its arguments, of 8 bytes each.

use warmq_bpf_run::Guest;

/// The longest text (`SCX_EXIT_MSG_LEN`).
const MOST: u64 = 1_024;

/// Prints `format` in guest memory with `bytes` bytes of arguments at `data`.
pub(crate) fn print(guest: &Guest, format: u64, data: u64, bytes: u64) -> String {
    let format = guest.text(format, MOST);
    let mut arguments = (0..bytes / 8).map(|at| guest.peek(data + 8 * at, 8).unwrap_or(0));
    let (mut text, mut rest) = (String::new(), format.as_str());
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        let length = |letter: char| letter.is_ascii_digit() || "-+ #0.lhzp".contains(letter);
        let kind = after.trim_start_matches(|letter| length(letter) && letter != 'p');
        let wide = after[..after.len() - kind.len()].contains('l');
        let mut letters = kind.chars();
        let argument = arguments.next().unwrap_or(0);
        text.push_str(&one(guest, letters.next().unwrap_or('%'), wide, argument));
        rest = letters.as_str();
    }
    text.push_str(rest);
    text
}

fn one(guest: &Guest, kind: char, wide: bool, argument: u64) -> String {
    match (kind, wide) {
        ('s', _) => guest.text(argument, MOST),
        ('d' | 'i', true) => (argument as i64).to_string(),
        ('d' | 'i', false) => (argument as i32).to_string(),
        ('u', true) => argument.to_string(),
        ('u', false) => (argument as u32).to_string(),
        ('x' | 'X', true) => format!("{argument:x}"),
        ('x' | 'X', false) => format!("{:x}", argument as u32),
        ('c', _) => char::from(argument as u8).to_string(),
        _ => format!("{argument:#x}"),
    }
}
