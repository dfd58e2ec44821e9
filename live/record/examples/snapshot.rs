//! Records this machine for a moment, and keeps the recording in a file:
//! `snapshot FILE [MILLISECONDS] [KIB A CPU]`. Then it says what is in it.

use std::collections::BTreeMap;
use std::time::Duration;

use warmq_record::{Recorder, Recording, Tasks, Wanted};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments
        .next()
        .ok_or("snapshot FILE [MILLISECONDS] [KIB A CPU]")?;
    let mut number = |usual| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (time, kib) = (number(20)?, number(1024)?);
    let recorder = Recorder::start(&Wanted {
        buffer_kb_per_cpu: u32::try_from(kib)?,
        ..Wanted::default()
    })?;
    std::thread::sleep(Duration::from_millis(time));
    let recording = recorder.stop()?;
    std::fs::write(&file, recording.to_bytes())?;
    let recording = Recording::from_bytes(&std::fs::read(&file)?)?;
    print(&recording);
    Ok(())
}

fn print(recording: &Recording) {
    println!("{recording:?}");
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let mut tasks = Tasks::new();
    recording.records(&mut tasks, 0, &mut |_, record| {
        let text = format!("{record:?}");
        let kind = text.split([' ', '{']).next().unwrap_or_default();
        *kinds.entry(kind.to_owned()).or_default() += 1;
    });
    for (kind, count) in kinds {
        println!("{count:>8} {kind}");
    }
    println!("{:>8} tasks", tasks.iter().count());
}
