//! Programs: `async fn`s that read like the programs they model.
//!
//! A program holds no reference to the kernel. Each `await` is a system call (or computation) that
//! the kernel performs in simulated time; programs know nothing of preemption.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use warmq_units::{Bytes, CpuId, CpuSet, Cycles, Duration, Instant, TaskId};

use crate::words::{
    Barrier, Change, Condition, Fragment, Listener, Look, Looked, Mutex, NewTask, Nic, Operation,
    RemoteOperation, Semaphore, Sender, SenderSlot, Socket, Span, SpanEdge, Spinlock, TaskSpec,
    Touch,
};

/// What a task runs: anything that makes a future from the task's handle.
pub trait Program {
    /// Starts the program as `task`.
    fn start(self: Box<Self>, task: Task) -> Running;
}

/// A program that has been started.
pub type Running = Pin<Box<dyn Future<Output = ()>>>;

pub(crate) type BoxedProgram = Box<dyn Program>;

impl<F, R> Program for F
where
    F: FnOnce(Task) -> R,
    R: Future<Output = ()> + 'static,
{
    fn start(self: Box<Self>, task: Task) -> Running {
        Box::pin(self(task))
    }
}

/// Where a program puts its requests and finds the answers.
pub(crate) struct Mailbox<O> {
    asked: Cell<Option<O>>,
    answer: Cell<u64>,
}

impl<O> Default for Mailbox<O> {
    fn default() -> Mailbox<O> {
        Mailbox {
            asked: Cell::new(None),
            answer: Cell::new(0),
        }
    }
}

impl<O> Mailbox<O> {
    pub(crate) fn take(&self) -> Option<O> {
        self.asked.take()
    }

    pub(crate) fn answer(&self, answer: u64) {
        self.answer.set(answer);
    }
}

/// Runs a program up to its next operation. True if it has returned.
pub(crate) fn resume(program: &mut Running) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    program.as_mut().poll(&mut context) == Poll::Ready(())
}

/// The future of one operation: the first poll puts it into the mailbox, the second finds the
/// answer.
struct Call<'a, O> {
    mailbox: &'a Mailbox<O>,
    operation: Option<O>,
}

impl<O: Unpin> Future for Call<'_, O> {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u64> {
        match self.operation.take() {
            Some(operation) => {
                self.mailbox.asked.set(Some(operation));
                Poll::Pending
            }
            None => Poll::Ready(self.mailbox.answer.get()),
        }
    }
}

/// Asks for `operation` by `mailbox`.
pub(crate) fn ask<O: Unpin>(mailbox: &Mailbox<O>, operation: O) -> impl Future<Output = u64> {
    let operation = Some(operation);
    Call { mailbox, operation }
}

/// A stream ended before all expected bytes were received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedEarly {
    /// How much was received.
    pub received: Bytes,
}

/// A task's own handle: its system calls.
#[derive(Clone)]
pub struct Task {
    id: TaskId,
    mailbox: Rc<Mailbox<Operation>>,
}

impl Task {
    pub(crate) fn new(id: TaskId, mailbox: Rc<Mailbox<Operation>>) -> Task {
        Task { id, mailbox }
    }

    /// The id of this task.
    pub fn id(&self) -> TaskId {
        self.id
    }

    fn call(&self, operation: Operation) -> impl Future<Output = u64> {
        ask(&self.mailbox, operation)
    }

    /// Changes something of a task, a group or a CPU. False of a CPU if it was in that state
    /// already, is the last one online, or does not exist.
    pub async fn change(&self, change: Change) -> bool {
        self.call(Operation::Change(change)).await == 1
    }

    /// Computes for `cycles`, without simulated memory accesses.
    pub async fn compute(&self, cycles: Cycles) {
        self.call(Operation::Compute(cycles)).await;
    }

    /// Computes for `span`, as long as nothing else slows its CPU.
    pub async fn compute_for(&self, span: Duration) {
        self.call(Operation::ComputeFor(span)).await;
    }

