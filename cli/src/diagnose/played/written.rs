//! What is written of a diagnosis, and what is refused.

use warmq_units::CpuId;

use super::*;
use crate::diagnose::{Found, Span, of_file, page, text, write};
use crate::failure::Failure;
use crate::recording::Recording;

/// A trace of which nothing is known but one record.
fn one_record() -> (Header, Record) {
    (Header::default(), Record::Recalculate { cpu: CpuId(0) })
}

/// Of that trace.
fn nothing_found() -> Found {
    let (header, record) = one_record();
    let mut watcher = Watcher::new(&header, Instant::START, Instant(u64::MAX));
    watcher.see(Instant::START, &record);
    Found {
        diagnosis: Diagnosis::of(watcher),
        contents: None,
        header,
    }
}

#[test]
fn the_text_of_a_diagnosis_names_everybody_and_says_who_had_the_rest() {
    let many = "[task.hog]\ncount = 12\nbody = [{ run = \"1ms\" }]\n";
    let found = story(many, "eevdf-7.1", "");
    assert_eq!(found.activity.waiting.len(), 12);
    let header = Header::default();
    let text = text::of(&Found {
        header,
        contents: None,
        diagnosis: found.clone(),
    });
    assert!(text.contains("All of them: hog (12: "), "{text}");
    assert!(text.contains("hog (12 of them)"), "{text}");
    let json = serde_json::to_value(&found).unwrap();
    let first = &json["verdicts"][0]["tasks"][0];
    assert!(
        first["name"].as_str().unwrap().starts_with("hog "),
        "{first}"
    );
    assert!(first.as_object().unwrap().contains_key("pid"));
    // A real-time task that has the CPU for most of a wait, and another one that has the rest.
    let urgent = "[task.urgent]\npolicy = \"fifo 50\"\ncpus = \"cpu 0\"\nevery = \"10ms\"\n\
                  body = [{ run = \"8ms\" }]\n[task.hog]\ncount = 2\ncpus = \"cpu 0\"\nbody = [{ run = \"1ms\" }]\n";
    let found = story(urgent, "eevdf-7.1", "");
    let because = &found.verdicts[0].because;
    assert!(
        because.contains("They had 8") && because.contains("; the rest: hog "),
        "{because}"
    );
    assert!(!because.contains("group 0"), "{because}");
}

#[test]
fn a_diagnosis_and_its_page_are_written_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let found = nothing_found();
    let page = page::page(&found, &[], std::path::Path::new("it.warmq"));
    assert!(page.contains(&text::nothing(&found.diagnosis)), "{page}");
    let file = folder.path().join("it.warmq");
    let mut writer = warmq_trace::file::Writer::new(Vec::new(), &found.header);
    writer.see(Instant::START, &one_record().1);
    std::fs::write(&file, writer.finish().unwrap()).unwrap();
    let span = Span {
        from: Instant::START,
        until: Instant(u64::MAX),
    };
    let again = of_file(&file, span).unwrap();
    assert_eq!(again.diagnosis, found.diagnosis);
    let recording = Recording::open(&file).unwrap();
    write(&again, &recording, folder.path(), true).unwrap();
    assert!(folder.path().join("diagnosis.html").exists());
    let json = std::fs::read_to_string(folder.path().join("diagnosis.json")).unwrap();
    assert!(json.starts_with("{\"schema\":1,\"window\":"), "{json}");
}

#[test]
fn what_is_no_trace_or_cut_off_is_refused_with_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("it.warmq");
    let span = Span {
        from: Instant::START,
        until: Instant(u64::MAX),
    };
    let refused = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        match of_file(&file, span) {
            Err(Failure::Usage(what, _)) => what,
            _ => panic!("{} bytes are not refused", bytes.len()),
        }
    };
    assert!(refused(b"no trace").contains("this is text"));
    let writer = warmq_trace::file::Writer::new(Vec::new(), &Header::default());
    let whole = writer.finish().unwrap();
    for end in 0..whole.len() {
        let said = refused(&whole[..end]);
        let expected = match end {
            0 => ": this is an empty file, and no recording that is read here".to_owned(),
            // Not all of what recordings begin with.
            1..8 => {
                ": this is data of no format that is known here, and no recording that is read here"
                    .to_owned()
            }
            _ => format!(
                ": the trace is cut off; copy it again, or record it again and let the run finish \
                 (byte {end}, after 0 whole records)"
            ),
        };
        assert_eq!(said, format!("{}{expected}", file.display()));
    }
}
