//! What each step asks of the simulated kernel.

use warmq_kernel::{Condition, Task, Touch};
use warmq_scenario::program::{self, APP, Do, Draws, Lines, Link, Number, SpanEdge, Which};
use warmq_scenario::{Quantity, TaskReference};
use warmq_units::{Bytes, Cycles, Duration};

use super::player::{Left, Player, Shared};
use super::specs::{NO_CPU, has_no_cpu};

impl Player {
    pub(super) async fn act(&mut self, step: &Do) -> Result<(), Left> {
        let stage = self.stage.clone();
        let objects = &stage.objects;
        match step {
            Do::Run(amount, quantity) => self.compute(amount, *quantity).await?,
            Do::Touch(touch) => self.touch(touch).await?,
            Do::Spin(span) => self.spin(span).await?,
            Do::Timer(timer) => self.wait_for(timer).await?,
            Do::Sleep(span) => {
                let span = Duration(self.draw(span)?);
                self.task.sleep(span).await;
            }
            Do::Lock(mutex) => self.task.lock(objects.mutexes[self.place(mutex)?]).await,
            Do::Unlock(mutex) => self.task.unlock(objects.mutexes[self.place(mutex)?]).await,
            Do::TakeSpinlock(step) => self.take_spinlock(step).await?,
            Do::ReleaseSpinlock(lock) => self.release_spinlock(lock).await?,
            Do::Wait(wait) => {
                let condition = objects.conditions[self.place(&wait.condition)?];
                let mutex = objects.mutexes[self.place(&wait.mutex)?];
                let timeout = self.timeout(wait.timeout.as_ref())?;
                self.task
                    .wait_at_most(condition, Some(mutex), timeout)
                    .await;
            }
            Do::WaitInFutex(futex, timeout) => {
                let futex = objects.futexes[self.place(futex)?];
                let timeout = self.timeout(timeout.as_deref())?;
                self.task.wait_at_most(futex, None, timeout).await;
            }
            Do::Signal(condition, all) => {
                let condition = objects.conditions[self.place(condition)?];
                self.notify(condition, *all).await;
            }
            Do::WakeInFutex(futex, all) => {
                let futex = objects.futexes[self.place(futex)?];
                self.notify(futex, *all).await;
            }
            Do::Raise(object) => {
                self.task
                    .raise(objects.semaphores[self.place(object)?])
                    .await
            }
            Do::Lower(object) => {
                self.task
                    .lower(objects.semaphores[self.place(object)?])
                    .await
            }
            Do::Barrier(object) => self.task.meet(objects.barriers[self.place(object)?]).await,
            Do::Put(queue) => self.put(queue).await?,
            Do::Take(queue) => self.take(queue).await?,
            Do::Send(to, link, bytes) => self.send(to, *link, bytes).await?,
            Do::Receive(from, link, bytes) => self.receive(from, *link, bytes).await?,
            Do::Reply(socket, bytes) => self.reply(socket, bytes).await?,
            Do::Write(..) => {
                self.task
                    .give_up("writes to a file, which the lab has not")
                    .await
            }
            Do::Start(other, as_thread) => self.start(other, *as_thread).await?,
            Do::Exit => return Err(Left::Exits),
            Do::Yield => self.task.yield_now().await,
            Do::Fragment(None) => self.task.leave().await,
            Do::Fragment(Some(number)) => {
                let number = self.get(number)? as u32;
                self.task.enter(APP, number).await;
            }
            Do::Set(set) => self.set_own(set).await?,
            Do::Span(span, edge) => {
                let span = self.span(span)?;
                match edge {
                    SpanEdge::Begins => self.task.begin_span(span).await,
                    SpanEdge::BeganWhenDue => self.task.span_began(span, self.due).await,
                    SpanEdge::Ends => self.task.end_span(span).await,
                }
            }
            Do::Count(counter, by) => stage.count(*counter, self.get(by)?),
        }
        Ok(())
    }
}

impl Player {
    async fn compute(&mut self, amount: &Draws, quantity: Quantity) -> Result<(), Left> {
        let work = self.draw(amount)?;
        match quantity {
            Quantity::Time => self.task.compute_for(Duration(work)).await,
            _ => self.task.compute(Cycles(work)).await,
        }
        Ok(())
    }

    async fn notify(&self, condition: Condition, all: bool) {
        match all {
            true => self.task.notify_all(condition).await,
            false => self.task.notify_one(condition).await,
        }
    }

    fn timeout(&mut self, timeout: Option<&Draws>) -> Result<Option<Duration>, Left> {
        let span = timeout.map(|span| self.draw(span)).transpose()?;
        Ok(span.map(Duration))
    }