    /// The time, which costs nothing to read.
    pub async fn now(&self) -> Instant {
        Instant(self.call(Operation::Now).await)
    }

    /// How long this task has run, from switch to switch; reading it costs nothing.
    pub async fn ran(&self) -> Duration {
        Duration(self.call(Operation::Ran).await)
    }

    /// The CPU that this task runs on (`getcpu()`), which it may leave at once; reading it costs
    /// nothing.
    pub async fn cpu(&self) -> CpuId {
        CpuId(self.call(Operation::Cpu).await as u16)
    }

    /// Records that the span `span` begins, at no cost; one that is open begins anew.
    pub async fn begin_span(&self, span: Span) {
        let edge = SpanEdge::Begins;
        self.call(Operation::Span { span, edge }).await;
    }

    /// Records that the span `span` began already `at` a time that has passed, at no cost.
    pub async fn span_began(&self, span: Span, at: Instant) {
        let edge = SpanEdge::Began(at);
        self.call(Operation::Span { span, edge }).await;
    }

    /// Records that the span `span` ends, at no cost.
    pub async fn end_span(&self, span: Span) {
        let edge = SpanEdge::Ends;
        self.call(Operation::Span { span, edge }).await;
    }

    /// Ends the run, because the program cannot go on; `why` completes "it ...".
    pub async fn give_up(&self, why: &str) {
        self.call(Operation::GiveUp(why.into())).await;
    }

    /// Ends the run, because the program works without end while no time passes. Of operations the
    /// kernel finds this out by itself, not of what programs do between them.
    pub async fn no_progress(&self) {
        self.call(Operation::NoProgress).await;
    }

    /// Reads or writes memory, line by line.
    pub async fn touch(&self, touch: Touch) {
        self.call(Operation::Touch(touch)).await;
    }

    /// Sleeps for at least `span`, rounded up to the kernel's timer resolution.
    pub async fn sleep(&self, span: Duration) {
        self.call(Operation::Sleep(span)).await;
    }

    /// Yields the CPU (`sched_yield`).
    pub async fn yield_now(&self) {
        self.call(Operation::Yield).await;
    }

    /// Sends `bytes`; sleeps while the peer's buffer is full.
    pub async fn send(&self, socket: Socket, bytes: Bytes) {
        self.call(Operation::Send {
            socket,
            left: bytes,
        })
        .await;
    }

    /// Receives at most `at_most` bytes; sleeps while there are none. Zero if the peer has closed.
    pub async fn receive(&self, socket: Socket, at_most: Bytes) -> Bytes {
        Bytes(self.call(Operation::Receive { socket, at_most }).await)
    }

    /// Receives exactly `bytes`.
    ///
    /// # Errors
    /// If the peer closes before; the error says how much was received.
    pub async fn receive_all(&self, socket: Socket, bytes: Bytes) -> Result<(), ClosedEarly> {
        let mut received = 0;
        while received < bytes.0 {
            let got = self.receive(socket, Bytes(bytes.0 - received)).await.0;
            if got == 0 {
                let received = Bytes(received);
                return Err(ClosedEarly { received });
            }
            received += got;
        }
        Ok(())
    }

    /// Sends a datagram of `bytes` over loopback to a datagram socket of this machine. It never
    /// sleeps: if the receive buffer is full, the datagram is dropped.
    pub async fn send_datagram(&self, socket: Socket, bytes: Bytes) {
        self.call(Operation::SendDatagram { socket, bytes }).await;
    }

    /// Receives the oldest datagram and returns the size of its payload; sleeps while there is
    /// none.
    pub async fn receive_datagram(&self, socket: Socket) -> Bytes {
        let from = None;
        Bytes(self.call(Operation::ReceiveDatagram { socket, from }).await)
    }

