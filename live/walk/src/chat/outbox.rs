//! A user's queue on the server.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A bounded queue that many fill and one empties. Both wait asleep: a queue that spins would hide
/// what the scheduler does.
#[derive(Debug)]
pub struct Outbox<T> {
    capacity: usize,
    queue: Mutex<Queue<T>>,
    filled: Condvar,
    drained: Condvar,
}

#[derive(Debug)]
struct Queue<T> {
    items: VecDeque<T>,
    /// Threads that wait for room. A wakeup without them would be a useless system call.
    waiting: usize,
    closed: bool,
}

impl<T> Outbox<T> {
    /// Room for `capacity` items, at least one.
    pub fn new(capacity: usize) -> Outbox<T> {
        Outbox {
            capacity: capacity.max(1),
            queue: Mutex::new(Queue {
                items: VecDeque::new(),
                waiting: 0,
                closed: false,
            }),
            filled: Condvar::new(),
            drained: Condvar::new(),
        }
    }

    /// Adds `item` at the end, and waits for room first; drops it where the outbox is closed.
    pub fn put(&self, item: T) {
        let mut queue = self.lock();
        while queue.items.len() >= self.capacity && !queue.closed {
            queue.waiting += 1;
            queue = wait(&self.drained, queue);
            queue.waiting -= 1;
        }
        if queue.closed {
            return;
        }
        // The one who empties waits only where there was nothing.
        let wake = queue.items.is_empty();
        queue.items.push_back(item);
        drop(queue);
        if wake {
            self.filled.notify_one();
        }
    }

    /// Takes the first item, and waits for one; `None` where the outbox is closed and empty.
    pub fn take(&self) -> Option<T> {
        let mut queue = self.lock();
        while queue.items.is_empty() && !queue.closed {
            queue = wait(&self.filled, queue);
        }
        let item = queue.items.pop_front();
        let wake = queue.waiting > 0;
        drop(queue);
        if wake {
            self.drained.notify_one();
        }
        item
    }

    /// Takes no more items; those that it has can still be taken out.
    pub fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
        self.drained.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        // Nobody panics with the lock held; and a queue is sound between any two of its operations.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wait<'a, T>(condition: &Condvar, queue: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition
        .wait(queue)
        .unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn what_many_put_in_comes_out_once_each_and_in_the_order_of_each() {
        for capacity in [1, 2, 100] {
            let outbox = Arc::new(Outbox::new(capacity));
            let fill = |who: u32| {
                let outbox = outbox.clone();
                thread::spawn(move || (0..300).for_each(|item| outbox.put((who, item))))
            };
            let fillers: Vec<_> = (0..4).map(fill).collect();
            let mut next = [0; 4];
            for _ in 0..4 * 300 {
                let (who, item) = outbox.take().unwrap();
                assert_eq!(item, next[who as usize]);
                next[who as usize] += 1;
            }
            fillers
                .into_iter()
                .for_each(|filler| filler.join().unwrap());
            assert_eq!(next, [300; 4]);
        }
    }

    #[test]
    fn a_closed_outbox_gives_what_it_holds_and_takes_nothing() {
        let outbox = Outbox::new(1);
        outbox.put(1);
        outbox.close();
        outbox.put(2);
        assert_eq!([outbox.take(), outbox.take()], [Some(1), None]);
    }

    #[test]
    fn closing_wakes_whoever_waits() {
        let (full, empty) = (Arc::new(Outbox::new(1)), Arc::new(Outbox::<u32>::new(1)));
        full.put(1);
        let (one, other) = (full.clone(), empty.clone());
        let fills = thread::spawn(move || one.put(2));
        let takes = thread::spawn(move || other.take());
        full.close();
        empty.close();
        fills.join().unwrap();
        assert_eq!(takes.join().unwrap(), None);
    }
}
