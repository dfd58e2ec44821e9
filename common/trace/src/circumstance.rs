//! The circumstances of what happened: why a task sleeps, who woke it, by which policy it runs.

/// Words of enumerations without fields, which never change: new ones are added at the end.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$of])* $variant = $number,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            pub(crate) fn word(self) -> u64 {
                self as u64
            }

            pub(crate) fn of_word(word: u64) -> Option<$name> {
                match word {
                    $($number => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

numbered! {
    /// What a task that sleeps waits for.
    Cause {
        /// Nobody knows.
        Unknown = 0,
        /// A mutex of user space.
        Mutex = 1,
        /// A condition variable.
        Condition = 2,
        /// A semaphore.
        Semaphore = 3,
        /// A barrier.
        Barrier = 4,
        /// Room or an item in a queue of user space.
        Queue = 5,
        /// Data or room in a pipe.
        Pipe = 6,
        /// Data or room in a stream or datagram socket.
        Socket = 7,
        /// A time.
        Timer = 8,
        /// The end of a child.
        Child = 9,
        /// A signal to continue (SIGCONT).
        Continue = 10,
        /// Its group is thawed.
        Thaw = 11,
        /// Its group's next period (CPU bandwidth control).
        Quota = 12,
        /// A disk or another device.
        Device = 13,
        /// A spin lock of user space, in its futex.
        Spinlock = 14,
        /// A futex of user space.
        Futex = 15,
    }
}

numbered! {
    /// What a CPU was doing when it woke a task.
    Context {
        /// Nobody knows.
        Unknown = 0,
        /// A task, in a system call.
        Task = 1,
        /// A softirq.
        Softirq = 2,
        /// A hardware interrupt.
        Interrupt = 3,
    }
}

numbered! {
    /// The state in which a task left its CPU (the kernel's `TASK_...`, as `sched_switch` shows
    /// it).
    State {
        /// Runnable.
        Runnable = 0,
        /// Asleep; a signal wakes it (S).
        Interruptible = 1,
        /// Asleep; no signal wakes it (D).
        Uninterruptible = 2,
        /// Stopped (T) or traced (t).
        Stopped = 3,
        /// Dead (X, Z).
        Dead = 4,
        /// An idle kernel thread (I).
        IdleThread = 5,
        /// Frozen, parked or any other.
        Other = 6,
    }
}

numbered! {
    /// A scheduling policy (`sched_setattr(2)`).
    Policy {
        /// SCHED_OTHER.
        Other = 0,
        /// SCHED_FIFO.
        Fifo = 1,
        /// SCHED_RR.
        RoundRobin = 2,
        /// SCHED_BATCH.
        Batch = 3,
        /// SCHED_IDLE.
        Idle = 5,
        /// SCHED_DEADLINE.
        Deadline = 6,
        /// SCHED_EXT.
        Ext = 7,
    }
}