    /// The same, with the sender of the datagram (`recvfrom()`).
    pub async fn receive_datagram_from(&self, socket: Socket) -> (Bytes, Sender) {
        let slot = SenderSlot::default();
        let from = Some(slot.clone());
        let receive = Operation::ReceiveDatagram { socket, from };
        let bytes = self.call(receive).await;
        (Bytes(bytes), slot.get())
    }

    /// Answers a datagram of `to`, which was received on `socket`, with one of `bytes`. It goes out
    /// over the card by which the datagram came, and never sleeps. What came from this machine has
    /// no answer: no system call is made.
    pub async fn answer(&self, socket: Socket, to: Sender, bytes: Bytes) {
        if let Sender(Some(to)) = to {
            self.call(Operation::Answer { socket, to, bytes }).await;
        }
    }

    /// Closes this end.
    pub async fn close(&self, socket: Socket) {
        self.call(Operation::Close(socket)).await;
    }

    /// Waits for a connection.
    pub async fn accept(&self, listener: Listener) -> Socket {
        Socket(self.call(Operation::Accept(listener)).await as u32)
    }

    /// Locks a mutex; sleeps while another task holds it.
    pub async fn lock(&self, mutex: Mutex) {
        self.call(Operation::Lock(mutex)).await;
    }

    /// Unlocks a mutex; the task that has waited longest gets it.
    pub async fn unlock(&self, mutex: Mutex) {
        self.call(Operation::Unlock(mutex)).await;
    }

    /// Looks at a spin lock of user space at once, and up to `looks` times more with `pause` of
    /// computing before each; takes it if it is free.
    pub async fn look(&self, lock: Spinlock, looks: u64, pause: Duration) -> Looked {
        let left = looks.min(Looked::MOST);
        let marks = false;
        let look = Look {
            lock,
            left,
            bout: 0,
            pause,
            marks,
        };
        Looked::of_answer(self.call(Operation::Look(look)).await)
    }

    /// Takes a spin lock; sleeps in its futex while it is held (`__lll_lock_wait()`).
    pub async fn sleep_for_spinlock(&self, lock: Spinlock) {
        let look = Look {
            lock,
            left: 0,
            bout: 0,
            pause: Duration::ZERO,
            marks: true,
        };
        while !Looked::of_answer(self.call(Operation::Look(look)).await).taken {
            self.call(Operation::SleepInSpinlock(lock)).await;
        }
    }

    /// Releases a spin lock. If a task sleeps in its futex, a system call wakes it.
    pub async fn release(&self, lock: Spinlock) {
        if self.call(Operation::ReleaseSpinlock(lock)).await == 1 {
            self.call(Operation::WakeInSpinlock(lock)).await;
        }
    }

    /// Adds one to a SysV semaphore, which may wake a task that waits for it.
    pub async fn raise(&self, semaphore: Semaphore) {
        let up = true;
        self.call(Operation::Semop { semaphore, up }).await;
    }

    /// Subtracts one from a SysV semaphore; sleeps while it is 0.
    pub async fn lower(&self, semaphore: Semaphore) {
        let up = false;
        self.call(Operation::Semop { semaphore, up }).await;
    }

    /// Unlocks `mutex`, sleeps until `condition` is notified, and locks `mutex` again.
    pub async fn wait(&self, condition: Condition, mutex: Mutex) {
        self.wait_at_most(condition, Some(mutex), None).await;
    }

    /// Sleeps until `condition` is notified, or `timeout` is over. `mutex` is unlocked before, and
    /// locked again.
    pub async fn wait_at_most(
        &self,
        condition: Condition,
        mutex: Option<Mutex>,
        timeout: Option<Duration>,
    ) {
        self.call(Operation::Wait {
            condition,
            mutex,
            timeout,
        })
        .await;
    }

    /// Wakes the task that has waited longest for `condition`.
    pub async fn notify_one(&self, condition: Condition) {
        self.call(Operation::Notify {
            condition,
            all: false,
        })
        .await;
    }

