//! Reads the topology of this machine from /sys.
