//! What each step asks of the simulated kernel.

use warmq_kernel::{Task, Touch};
use warmq_scenario::{
    Action, Amount, Draw, End, Expr, Fragment, Pattern, Quantity, Reference, Share, TaskReference,
};
use warmq_units::{Bytes, Cycles, Duration};

use super::objects::Made;
use super::player::{Left, Player, Shared};
use super::specs::{APP, NO_CPU, has_no_cpu, nice_of};

impl Player {
    pub(super) async fn act(&mut self, action: &Action) -> Result<(), Left> {
        match action {
            Action::Run(amount) => self.compute(amount).await?,
            Action::Touch(touch) => self.touch(touch).await?,
            Action::Spin(span) => self.spin(span).await?,
            Action::Timer { timer, period } => self.wait_for(timer, period).await?,
            Action::Sleep(span) => {
                let span = Duration(self.draw(span)?);
                self.task.sleep(span).await;
            }
            Action::Lock(mutex) => self.task.lock(self.mutex(mutex)?).await,
            Action::Unlock(mutex) => self.task.unlock(self.mutex(mutex)?).await,
            Action::Wait { condition, mutex } => {
                let (condition, mutex) = (self.condition(condition)?, self.mutex(mutex)?);
                self.task.wait(condition, mutex).await;
            }
            Action::Signal { condition, all } => {
                let condition = self.condition(condition)?;
                match all {
                    true => self.task.notify_all(condition).await,
                    false => self.task.notify_one(condition).await,
                }
            }
            Action::Raise(semaphore) => self.task.raise(self.semaphore(semaphore)?).await,
            Action::Lower(semaphore) => self.task.lower(self.semaphore(semaphore)?).await,
            Action::Barrier(barrier) => self.meet(barrier).await?,
            Action::Put(queue) => self.put(queue).await?,
            Action::Take(queue) => self.take(queue).await?,
            Action::Send { to, bytes } => self.send(to, bytes).await?,
            Action::Receive { from, bytes } => self.receive(from, bytes.as_ref()).await?,
            Action::Spawn(other) => self.start(other, true).await?,
            Action::Fork(other) => self.start(other, false).await?,
            Action::Exit => return Err(Left::Exits),
            Action::Yield => self.task.yield_now().await,
            Action::Fragment(Fragment::None) => self.task.leave().await,
            Action::Fragment(Fragment::Number(number)) => {
                let number = self.eval(number)? as u32;
                self.task.enter(APP, number).await;
            }
            Action::Nice(nice) => {
                let nice = nice_of(self.stage.bound.eval_signed(nice, &self.indexes)?);
                self.task.set_nice(self.task.id(), nice).await;
            }
            Action::Count { counter, by } => self.stage.count(*counter, self.eval(by)?),
            Action::Begin(span) => self.task.begin_span(self.span(span)?).await,
            Action::End(span) => self.task.end_span(self.span(span)?).await,
            Action::Set(set) => self.set_own(set).await?,
            Action::Reply { socket, bytes } => self.reply(socket, bytes).await?,
            Action::Write { .. } => unreachable!("a scenario that writes is not played"),
            Action::Repeat { .. } | Action::Recorded(_) => {
                unreachable!("loops and rows are ops of their own")
            }
        }
        Ok(())
    }
}

impl Player {
    async fn compute(&mut self, amount: &Amount) -> Result<(), Left> {
        let work = self.draw(amount)?;
        match quantity(amount) {
            Quantity::Time => self.task.compute_for(Duration(work)).await,
            _ => self.task.compute(Cycles(work)).await,
        }
        Ok(())
    }

