//! Records of what happened on a machine, and their digest.
