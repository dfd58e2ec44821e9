use super::*;

pub(crate) const HEADER_PAGE: &str = "\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
";

#[test]
fn the_layout_of_pages_is_read() {
    let layout = Layout::parse(HEADER_PAGE).unwrap();
    assert_eq!((layout.data, layout.size), (16, 4096));
}
