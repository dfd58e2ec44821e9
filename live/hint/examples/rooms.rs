//! A chat's workers: each takes the next message, whatever room it is for, and says so before it
//! touches the room.
//!
//! ```text
//! cargo run --release -p warmq-hint --example rooms
//! ```
//!
//! Run it under `scx_warmq`, and `scx_warmq --monitor 1` shows eight groups, one a room. On any
//! other kernel it does the same work, unhinted.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// What this program calls its rooms; the fragment is the number of the room.
const ROOMS_APP: u32 = 1;
const ROOMS: u32 = 8;
const WORKERS: u32 = 16;
const MESSAGES: u32 = 200_000;

/// The data that members of a room share: 64 KB, so that it is worth staying where it is warm.
struct Room {
    history: Mutex<Vec<u64>>,
}

impl Room {
    fn new() -> Room {
        Room {
            history: Mutex::new(vec![0; 8192]),
        }
    }

    fn post(&self, message: u32) {
        let mut history = self.history.lock().expect("no worker panics");
        for entry in history.iter_mut() {
            *entry = entry.wrapping_add(u64::from(message));
        }
    }
}

fn work(rooms: &[Room], next: &AtomicU32) {
    loop {
        let message = next.fetch_add(1, Ordering::Relaxed);
        if message >= MESSAGES {
            break;
        }
        let room = message % ROOMS;
        // Before the data is touched: a thread that has to move does so here.
        let _scope = warmq_hint::Scope::enter(ROOMS_APP, room);
        rooms[room as usize].post(message);
    }
}

fn main() {
    let rooms: Vec<Room> = (0..ROOMS).map(|_| Room::new()).collect();
    let next = AtomicU32::new(0);
    let heard = warmq_hint::listening();
    println!(
        "{}",
        if heard {
            "a scheduler listens"
        } else {
            "no scheduler listens: the hints do nothing"
        }
    );
    thread::scope(|workers| {
        for _ in 0..WORKERS {
            workers.spawn(|| work(&rooms, &next));
        }
    });
    println!("{MESSAGES} messages to {ROOMS} rooms by {WORKERS} workers");
}