    /// Writes come first, then reads: which of the accesses write makes no difference to caches.
    async fn touch(&mut self, touch: &program::Touch) -> Result<(), Left> {
        let (region, of_region) = self.stage.objects.regions[self.place(&touch.region)?];
        let whole = (of_region, self.stage.line);
        let lines = touch.part.lines(whole, |number| self.get(number))?;
        let (first, stride) = match &touch.lines {
            Lines::Stride { first, stride } => (self.get(first)?, self.get(stride)?.max(1)),
            // A stride that shares no factor with the region visits lines in a scattered order.
            Lines::Random(from) => (self.random(*from, of_region.max(1)), scattered(of_region)),
        };
        // Lines are counted around the region's end: whole regions change nothing.
        let around = of_region.max(1);
        let (first, stride) = (first % around, stride % around);
        let percent = self.get(&touch.write_percent)?.min(100);
        let writes = (u128::from(lines) * u128::from(percent) / 100) as u64;
        let accesses = |first, lines| Touch::read(region, first, lines).stride(stride);
        if writes > 0 {
            self.task.touch(accesses(first, writes).writing()).await;
        }
        if writes < lines {
            let next = u128::from(first) + u128::from(writes) * u128::from(stride);
            let rest = accesses((next % u128::from(around)) as u64, lines - writes);
            self.task.touch(rest).await;
        }
        Ok(())
    }

    async fn put(&mut self, queue: &Which) -> Result<(), Left> {
        let stage = self.stage.clone();
        let queue = &stage.objects.queues[self.place(queue)?];
        self.task.lock(queue.mutex).await;
        while queue.items.get() >= queue.holds {
            self.task.wait(queue.emptied, queue.mutex).await;
        }
        queue.items.set(queue.items.get() + 1);
        self.task.notify_one(queue.filled).await;
        self.task.unlock(queue.mutex).await;
        Ok(())
    }

    async fn take(&mut self, queue: &Which) -> Result<(), Left> {
        let stage = self.stage.clone();
        let queue = &stage.objects.queues[self.place(queue)?];
        self.task.lock(queue.mutex).await;
        while queue.items.get() == 0 {
            self.task.wait(queue.filled, queue.mutex).await;
        }
        queue.items.set(queue.items.get() - 1);
        self.task.notify_one(queue.emptied).await;
        self.task.unlock(queue.mutex).await;
        Ok(())
    }

    async fn send(&mut self, to: &Which, link: Link, bytes: &Number) -> Result<(), Left> {
        let bytes = Bytes(self.get(bytes)?);
        let (place, objects) = (self.place(to)?, &self.stage.objects);
        match link {
            Link::Pipe => self.task.send(objects.pipes[place].0, bytes).await,
            Link::Stream(end) => {
                let socket = end.of(objects.streams[place]);
                self.task.send(socket, bytes).await;
            }
            Link::Datagram => {
                let socket = objects.datagrams[place];
                self.task.send_datagram(socket, bytes).await;
            }
        }
        Ok(())
    }

    async fn receive(&mut self, from: &Which, link: Link, bytes: &Number) -> Result<(), Left> {
        let (place, bytes) = (self.place(from)?, Bytes(self.get(bytes)?));
        let objects = &self.stage.objects;
        let socket = match link {
            Link::Pipe => objects.pipes[place].1,
            Link::Stream(end) => end.of(objects.streams[place]),
            Link::Datagram => {
                self.receive_datagram(from, place).await;
                return Ok(());
            }
        };
        let whole = self.task.receive_all(socket, bytes).await;
        // The other end is closed: nothing will come any more.
        whole.map_err(|_| Left::Exits)
    }

    async fn receive_datagram(&mut self, from: &Which, place: usize) {
        let socket = self.stage.objects.datagrams[place];
        if self.answers(from) {
            let (_, sender) = self.task.receive_datagram_from(socket).await;
            self.senders.insert(place, sender);
        } else {
            self.task.receive_datagram(socket).await;
        }
    }

    /// Answers what came last. Where nothing has come, or a task sent it, nobody waits for an
    /// answer.
    async fn reply(&mut self, socket: &Which, bytes: &Number) -> Result<(), Left> {
        let (place, bytes) = (self.place(socket)?, Bytes(self.get(bytes)?));
        if let Some(sender) = self.senders.get(&place) {
            let socket = self.stage.objects.datagrams[place];
            self.task.answer(socket, *sender, bytes).await;
        }
        Ok(())
    }

    /// A thread shares this task's address space, a process gets one of its own.
    async fn start(&mut self, other: &TaskReference, thread: bool) -> Result<(), Left> {
        let stage = self.stage.clone();
        let number = stage.bound.task_number(other, &self.loops.indexes)?;
        let own = match thread {
            true => self.shared.mm,
            false => Some(stage.own_mm(other.task, number)),
        };
        let (mut spec, kind) = (stage.spec(other.task, number, own)?, other.task);
        if has_no_cpu(&spec) {
            self.task.give_up(&format!("starts {NO_CPU}")).await;
        }
        let autogroup = stage.autogroup(kind, &spec, self.shared.autogroup);
        if let Some(autogroup) = autogroup {
            spec = spec.group(autogroup);
        }
        let mm = spec.mm;
        let shared = Shared { mm, autogroup };
        let child = move |task: Task| Player::new(task, stage, kind, number, shared).play();
        self.task.spawn(spec, child).await;
        Ok(())
    }
}

/// A stride that visits `lines` lines in an order without pattern: near the golden section, and
/// without a factor in common.
fn scattered(lines: u64) -> u64 {
    let wanted = (lines * 618 / 1_000).max(1);
    let coprime = |stride: &u64| gcd(*stride, lines.max(1)) == 1;
    (wanted..).find(coprime).unwrap_or(1)
}

fn gcd(first: u64, second: u64) -> u64 {
    match second {
        0 => first,
        _ => gcd(second, first % second),
    }
}
