//! Plays a scenario with real threads, processes, sockets and cgroups.