    /// Wakes all tasks that wait for `condition`.
    pub async fn notify_all(&self, condition: Condition) {
        self.call(Operation::Notify {
            condition,
            all: true,
        })
        .await;
    }

    /// Waits at a barrier, which wakes all that wait there when as many have come as it is for.
    pub async fn meet(&self, barrier: Barrier) {
        self.call(Operation::Meet(barrier)).await;
    }

    /// Creates a task (`fork` or `clone`).
    pub async fn spawn(&self, spec: TaskSpec, program: impl Program + 'static) -> TaskId {
        let program: BoxedProgram = Box::new(program);
        let child = Box::new(NewTask { spec, program });
        TaskId(self.call(Operation::Spawn(child)).await as u32)
    }

    /// Declares that this task uses the data of `fragment` of `app` from here on. A scheduler that
    /// uses fragments may move the task before it continues; under any other this has no effect but
    /// the cost of the system call.
    pub async fn enter(&self, app: u32, fragment: u32) {
        let number = fragment;
        self.call(Operation::SetFragment(Some(Fragment { app, number })))
            .await;
    }

    /// Declares that this task uses no named data from here on.
    pub async fn leave(&self) {
        self.call(Operation::SetFragment(None)).await;
    }
}

/// The handle of a peer on another machine, which uses no CPU time of this one.
#[derive(Clone)]
pub struct RemotePeer {
    mailbox: Rc<Mailbox<RemoteOperation>>,
}

impl RemotePeer {
    pub(crate) fn new(mailbox: Rc<Mailbox<RemoteOperation>>) -> RemotePeer {
        RemotePeer { mailbox }
    }

    fn call(&self, operation: RemoteOperation) -> impl Future<Output = u64> {
        ask(&self.mailbox, operation)
    }

    /// Pauses for `span`.
    pub async fn pause(&self, span: Duration) {
        self.call(RemoteOperation::Pause(span)).await;
    }

    /// Opens a connection through `nic`. Returns this machine's end of it.
    pub async fn connect(&self, listener: Listener, nic: Nic) -> Socket {
        Socket(self.call(RemoteOperation::Connect { listener, nic }).await as u32)
    }

    /// Sends `bytes` to `socket`, this machine's end of a connection.
    pub async fn send(&self, socket: Socket, bytes: Bytes) {
        self.call(RemoteOperation::Send { socket, bytes }).await;
    }

    /// Sends a datagram of `bytes` through `nic` to `socket`, a datagram socket of this machine.
    pub async fn send_datagram(&self, socket: Socket, nic: Nic, bytes: Bytes) {
        self.datagram(socket, nic, bytes, None).await;
    }

    /// The same as the peer's datagram `number`: if the peer measures (see
    /// [`Boot::measuring_remote`](crate::Boot::measuring_remote)), a span of this number begins,
    /// which the first answer ends when it is back.
    pub async fn send_measured(&self, socket: Socket, nic: Nic, bytes: Bytes, number: u64) {
        self.datagram(socket, nic, bytes, Some(number)).await;
    }

    async fn datagram(&self, socket: Socket, nic: Nic, bytes: Bytes, number: Option<u64>) {
        let operation = RemoteOperation::SendDatagram {
            socket,
            nic,
            bytes,
            number,
        };
        self.call(operation).await;
    }

    /// Has `nic` interrupt the CPUs in `cpus` from now on, in turn, as [`Boot::steer`] does.
    ///
    /// [`Boot::steer`]: crate::Boot::steer
    pub async fn steer(&self, nic: Nic, cpus: CpuSet) {
        self.call(RemoteOperation::Steer { nic, cpus }).await;
    }

    /// Waits until `bytes` have arrived from `socket`.
    pub async fn receive(&self, socket: Socket, bytes: Bytes) {
        self.call(RemoteOperation::Receive { socket, bytes }).await;
    }

    /// Closes the connection and notifies this machine's end.
    pub async fn close(&self, socket: Socket) {
        self.call(RemoteOperation::Close(socket)).await;
    }
}
