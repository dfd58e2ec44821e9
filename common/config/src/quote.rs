//! Texts as TOML that reads back as it was.

use toml::Value;

/// `text` in quotes. Rust's own quoting is another language: of a soft hyphen it makes `\\u{ad}`.
///
/// ```
/// use warmq_config::quoted;
/// assert_eq!(quoted("two\u{ad}words"), "\"two\u{ad}words\"");
/// ```
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A list of texts.
pub fn quoted_list<T: AsRef<str>>(texts: &[T]) -> String {
    let texts = texts.iter().map(|text| Value::from(text.as_ref()));
    Value::Array(texts.collect()).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Document;

    proptest! {
        #[test]
        fn whatever_the_text_it_is_read_back(text in any::<String>(), others in any::<Vec<String>>()) {
            let file = format!("text = {}\nlist = {}\n", quoted(&text), quoted_list(&others));
            let document = Document::parse("quoted.toml", &file).unwrap();
            let read = document.read(|fields| {
                fields.know(&["text", "list"]);
                let list = fields.item("list")?.list()?;
                Some((fields.text("text")?, list.iter().filter_map(|item| item.text()).collect()))
            });
            prop_assert_eq!(read.unwrap(), (text, others));
        }
    }

    #[test]
    fn letters_that_cannot_be_seen_and_marks_of_the_byte_order_are_kept() {
        for letter in [
            '\u{ad}',
            '\u{200d}',
            '\u{200e}',
            '\u{feff}',
            '\0',
            '\u{7f}',
            '\n',
            '\u{10ffff}',
        ] {
            let text = format!("a{letter}b");
            let file = format!("text = {}", quoted(&text));
            let document = Document::parse("quoted.toml", &file).unwrap();
            assert_eq!(document.read(|fields| fields.text("text")).unwrap(), text);
        }
    }
}
