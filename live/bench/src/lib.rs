//! The real programs: the run-queue walk on this machine's own caches.