    /// Writes come first, then reads: which of the accesses write makes no difference to caches.
    async fn touch(&mut self, touch: &warmq_scenario::Touch) -> Result<(), Left> {
        let stage = self.stage.clone();
        let Made::Regions(regions) = stage.made(&touch.region) else {
            unreachable!("the reader resolves regions to regions")
        };
        let (region, of_region) = regions[self.number(&touch.region)?];
        let lines = match &touch.share {
            Share::Whole => of_region,
            Share::Lines(lines) => self.eval(lines)?,
            Share::Bytes(bytes) => self.eval(bytes)?.div_ceil(stage.line),
        };
        let mut first = match &touch.first {
            Some(first) => self.eval(first)?,
            None => 0,
        };
        let mut stride = match &touch.pattern {
            Pattern::Sequential => 1,
            Pattern::Stride(stride) => self.eval(stride)?.max(1),
            // A stride that shares no factor with the region visits lines in a scattered order.
            Pattern::Random => {
                first = self.random(of_region.max(1));
                scattered(of_region)
            }
        };
        // Lines are counted around the region's end: whole regions change nothing.
        let around = of_region.max(1);
        (first, stride) = (first % around, stride % around);
        let percent = self.eval(&touch.write_percent)?.min(100);
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

    async fn meet(&mut self, barrier: &Reference) -> Result<(), Left> {
        let stage = self.stage.clone();
        let Made::Barriers(barriers) = stage.made(barrier) else {
            unreachable!("the reader resolves barriers to barriers")
        };
        self.task.meet(barriers[self.number(barrier)?]).await;
        Ok(())
    }

    async fn put(&mut self, queue: &Reference) -> Result<(), Left> {
        let stage = self.stage.clone();
        let queue = stage.queue(queue, self.number(queue)?);
        self.task.lock(queue.mutex).await;
        while queue.items.get() >= queue.holds {
            self.task.wait(queue.emptied, queue.mutex).await;
        }
        queue.items.set(queue.items.get() + 1);
        self.task.notify_one(queue.filled).await;
        self.task.unlock(queue.mutex).await;
        Ok(())
    }

    async fn take(&mut self, queue: &Reference) -> Result<(), Left> {
        let stage = self.stage.clone();
        let queue = stage.queue(queue, self.number(queue)?);
        self.task.lock(queue.mutex).await;
        while queue.items.get() == 0 {
            self.task.wait(queue.filled, queue.mutex).await;
        }
        queue.items.set(queue.items.get() - 1);
        self.task.notify_one(queue.emptied).await;
        self.task.unlock(queue.mutex).await;
        Ok(())
    }

    async fn send(&mut self, to: &Reference, bytes: &Expr) -> Result<(), Left> {
        let bytes = Bytes(self.eval(bytes)?);
        let number = self.number(to)?;
        match self.stage.made(to) {
            Made::Streams(streams) => {
                let (near, far) = streams[number];
                // What goes into a stream at one end is received at the other.
                let socket = if to.end == Some(End::Far) { far } else { near };
                self.task.send(socket, bytes).await;
            }
            Made::Datagrams(sockets) => self.task.send_datagram(sockets[number], bytes).await,
            _ => unreachable!("the reader resolves what is sent to"),
        }
        Ok(())
    }

    async fn receive(&mut self, from: &Reference, bytes: Option<&Expr>) -> Result<(), Left> {
        let number = self.number(from)?;
        let bytes = match bytes {
            Some(bytes) => Bytes(self.eval(bytes)?),
            None => Bytes(0),
        };
        match self.stage.made(from) {
            Made::Streams(streams) => {
                let (near, far) = streams[number];
                // A pipe is written at its first end and read at its second.
                let socket = if from.end == Some(End::Near) {
                    near
                } else {
                    far
                };
                let whole = self.task.receive_all(socket, bytes).await;
                // The other end is closed: nothing will come any more.
                whole.map_err(|_| Left::Exits)?;
            }
            Made::Datagrams(sockets) if self.answers(from.object) => {
                let (_, sender) = self.task.receive_datagram_from(sockets[number]).await;
                self.senders.insert((from.object, number), sender);
            }
            Made::Datagrams(sockets) => {
                self.task.receive_datagram(sockets[number]).await;
            }
            _ => unreachable!("the reader resolves what is received from"),
        }
        Ok(())
    }

    /// Answers what came last. Where nothing has come, or a task sent it, nobody waits for an answer.
    async fn reply(&mut self, socket: &Reference, bytes: &Expr) -> Result<(), Left> {
        let (number, bytes) = (self.number(socket)?, Bytes(self.eval(bytes)?));
        let Made::Datagrams(sockets) = self.stage.made(socket) else {
            unreachable!("the reader resolves what is answered on")
        };
        if let Some(sender) = self.senders.get(&(socket.object, number)) {
            self.task.answer(sockets[number], *sender, bytes).await;
        }
        Ok(())
    }

    /// A thread shares this task's address space, a process gets one of its own.
    async fn start(&mut self, other: &TaskReference, thread: bool) -> Result<(), Left> {
        let stage = self.stage.clone();
        let number = stage.bound.task_number(other, &self.indexes)?;
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

/// What an amount counts.
fn quantity(amount: &Amount) -> Quantity {
    match &amount.draw {
        Draw::Constant(it) | Draw::Exponential(it) | Draw::Uniform(it, _) => it.quantity,
        Draw::Pareto { least, .. } => least.quantity,
        Draw::Among(values) => values[0].quantity,
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
